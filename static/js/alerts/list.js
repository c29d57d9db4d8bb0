/** Refreshes the list of alerts, unless the reader is about to press something in it. News that was new when the page was
 * opened stays in it. */
import { setElapsed } from "../frame/clocks.js";
import { parseMarkup, startPolling } from "../frame/polling.js";

const list = document.querySelector("[data-alerts]");
const versions = (rows) => [...rows.children].map((row) => `${row.dataset.alert} ${row.dataset.version}`).join(",");

function address() {
  const rows = new URL(location.href);
  rows.searchParams.set("rows", "1");
  for (const alert of list.dataset.kept.split(",").filter(Boolean)) rows.searchParams.append("keep", alert);
  return rows;
}

function take(markup) {
  const fresh = parseMarkup(`<ul>${markup}</ul>`).firstElementChild;
  if (versions(fresh) === versions(list)) return;
  list.replaceChildren(...fresh.children);
  list.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
}

const wanted = () => !list.contains(document.activeElement) && !list.querySelector("details[open]");
if (list) startPolling({ address, take, wanted, everyMs: () => 4000 });
