/** A chart of one figure over the run: smoothed with the raw line behind it, and the range of what each point holds. */
import { colour, faint } from "./colours.js";
import { ROUND } from "./names.js";
import { AroundData, FromZero } from "./scale.js";
import { smooth } from "./smoothing.js";
import { axisNumber, plural } from "../format.js";

/** Short rounds may end without a value: the last one there was. */
export function lastKnown(values) {
  return values.findLast((value) => value !== null);
}

export class LineRecipe {
  /**
   * @param {{columns: object, view: object}} sight
   * @param {{name: string, title: string, variable: string, words: (value: number) => string, fromZero?: boolean, ticks?: (v: number) => string}} what
   */
  constructor(sight, what) {
    Object.assign(this, { sight, what, mayBeLog: true });
    this.y = what.fromZero ? new FromZero() : new AroundData();
  }

  get smoothing() {
    return this.sight.view.smoothing;
  }

  lines() {
    const ink = colour(this.what.variable);
    const thin = { width: 1, spanGaps: true, points: { show: false } };
    const smoothed = this.smoothing > 0;
    return [
      { ...thin, stroke: "transparent", width: 0 },
      { ...thin, stroke: "transparent", width: 0 },
      { ...thin, stroke: faint(ink, smoothed ? 0.35 : 1), width: smoothed ? 1 : 2 },
      { ...thin, stroke: ink, width: 2, show: smoothed },
    ];
  }

  bands() {
    return [{ series: [2, 1], fill: faint(colour(this.what.variable), 0.16) }];
  }

  /** Where, least, most, value, smoothed. */
  data() {
    const { columns, view } = this.sight;
    const { name } = this.what;
    const raw = columns.values[name] ?? new Array(columns.length).fill(null);
    const [low, high] = columns.perPoint > 1 ? [columns.low[name], columns.high[name]] : [raw, raw];
    return [columns.axes[view.axis.column], low ?? raw, high ?? raw, raw, this.smoothing > 0 ? smooth(raw, this.smoothing) : raw];
  }

  hasPoints() {
    return this.sight.columns.knows(this.what.name);
  }

  positive() {
    return this.data()[1].every((value) => value === null || value > 0);
  }

  yRange(low, high) {
    return this.y.over(low, high);
  }

  /** @param {number} apart how far apart the ticks are; 0 where they are not equally far */
  yWords = (value, apart) => (this.what.ticks ? this.what.ticks(value) : apart > 0 ? axisNumber(value, apart) : this.what.words(value));

  legend(at) {
    const [, low, high, raw, smoothed] = this.data();
    const value = at === null ? lastKnown(raw) : (this.smoothing > 0 ? smoothed : raw)[at];
    const entries = [{ name: this.what.title, value: this.what.words(value), mark: "line", variable: this.what.variable }];
    if (at !== null && this.sight.columns.perPoint > 1 && low[at] !== null) {
      entries.push({ name: "from", value: `${this.what.words(low[at])} to ${this.what.words(high[at])}`, mark: "band", variable: this.what.variable });
    }
    return entries;
  }

  summary() {
    const { columns } = this.sight;
    const values = (columns.values[this.what.name] ?? []).filter((value) => value !== null);
    if (!values.length) return `${this.what.title}: no ${ROUND}s yet.`;
    const words = this.what.words;
    const [least, most] = values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
    return `${this.what.title} over ${plural(columns.lastRound, ROUND)}: last ${words(values.at(-1))}, least ${words(least)}, most ${words(most)}, ${trend(values)}.`;
  }

  table() {
    const [, low, high, raw, smoothed] = this.data();
    const { title } = this.what;
    const several = this.sight.columns.perPoint > 1;
    return {
      head: [title, ...(several ? [`${title}, least`, `${title}, most`] : []), ...(this.smoothing > 0 ? [`${title}, smoothed ${this.smoothing}`] : [])],
      columns: [raw, ...(several ? [low, high] : []), ...(this.smoothing > 0 ? [smoothed] : [])],
    };
  }
}

/** The last fifth held against the fifth before it. */
function trend(values) {
  const size = Math.floor(values.length / 5);
  if (size < 3) return "too short to tell a trend";
  const mean = (part) => part.reduce((sum, value) => sum + value, 0) / part.length;
  const [before, now] = [mean(values.slice(-2 * size, -size)), mean(values.slice(-size))];
  const change = (now - before) / (Math.abs(before) || 1);
  if (Math.abs(change) < 0.03) return "level of late";
  return change > 0 ? "rising of late" : "falling of late";
}
