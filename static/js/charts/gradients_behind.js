/** How many versions gradients were behind when they were applied: the mean, all of them as a band, and the bound. */
import { colour, faint } from "./colours.js";
import { lastKnown, LineRecipe } from "./lines.js";
import { FromZero } from "./scale.js";
import { figures } from "../format.js";

const BOUND = "--series-2";

export class GradientsBehindRecipe extends LineRecipe {
  constructor(sight) {
    super(sight, { name: "gradient_staleness", title: "Mean", variable: "--series-1", words: figures, fromZero: true });
    this.y = new FromZero();
  }

  lines() {
    return [...super.lines(), { stroke: colour(BOUND), width: 1.5, dash: [6, 4], spanGaps: true, points: { show: false } }];
  }

  bands() {
    return [{ series: [2, 1], fill: faint(colour("--series-1"), 0.16) }];
  }

  column(name, side = "values") {
    const { columns } = this.sight;
    return columns[side][name] ?? new Array(columns.length).fill(null);
  }

  /** Where, least, most, mean, smoothed, bound. */
  data() {
    const [where, , , raw, smoothed] = super.data();
    const least = this.column("gradient_staleness_least", "low");
    const most = this.column("gradient_staleness_most", "high");
    return [where, least, most, raw, smoothed, this.column("staleness_bound")];
  }

  legend(at) {
    const [, least, most, raw, , bound] = this.data();
    const words = (values) => figures(at === null ? lastKnown(values) : values[at]);
    return [
      { name: "Mean", value: words(raw), mark: "line", variable: "--series-1" },
      { name: "Range", value: `${words(least)} to ${words(most)}`, mark: "band", variable: "--series-1" },
      { name: "Bound", value: words(bound), mark: "dashed", variable: BOUND },
    ];
  }

  table() {
    const [, least, most, raw, , bound] = this.data();
    return { head: ["Versions behind, mean", "least", "most", "bound"], columns: [raw, least, most, bound] };
  }
}
