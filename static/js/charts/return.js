/** Return over steps, rounds, platform time or dollars: smoothed with the raw line behind it, evaluations as dots. */
import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { colour, faint } from "./colours.js";
import { LiveChart } from "./live_chart.js";
import { AroundData, FromZero, TIME_INCREMENTS_S, niceAbove, niceTimeAbove } from "./scale.js";
import { smooth } from "./smoothing.js";
import { axisMoney, axisTime, count, duration, money, score, wholeCount } from "../format.js";

/** What the horizontal axis can be: the column of the rounds, its values as text at ticks and in the legend. */
const AXES = {
  steps: { column: "steps", least: 1000, tick: wholeCount, words: (value) => `${count(value)} steps` },
  rounds: { column: "round", least: 10, tick: wholeCount, words: (value) => `round ${count(value)}` },
  time: { column: "platformTime", least: 10, tick: axisTime, words: duration, nice: niceTimeAbove, increments: TIME_INCREMENTS_S },
  usd: { column: "spentUsd", least: 0.001, tick: axisMoney, words: money },
};

export class ReturnChart extends LiveChart {
  /** @param {HTMLElement} figure @param {import("./columns.js").Columns} columns */
  constructor(figure, columns) {
    const recipe = new ReturnRecipe(columns);
    super(figure, recipe);
    figure.querySelector("[data-smooth]").addEventListener("change", (event) => {
      recipe.smoothing = event.target.checked;
      this.redo();
    });
    for (const button of figure.querySelectorAll("[data-axis]")) {
      button.addEventListener("click", () => this.setAxis(button.dataset.axis));
    }
  }

  setAxis(name) {
    this.recipe.axis = AXES[name];
    this.recipe.x = rangeOf(this.recipe.axis);
    for (const button of this.figure.querySelectorAll("[data-axis]")) {
      button.setAttribute("aria-pressed", String(button.dataset.axis === name));
    }
    this.redo();
  }

  redo() {
    this.make();
    this.draw();
  }
}

/** Short rounds may end without the end of an episode: the last return there was. */
function lastKnown(values) {
  return values.findLast((value) => value !== null);
}

function rangeOf(axis) {
  return new FromZero(axis.least, axis.nice ?? niceAbove);
}

class ReturnRecipe {
  constructor(columns) {
    this.columns = columns;
    this.axis = AXES.steps;
    this.smoothing = true;
    this.x = rangeOf(this.axis);
    this.y = new AroundData();
    this.lines = [
      { series: () => ({ stroke: faint(colour("--accent"), this.smoothing ? 0.3 : 1), width: this.smoothing ? 1 : 2, spanGaps: true, points: { show: false } }) },
      { series: () => ({ show: this.smoothing, stroke: colour("--accent"), width: 2, spanGaps: true, points: { show: false } }) },
      { series: () => ({ stroke: colour("--series-2"), width: 0, paths: () => null, points: { show: true, size: 7, width: 1.5, fill: colour("--series-2"), stroke: colour("--surface") } }) },
    ];
  }

  data() {
    const { columns, axis } = this;
    const x = columns[axis.column];
    const raw = columns.episodeReturn;
    const dots = columns.evaluationSteps.map((steps) => (axis === AXES.steps ? steps : columns.atSteps(x, steps)));
    if (dots.length === 0) return [x, raw, smooth(raw), raw.map(() => null)];
    return uPlot.join([[x, raw, smooth(raw)], [dots, columns.evaluationReturn]]);
  }

  xRange(low, high) {
    return this.x.over(0, high);
  }

  yRange(low, high) {
    return this.y.over(low, high);
  }

  xWords = (value) => this.axis.tick(value);
  xIncrements = () => this.axis.increments;
  yWords = (value) => score(value).replace(/\.0$/, "");

  legend(at) {
    const { columns } = this;
    if (at === null) return this.entries(lastKnown(columns.episodeReturn), columns.evaluationReturn.at(-1), null);
    const [x, raw, smoothed, dots] = this.data();
    return this.entries(this.smoothing ? smoothed[at] : raw[at], dots[at], x[at]);
  }

  entries(value, evaluated, x) {
    const entries = [
      { name: "Return", value: score(value), mark: "line", variable: "--accent" },
      { name: "Evaluation", value: score(evaluated), mark: "dot", variable: "--series-2" },
    ];
    if (x !== null && x !== undefined) entries.push({ name: "at", value: this.axis.words(x) });
    return entries;
  }

  summary() {
    const { episodeReturn, evaluationReturn, round } = this.columns;
    if (!round.length) return "Return: no rounds yet.";
    return `Return after ${count(round.at(-1))} rounds: ${score(episodeReturn.at(-1))}; last evaluation ${score(evaluationReturn.at(-1))}.`;
  }
}
