/** The rate at which the project spends, in the top bar: fetched beside the page, so that no page waits for it. */
import { isUsable } from "./reachability.js";

const EVERY_MS = 10_000;
const chip = document.querySelector("[data-rate]");

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(chip.dataset.rate, { headers: { Accept: "text/html" } });
    if (!isUsable(answer)) return;
    const words = await answer.text();
    show(words);
    sessionStorage.setItem(chip.dataset.rate, words);
  } catch {
    // Not reachable just now, or storage is switched off: the next turn tries again.
  }
}

function show(words) {
  if (chip.innerHTML === words) return;
  chip.innerHTML = words;
  chip.setAttribute("aria-label", `Spending: ${chip.textContent.trim()}. Overview`);
}

export function startRate() {
  if (!chip) return;
  try {
    show(sessionStorage.getItem(chip.dataset.rate) ?? ""); // what the page before knew
  } catch {
    // Storage is switched off: the chip fills a moment later.
  }
  refresh();
  setInterval(refresh, EVERY_MS);
}
