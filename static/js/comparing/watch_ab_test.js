/** A running A/B test's page follows its runs, and reloads once the answer is there. */
import { exchange } from "../frame/exchange.js";

const EVERY_MS = 3000;
const place = document.querySelector("[data-ab-test]");

async function look() {
  if (!place.querySelector("[data-waiting]")) return;
  if (!document.hidden) {
    try {
      const answer = await fetch(place.dataset.abTest, { headers: { Accept: "text/html" } });
      const html = await answer.text();
      if (answer.redirected || !answer.ok || !html.includes("data-waiting")) return location.reload();
      exchange(place, html);
    } catch {
      // No network: the next poll tries again.
    }
  }
  setTimeout(look, EVERY_MS);
}

setTimeout(look, EVERY_MS);
