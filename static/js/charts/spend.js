/** What the job has cost, with the line it cannot cross and, while it runs, when it will meet that. */
import { bandOf } from "./ahead.js";
import { colour, faint } from "./colours.js";
import { FromZero } from "./scale.js";
import { axisMoney, money } from "../format.js";
import { inLocalTime } from "../frame/clocks.js";

export class SpendRecipe {
  constructor(sight) {
    Object.assign(this, { sight, limit: 0, ahead: null, y: new FromZero(), yWords: axisMoney });
    this.hooks = { draw: [(plot) => this.drawLimit(plot)] };
  }

  /** @param {number} usd @returns {boolean} whether it is another one than before */
  setLimit(usd) {
    if (usd === this.limit) return false;
    this.limit = usd;
    this.y.reset();
    return true;
  }

  /** @param {object|null} ahead as the job's header tells it @returns {boolean} whether it is another one */
  setAhead(ahead) {
    const received = JSON.stringify(ahead ?? null);
    if (received === this.received) return false;
    Object.assign(this, { received, ahead: ahead ?? null });
    return true;
  }

  lines() {
    const ink = colour("--series-3");
    const unseen = { stroke: "transparent", width: 0, points: { show: false } };
    return [
      { stroke: ink, fill: faint(ink, 0.12), width: 2, points: { show: false } },
      unseen,
      unseen,
      { stroke: ink, width: 1.5, dash: [3, 4], points: { show: false } },
    ];
  }

  bands() {
    return [{ series: [3, 2], fill: faint(colour("--series-3"), 0.28) }];
  }

  /** Where, spent; then least, most and middle of what is ahead, which begin at the last point. */
  data() {
    const { columns, view } = this.sight;
    const [x, spent] = [columns.axes[view.axis.column], columns.axes.spent_usd];
    const band = view.zoom ? null : bandOf(columns, view.axis.column, this.ahead);
    const none = new Array(x.length).fill(null);
    if (!band) return [x, spent, none, none, none];
    const past = none.slice(1);
    return [
      [...x, ...band.x.slice(1)],
      [...spent, ...band.x.slice(1).map(() => null)],
      ...[band.low, band.high, band.middle].map((column) => [...past, ...column]),
    ];
  }

  hasPoints() {
    return this.sight.columns.length > 0;
  }

  yRange(low, high) {
    return this.y.over(0, Math.max(high || 0, this.limit * 1.08));
  }

  drawLimit(plot) {
    if (!this.limit) return;
    const context = plot.ctx;
    const y = Math.round(plot.valToPos(this.limit, "y", true)) + 0.5;
    context.save();
    context.strokeStyle = colour("--state-budget");
    context.lineWidth = 1.5 * devicePixelRatio;
    context.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    context.beginPath();
    context.moveTo(plot.bbox.left, y);
    context.lineTo(plot.bbox.left + plot.bbox.width, y);
    context.stroke();
    context.restore();
  }

  legend(at) {
    const { spent_usd: spent } = this.sight.columns.axes;
    const limit = { name: "Limit", value: this.limit ? money(this.limit) : "\u2013", mark: "dashed", variable: "--state-budget" };
    if (at !== null && at >= spent.length) {
      const [, , low, high] = this.data();
      return [{ name: "Expected", value: `${money(low[at])} to ${money(high[at])}`, mark: "band", variable: "--series-3" }, limit];
    }
    const now = { name: "Spent", value: money(spent[at ?? spent.length - 1]), mark: "line", variable: "--series-3" };
    const expected = at === null && this.ahead ? [{ name: this.ahead.end, value: inLocalTime(this.ahead.when), mark: "band", variable: "--series-3" }] : [];
    return [now, limit, ...expected];
  }

  summary() {
    const expected = this.ahead ? ` Expected: ${inLocalTime(this.ahead.words)}.` : "";
    return `Spent ${money(this.sight.columns.axes.spent_usd.at(-1) ?? 0)} of ${money(this.limit)}.${expected}`;
  }

  table() {
    return { head: ["spent [USD]"], columns: [this.sight.columns.axes.spent_usd] };
  }
}
