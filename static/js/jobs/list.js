/** Keeps the job list fresh: asks for its rows every 3 s and puts in only those that changed. */
import { setElapsed } from "../frame/clocks.js";

const EVERY_MS = 3000;
const body = document.querySelector("[data-rows]");

/** @param {HTMLElement} fresh a tbody as the server would draw it now */
function merge(fresh) {
  const ids = (rows) => [...rows.children].map((row) => row.dataset.job).join(" ");
  if (ids(fresh) !== ids(body)) {
    body.replaceChildren(...fresh.children);
    return;
  }
  [...fresh.children].forEach((row, at) => {
    const shown = body.children[at];
    if (shown.dataset.version !== row.dataset.version && !shown.contains(document.activeElement)) shown.replaceWith(row);
  });
}

async function refresh() {
  if (document.hidden) return;
  const address = new URL(location.href);
  address.searchParams.set("rows", "1");
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const template = document.createElement("template");
    template.innerHTML = `<table><tbody>${await answer.text()}</tbody></table>`;
    merge(template.content.querySelector("tbody"));
    body.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
  } catch {
    // Not reachable just now: the next turn asks again.
  }
}

if (body) setInterval(refresh, EVERY_MS);
