/** Refreshes the list of alerts, unless the reader is about to press something in it. News that was new when the page was
 * opened stays in it. */
import { setElapsed } from "../frame/clocks.js";

const EVERY_MS = 4000;
const list = document.querySelector("[data-alerts]");
const versions = (rows) => [...rows.children].map((row) => `${row.dataset.alert} ${row.dataset.version}`).join(",");

async function refresh() {
  if (document.hidden || list.contains(document.activeElement) || list.querySelector("details[open]")) return;
  const address = new URL(location.href);
  address.searchParams.set("rows", "1");
  for (const alert of list.dataset.kept.split(",").filter(Boolean)) address.searchParams.append("keep", alert);
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const template = document.createElement("template");
    template.innerHTML = `<ul>${await answer.text()}</ul>`;
    const fresh = template.content.querySelector("ul");
    if (versions(fresh) === versions(list)) return;
    list.replaceChildren(...fresh.children);
    list.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
  } catch {
    // Not reachable: the next poll tries again.
  }
}

if (list) setInterval(refresh, EVERY_MS);
