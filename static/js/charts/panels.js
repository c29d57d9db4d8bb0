/** The charts of a job's page by name: a recipe each. One new figure of a round is one new row among the lines. */
import { ActorsRecipe } from "./actors.js";
import { LineRecipe } from "./lines.js";
import { ReturnRecipe } from "./return.js";
import { RoundTimeRecipe } from "./round_time.js";
import { SpendRecipe } from "./spend.js";
import { figures, score } from "../format.js";

const LINES = {
  length: { title: "Steps an episode", words: score, fromZero: true },
  kl: { title: "KL", words: figures },
  entropy: { title: "Entropy", words: figures },
  clip_fraction: { title: "Clipped", words: figures, fromZero: true },
  explained_variance: { title: "Explained", words: figures },
  gradient_norm: { title: "Norm", words: figures, fromZero: true },
  value_loss: { title: "Loss", words: figures, fromZero: true },
  staleness: { title: "Versions behind", words: figures, fromZero: true },
  curvature: { title: "R", words: figures },
  noise_scale: { title: "Scale", words: figures, fromZero: true },
  policy_shift: { title: "Shift", words: figures, fromZero: true },
};

export function recipeFor(name, sight) {
  if (name === "return") return new ReturnRecipe(sight);
  if (name === "actors") return new ActorsRecipe(sight);
  if (name === "spend") return new SpendRecipe(sight);
  if (name === "round_time") return new RoundTimeRecipe(sight);
  return new LineRecipe(sight, { name, variable: "--series-1", ...LINES[name] });
}
