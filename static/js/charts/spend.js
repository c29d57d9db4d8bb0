/** What the job has cost, with the line it cannot cross. */
import { colour, faint } from "./colours.js";
import { FromZero } from "./scale.js";
import { axisMoney, money } from "../format.js";

export class SpendRecipe {
  constructor(sight) {
    Object.assign(this, { sight, limit: 0, y: new FromZero(), yWords: axisMoney });
    this.hooks = { draw: [(plot) => this.drawLimit(plot)] };
  }

  /** @param {number} usd @returns {boolean} whether it is another one than before */
  setLimit(usd) {
    if (usd === this.limit) return false;
    this.limit = usd;
    this.y.reset();
    return true;
  }

  lines() {
    const ink = colour("--series-3");
    return [{ stroke: ink, fill: faint(ink, 0.12), width: 2, points: { show: false } }];
  }

  data() {
    const { columns, view } = this.sight;
    return [columns.axes[view.axis.column], columns.axes.spent_usd];
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
    return [
      { name: "Spent", value: money(spent[at ?? spent.length - 1]), mark: "line", variable: "--series-3" },
      { name: "Limit", value: this.limit ? money(this.limit) : "\u2013", mark: "dashed", variable: "--state-budget" },
    ];
  }

  summary() {
    return `Spent ${money(this.sight.columns.axes.spent_usd.at(-1) ?? 0)} of ${money(this.limit)}.`;
  }

  table() {
    return { head: ["Spent"], columns: [this.sight.columns.axes.spent_usd] };
  }
}
