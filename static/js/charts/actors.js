/** How many actors each round had, as steps. */
import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { colour, faint } from "./colours.js";
import { LiveChart } from "./live_chart.js";
import { FromZero } from "./scale.js";
import { count, wholeCount } from "../format.js";

export class ActorsChart extends LiveChart {
  constructor(figure, columns) {
    super(figure, new ActorsRecipe(columns));
  }
}

class ActorsRecipe {
  constructor(columns) {
    this.columns = columns;
    this.x = new FromZero(10);
    this.y = new FromZero(4);
    const stepped = uPlot.paths.stepped({ align: -1 });
    this.lines = [
      { series: () => ({ stroke: colour("--series-1"), fill: faint(colour("--series-1"), 0.1), width: 2, paths: stepped, points: { show: false } }) },
    ];
  }

  data() {
    return [this.columns.round, this.columns.actors];
  }

  xRange(low, high) {
    return this.x.over(0, high);
  }

  yRange(low, high) {
    return this.y.over(0, high * 1.1);
  }

  xWords = wholeCount;
  yWords = wholeCount;

  legend(at) {
    const { round, actors } = this.columns;
    const shown = at ?? actors.length - 1;
    return [
      { name: "Actors", value: count(actors[shown]), mark: "line", variable: "--series-1" },
      { name: "in round", value: count(round[shown]) },
    ];
  }

  summary() {
    return this.columns.round.length ? `Actors: ${count(this.columns.actors.at(-1))} in the last round.` : "Actors: no rounds yet.";
  }
}
