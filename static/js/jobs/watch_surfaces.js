/** Reward surfaces that are being measured grow on the page, point by point. */
import { exchange } from "../frame/exchange.js";

const EVERY_MS = 1500;

async function look() {
  const place = document.querySelector("[data-surfaces]");
  if (place?.querySelector("[data-waiting]") && !document.hidden) {
    try {
      const answer = await fetch(place.dataset.surfaces, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) exchange(place, await answer.text());
    } catch {
      // No network: the next poll tries again.
    }
  }
  setTimeout(look, EVERY_MS);
}

setTimeout(look, EVERY_MS);
