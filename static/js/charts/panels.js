/** The charts of a job's page. Their names and formats are in webapp/jobs/charts/figures.py. */
import { ActorsRecipe } from "./actors.js";
import { GradientsBehindRecipe } from "./gradients_behind.js";
import { LineRecipe } from "./lines.js";
import { ReturnRecipe } from "./return.js";
import { RoundTimeRecipe } from "./round_time.js";
import { SpendRecipe } from "./spend.js";
import { figures, score } from "../format.js";

const OWN = {
  return: ReturnRecipe,
  actors: ActorsRecipe,
  spend: SpendRecipe,
  round_time: RoundTimeRecipe,
  gradient_staleness: GradientsBehindRecipe,
};
const WORDS = { figures, score };

/** @param {HTMLElement} figure @param {{columns: object, view: object}} sight */
export function recipeFor({ dataset }, sight) {
  const Own = OWN[dataset.chart];
  if (Own) return new Own(sight, dataset);
  const { chart: name, legendName: title, words, fromZero } = dataset;
  return new LineRecipe(sight, { name, title, words: WORDS[words], fromZero: fromZero !== undefined, variable: "--series-1" });
}
