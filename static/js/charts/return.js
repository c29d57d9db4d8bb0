/** The score (a return, a loss), with evaluations as dots and marks of what happened to the run. */
import { colour } from "./colours.js";
import { LineRecipe } from "./lines.js";
import { drawMarks, marksNear } from "./marks.js";
import { axisScore, count, score } from "../format.js";

export class ReturnRecipe extends LineRecipe {
  /** @param {object} sight @param {DOMStringMap} declared the score's name, its decimals, and what is better */
  constructor(sight, { score: title, decimals, better }) {
    const [words, ticks] = [score, axisScore].map((format) => (value) => format(value, Number(decimals)));
    super(sight, { name: "return", title, variable: "--accent", words, ticks });
    this.best = better === "lower" ? Math.min : Math.max;
    this.hooks = { draw: [(plot) => drawMarks(plot, sight), (plot) => this.drawEvaluations(plot)] };
  }

  /** Dots have a place between the points of the rounds as well. */
  placeOf(at) {
    const { columns, view } = this.sight;
    const { evaluations, axes } = columns;
    return view.axisName === "steps" ? evaluations.steps[at] : axes[view.axis.column][columns.at(evaluations.round[at])];
  }

  yRange(low, high) {
    const { mean } = this.sight.columns.evaluations;
    if (!mean.length) return super.yRange(low, high);
    return super.yRange(Math.min(low ?? Infinity, ...mean), Math.max(high ?? -Infinity, ...mean));
  }

  drawEvaluations(plot) {
    const { mean } = this.sight.columns.evaluations;
    if (!this.sight.columns.length) return;
    const context = plot.ctx;
    const { left, top, width, height } = plot.bbox;
    context.save();
    context.beginPath();
    context.rect(left, top - 8, width + 8, height + 16);
    context.clip();
    context.fillStyle = colour("--series-2");
    context.strokeStyle = colour("--surface");
    context.lineWidth = 1.5 * devicePixelRatio;
    for (let at = 0; at < mean.length; at += 1) {
      context.beginPath();
      context.arc(plot.valToPos(this.placeOf(at), "x", true), plot.valToPos(mean[at], "y", true), 4 * devicePixelRatio, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
    context.restore();
  }

  legend(at) {
    const { columns } = this.sight;
    const { round, mean } = columns.evaluations;
    const upto = at === null ? mean.length - 1 : round.findLastIndex((one) => one <= columns.axes.round[at]);
    const entries = [...super.legend(at), { name: "Evaluation", value: this.what.words(mean[upto]), mark: "dot", variable: "--series-2" }];
    return at === null ? entries : [...entries, ...marksNear(columns, at)];
  }

  summary() {
    const { round, mean } = this.sight.columns.evaluations;
    const words = super.summary();
    if (!mean.length) return words;
    const best = mean.indexOf(this.best(...mean));
    return `${words} Last evaluation ${this.what.words(mean.at(-1))}; the best was ${this.what.words(mean[best])} after round ${count(round[best])}.`;
  }
}
