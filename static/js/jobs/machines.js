/** The user's machines of a job: polls their number while the job lasts, and copies their command. */
import { startCopying } from "./copying.js";

const EVERY_MS = 3000;
const place = document.querySelector("[data-machines]");

async function refresh() {
  if (!document.hidden) {
    try {
      const answer = await fetch(place.dataset.machines, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) exchange(await answer.text());
    } catch {
      // No network: the next poll tries again.
    }
  }
  lookAgain();
}

function exchange(markup) {
  const fresh = new DOMParser().parseFromString(markup, "text/html").body;
  if (fresh.textContent !== place.textContent) place.replaceChildren(...fresh.childNodes);
}

function lookAgain() {
  if (place.querySelector("[data-machines-over]").dataset.machinesOver === "no") setTimeout(refresh, EVERY_MS);
}

if (place) lookAgain();
else startCopying();
