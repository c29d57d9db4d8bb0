/**
 * A page that follows what still runs on it: it is fetched again as a whole, and parts that differ are
 * replaced. `[data-live-parts]` are the parts, `[data-waiting]` among them says that there is more to come.
 */
import { setElapsed } from "./clocks.js";
import { exchangeParts, takeToken } from "./exchange.js";
import { isUsable, sayGone } from "./reachability.js";

const EVERY_MS = 4000;

/** @param {(fresh: Document) => void} [taken] is called with the fresh page, once its parts are in place */
export function startLiveParts(taken = () => {}) {
  const place = document.querySelector("[data-live-parts]");
  if (!place) return;
  takeToken(place);

  async function look() {
    if (!place.querySelector("[data-waiting]")) return;
    // A reader who is at a button, or has something open, keeps it.
    const busy = document.hidden || place.contains(document.activeElement) || place.querySelector("details[open]");
    if (!busy) await refresh();
    setTimeout(look, EVERY_MS);
  }

  async function refresh() {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!isUsable(answer)) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("[data-live-parts]");
      if (!fresh) return;
      takeToken(fresh);
      fresh.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
      exchangeParts(place, fresh);
      taken(page);
    } catch {
      sayGone(); // The next poll tries again.
    }
  }

  setTimeout(look, EVERY_MS);
}
