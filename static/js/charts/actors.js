/** How many actors each round had, as steps. */
import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { colour, faint } from "./colours.js";
import { Decisions } from "./decisions.js";
import { LineRecipe } from "./lines.js";
import { FromZero } from "./scale.js";
import { count, wholeCount } from "../format.js";

export class ActorsRecipe extends LineRecipe {
  constructor(sight, { legendName: title }) {
    super(sight, { name: "actors", title, variable: "--series-1", words: count, ticks: wholeCount });
    this.y = new FromZero(4);
    this.mayBeLog = false;
    this.decisions = new Decisions(sight);
    this.hooks = this.decisions.hooks;
  }

  legend(at) {
    const { axes, values } = this.sight.columns;
    this.decisions.show(at === null ? null : axes.round[at], values.actors?.[at]);
    return super.legend(at);
  }

  /** Reasons of the newest rounds may not be here yet. */
  async complete() {
    if (this.sight.columns.lastRound > this.decisions.last) await this.decisions.load(0);
  }

  table() {
    const { head, columns } = super.table();
    return { head: [...head, "Why"], columns: [...columns, this.sight.columns.axes.round.map((round) => this.decisions.of(round))] };
  }

  /** A number that was decided is not smoothed. */
  get smoothing() {
    return 0;
  }

  lines() {
    const [low, high, value, none] = super.lines();
    const ink = colour("--series-1");
    const paths = uPlot.paths.stepped({ align: -1 });
    return [{ ...low, paths }, { ...high, paths }, { ...value, paths, stroke: ink, width: 2, fill: faint(ink, 0.1) }, none];
  }

  yRange(low, high) {
    return this.y.over(0, (high || 0) * 1.1);
  }
}
