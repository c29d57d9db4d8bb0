/** Where a round's time goes, one part on top of the other. */
import { colour } from "./colours.js";
import { ROUND } from "./names.js";
import { FromZero } from "./scale.js";
import { count, shortTime } from "../format.js";

/** From the bottom up; each with a dash of its own, so that colour is not the only sign. */
const PARTS = [
  { name: "startup_s", title: "Start-up", variable: "--series-2", dash: [2, 2] },
  { name: "rollout_s", title: "Rollout", variable: "--series-1", dash: [] },
  { name: "fetch_s", title: "Fetch", variable: "--series-3", dash: [6, 2, 2, 2] },
  { name: "compute_s", title: "Compute", variable: "--series-1", dash: [] },
  { name: "push_s", title: "Push", variable: "--series-7", dash: [4, 4] },
  { name: "transfer_s", title: "Transfer", variable: "--series-4", dash: [6, 3] },
  { name: "update_s", title: "Update", variable: "--series-5", dash: [10, 3] },
  { name: "detector_s", title: "Detector", variable: "--series-3", dash: [6, 2, 2, 2] },
  { name: "idle_s", title: "Idle", variable: "--series-6", dash: [1, 3] },
];

export class RoundTimeRecipe {
  constructor(sight) {
    Object.assign(this, { sight, y: new FromZero(), ceiling: Infinity, yWords: shortTime });
  }

  /** Drawn from the highest sum to the lowest; each is filled down to zero and covered by the next. */
  lines() {
    return [...PARTS].reverse().map(({ variable, dash }) => ({ stroke: colour(variable), fill: opaque(variable), width: 1.5, dash, points: { show: false } }));
  }

  data() {
    const { columns, view } = this.sight;
    const sums = [];
    let below = new Array(columns.length).fill(0);
    for (const { name } of PARTS) {
      const part = columns.values[name];
      below = part ? below.map((sum, at) => sum + (part[at] ?? 0)) : below;
      sums.unshift(below);
    }
    this.totals = below;
    return [columns.axes[view.axis.column], ...sums];
  }

  hasPoints() {
    return this.sight.columns.length > 0;
  }

  yRange(low, high) {
    const ceiling = ceilingOf(this.totals);
    if (ceiling < Infinity !== this.ceiling < Infinity) this.y.reset();
    this.ceiling = ceiling;
    return this.y.over(0, Math.min(high || 0, ceiling));
  }

  legend(at) {
    const { columns } = this.sight;
    const shown = at ?? columns.length - 1;
    const entries = PARTS.filter(({ name }) => (columns.values[name] ?? []).some((value) => value > 0)).map(({ name, title, variable }) => ({
      name: title,
      value: shortTime(columns.values[name][shown]),
      mark: "box",
      variable,
    }));
    if (at !== null || !this.totals?.length) return entries;
    // Read here too: the chart itself takes its range only after the legend is written.
    const [, top] = this.yRange(0, this.totals.reduce((most, one) => Math.max(most, one), 0));
    const beyond = this.totals.filter((seconds) => seconds > top).length;
    return beyond ? [...entries, { name: "beyond the chart", value: count(beyond) }] : entries;
  }

  summary() {
    const { columns } = this.sight;
    if (!columns.length) return `No ${ROUND}s yet.`;
    const last = PARTS.map(({ name, title }) => [title, columns.values[name]?.at(-1) ?? 0]).filter(([, value]) => value > 0);
    return `The last ${ROUND} took ${shortTime(this.totals?.at(-1) ?? 0)}: ${last.map(([title, value]) => `${title.toLowerCase()} ${shortTime(value)}`).join(", ")}.`;
  }

  table() {
    return { head: PARTS.map(({ title }) => `${title} [s]`), columns: PARTS.map(({ name }) => this.sight.columns.values[name] ?? []) };
  }
}

/**
 * Where the chart ends when few rounds took far longer than the others, as the first one does that starts everything:
 * they run off the chart, and the legend says so. Infinity where all fit.
 */
function ceilingOf(totals) {
  if (totals.length < 10) return Infinity;
  const sorted = Float64Array.from(totals).sort();
  const usual = sorted[Math.floor(0.9 * sorted.length)];
  return sorted.at(-1) > 4 * usual ? 1.5 * usual : Infinity;
}

/** A light tint of a series colour on the surface, without transparency: areas cover one another. */
function opaque(variable) {
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const [ink, paper] = [channels(colour(variable)), channels(colour("--surface"))];
  return `rgb(${ink.map((value, at) => Math.round(0.3 * value + 0.7 * paper[at])).join(" ")})`;
}
