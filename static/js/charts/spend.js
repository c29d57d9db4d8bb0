/** What the job has cost over the platform's time, with the line it cannot cross. */
import { colour, faint } from "./colours.js";
import { LiveChart } from "./live_chart.js";
import { FromZero, TIME_INCREMENTS_S, niceTimeAbove } from "./scale.js";
import { axisMoney, axisTime, duration, money } from "../format.js";

export class SpendChart extends LiveChart {
  constructor(figure, columns) {
    super(figure, new SpendRecipe(columns));
  }

  /** @param {number} usd */
  setLimit(usd) {
    if (usd === this.recipe.limit) return;
    this.recipe.limit = usd;
    this.recipe.y.reset();
    this.plot.redraw();
  }
}

class SpendRecipe {
  constructor(columns) {
    this.columns = columns;
    this.limit = 0;
    this.x = new FromZero(10, niceTimeAbove);
    this.y = new FromZero();
    this.lines = [
      { series: () => ({ stroke: colour("--series-3"), fill: faint(colour("--series-3"), 0.12), width: 2, points: { show: false } }) },
    ];
    this.hooks = { draw: [(plot) => this.drawLimit(plot)] };
  }

  data() {
    return [this.columns.platformTime, this.columns.spentUsd];
  }

  xRange(low, high) {
    return this.x.over(0, high);
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

  xWords = axisTime;
  xIncrements = () => TIME_INCREMENTS_S;
  yWords = axisMoney;

  legend(at) {
    const { platformTime, spentUsd } = this.columns;
    const shown = at ?? spentUsd.length - 1;
    const entries = [
      { name: "Spent", value: money(spentUsd[shown]), mark: "line", variable: "--series-3" },
      { name: "Limit", value: this.limit ? money(this.limit) : "\u2013", mark: "dashed", variable: "--state-budget" },
    ];
    if (at !== null) entries.push({ name: "at", value: duration(platformTime[shown]) });
    return entries;
  }

  summary() {
    return `Spent ${money(this.columns.spentUsd.at(-1) ?? 0)} of ${money(this.limit)}.`;
  }
}
