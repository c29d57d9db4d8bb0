/** Where a round's time goes: collecting, updating and the rest, one on top of the other. */
import { colour } from "./colours.js";
import { LiveChart } from "./live_chart.js";
import { FromZero } from "./scale.js";
import { count, shortTime, wholeCount } from "../format.js";

const PARTS = [
  { name: "Other", variable: "--series-6" },
  { name: "Update", variable: "--series-5" },
  { name: "Collect", variable: "--series-1" },
];

export class RoundTimeChart extends LiveChart {
  constructor(figure, columns) {
    super(figure, new RoundTimeRecipe(columns));
  }
}

class RoundTimeRecipe {
  constructor(columns) {
    this.columns = columns;
    this.x = new FromZero(10);
    this.y = new FromZero();
    this.ceiling = Infinity;
    // Drawn from the highest sum to the lowest; each is filled down to zero and covered by the next.
    this.lines = PARTS.map((part) => ({
      series: () => ({ stroke: colour(part.variable), fill: opaque(part.variable), width: 1.5, points: { show: false } }),
    }));
  }

  data() {
    const { round, collect, update, total } = this.columns;
    return [round, total, collect.map((seconds, at) => seconds + update[at]), collect];
  }

  xRange(low, high) {
    return this.x.over(0, high);
  }

  yRange(low, high) {
    const ceiling = ceilingOf(this.columns.total);
    if ((ceiling < Infinity) !== (this.ceiling < Infinity)) this.y.reset();
    this.ceiling = ceiling;
    return this.y.over(0, Math.min(high, ceiling));
  }

  xWords = wholeCount;
  yWords = shortTime;

  legend(at) {
    const { round, collect, update, total } = this.columns;
    const shown = at ?? round.length - 1;
    const other = shown < 0 ? undefined : Math.max(0, total[shown] - collect[shown] - update[shown]);
    const values = { Collect: collect[shown], Update: update[shown], Other: other };
    const entries = [...PARTS].reverse().map(({ name, variable }) => ({ name, value: shortTime(values[name]), mark: "box", variable }));
    if (at !== null) return [...entries, { name: "in round", value: count(round[shown]) }];
    // Asked for here too: the chart itself takes its range only after the legend is written.
    const [, top] = this.yRange(0, Math.max(0, ...total));
    const beyond = total.filter((seconds) => seconds > top).length;
    return beyond ? [...entries, { name: "beyond the chart", value: count(beyond) }] : entries;
  }

  summary() {
    const { collect, update, total } = this.columns;
    if (!total.length) return "Round time: no rounds yet.";
    return `The last round took ${shortTime(total.at(-1))}: collecting ${shortTime(collect.at(-1))}, updating ${shortTime(update.at(-1))}.`;
  }
}

/**
 * Where the chart ends when few rounds took far longer than the others, as the first one does that starts everything:
 * they run off the chart, and the legend says so. Infinity where all fit.
 */
function ceilingOf(totals) {
  if (totals.length < 10) return Infinity;
  const sorted = [...totals].sort((one, other) => one - other);
  const usual = sorted[Math.floor(0.9 * sorted.length)];
  return sorted.at(-1) > 4 * usual ? 1.5 * usual : Infinity;
}

/** A light tint of a series colour on the surface, without transparency: areas cover one another. */
function opaque(variable) {
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [ink, paper] = [channels(colour(variable)), channels(colour("--surface"))];
  return `rgb(${ink.map((value, at) => Math.round(0.3 * value + 0.7 * paper[at])).join(" ")})`;
}
