/** The score (a return, a loss), with evaluations as dots and marks of what happened to the run. */
import { colour, faint } from "./colours.js";
import { LineRecipe } from "./lines.js";
import { drawMarks, marksNear } from "./marks.js";
import { axisScore, count, score } from "../format.js";

export class ReturnRecipe extends LineRecipe {
  /** @param {object} sight @param {DOMStringMap} declared the training score's name, its decimals, and what is better */
  constructor(sight, { score: title, decimals, better, reference, spread, predicted }) {
    const [words, short] = [score, axisScore].map((format) => (value) => format(value, Number(decimals)));
    super(sight, { name: "return", title, variable: "--accent", words });
    this.short = short;
    this.best = better === "lower" ? Math.min : Math.max;
    this.reference = reference === undefined ? null : Number(reference);
    this.spread = Number(spread ?? 0);
    this.predicted = predicted ? JSON.parse(predicted) : null;
    this.hooks = { drawAxes: [(plot) => this.drawReference(plot)], draw: [(plot) => drawMarks(plot, sight), (plot) => this.drawEvaluations(plot), (plot) => this.drawPredicted(plot)] };
  }

  hasPoints() {
    return super.hasPoints() || this.sight.columns.evaluations.mean.length > 0;
  }

  /** A line with a band of its spread: published runs, or the score at which an environment counts as solved. */
  drawReference(plot) {
    if (this.reference === null) return;
    const { ctx: context, bbox } = plot;
    const [top, middle, bottom] = [this.spread, 0, -this.spread].map((apart) => plot.valToPos(this.reference + apart, "y", true));
    context.save();
    context.beginPath();
    context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    context.clip();
    context.fillStyle = faint(colour("--series-3"), 0.12);
    context.fillRect(bbox.left, top, bbox.width, bottom - top);
    context.strokeStyle = colour("--series-3");
    context.lineWidth = 1.5 * devicePixelRatio;
    context.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    context.beginPath();
    context.moveTo(bbox.left, Math.round(middle) + 0.5);
    context.lineTo(bbox.left + bbox.width, Math.round(middle) + 0.5);
    context.stroke();
    context.restore();
  }

  /** Where the kept prediction was made, and its band at the predicted end (or where the chart ends before). */
  drawPredicted(plot) {
    const { columns, view } = this.sight;
    if (!this.predicted || view.zoom || !columns.length || columns.axes.round[0] > this.predicted.round) return;
    const { ctx: context, bbox } = plot;
    const [unit, right] = [devicePixelRatio, bbox.left + bbox.width - 3 * devicePixelRatio];
    const end = view.axisName === "steps" ? plot.valToPos(this.predicted.steps, "x", true) : right;
    const begin = plot.valToPos(this.placeOfRound(this.predicted.round), "x", true);
    const [low, middle, high] = ["low", "middle", "high"].map((name) => plot.valToPos(this.predicted[name], "y", true));
    const x = Math.min(end, right);
    context.save();
    context.beginPath();
    context.rect(bbox.left, bbox.top, bbox.width + 4 * unit, bbox.height);
    context.clip();
    context.strokeStyle = colour("--series-4");
    context.fillStyle = colour("--series-4");
    context.lineWidth = 2 * unit;
    context.beginPath();
    for (const y of [low, high]) {
      context.moveTo(x - 5 * unit, y);
      context.lineTo(x + 2 * unit, y);
    }
    context.moveTo(x, low);
    context.lineTo(x, high);
    context.stroke();
    context.beginPath();
    context.arc(x, middle, 3 * unit, 0, 2 * Math.PI);
    context.fill();
    context.setLineDash([2 * unit, 4 * unit]);
    context.lineWidth = unit;
    context.beginPath();
    context.moveTo(begin, bbox.top);
    context.lineTo(begin, bbox.top + bbox.height);
    context.stroke();
    context.restore();
  }

  placeOfRound(round) {
    const { columns, view } = this.sight;
    return columns.axes[view.axis.column][columns.at(round)];
  }

  /** Dots have a place between the points of the rounds as well. */
  placeOf(at) {
    const { columns, view } = this.sight;
    const { evaluations, axes } = columns;
    return view.axisName === "steps" ? evaluations.steps[at] : axes[view.axis.column][columns.at(evaluations.round[at])];
  }

  /** All that is known is in sight, and the middle of a prediction. Its ends are cut where they would leave the curve little room. */
  yRange(low, high) {
    const { reference, spread, predicted } = this;
    const shown = [...this.sight.columns.evaluations.mean, ...(reference === null ? [] : [reference - spread, reference + spread]), ...(predicted ? [predicted.middle] : [])];
    const [least, most] = [Math.min(low ?? Infinity, ...shown), Math.max(high ?? -Infinity, ...shown)];
    if (!predicted) return super.yRange(least, most);
    const room = (most - least) / 4;
    return super.yRange(Math.max(least - room, Math.min(least, predicted.low)), Math.min(most + room, Math.max(most, predicted.high)));
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
    const entries = [...super.legend(at), { name: "Evaluated", value: this.what.words(mean[upto]), mark: "dot", variable: "--series-2" }];
    // At rest the page's head says the score: here are the keys alone.
    if (at === null) for (const entry of entries) entry.value = "";
    if (this.reference !== null) {
      const spread = this.spread ? ` \u00b1 ${this.short(this.spread)}` : "";
      entries.push({ name: "Reference", value: `${this.short(this.reference)}${spread}`, mark: "dashed", variable: "--series-3" });
    }
    if (this.predicted) {
      entries.push({ name: "Predicted", value: `${this.short(this.predicted.low)} to ${this.short(this.predicted.high)}`, mark: "dot", variable: "--series-4" });
    }
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
