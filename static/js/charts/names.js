/** What the job of this page calls a round and an actor: a model's training has epochs and functions. */
const { roundName, actorName } = document.querySelector("[data-round-name]")?.dataset ?? {};

export const ROUND = roundName ?? "round";
export const ACTOR = actorName ?? "actor";

export function capitalized(word) {
  return word[0].toUpperCase() + word.slice(1);
}
