/** Updates the bell on a page that stays open, and reports once the person has opened it. */
import { setElapsed } from "./clocks.js";
import { isUsable, sayGone } from "./reachability.js";

const EVERY_MS = 5000;
const bell = () => document.querySelector("[data-bell]");

/** @param {HTMLElement} fresh the bell as the site would draw it now */
function take(fresh) {
  const shown = bell();
  if (!shown.open) {
    if (shown.dataset.bell !== fresh.dataset.bell) shown.replaceWith(fresh);
    return;
  }
  const [list, freshList] = [shown, fresh].map((one) => one.querySelector("[data-bell-list]"));
  if (shown.dataset.bell === fresh.dataset.bell || list.contains(document.activeElement)) return;
  list.replaceWith(freshList);
  shown.dataset.bell = fresh.dataset.bell;
}

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(bell().dataset.address, { headers: { Accept: "text/html" } });
    if (!isUsable(answer)) return;
    const template = document.createElement("template");
    template.innerHTML = await answer.text();
    take(template.content.querySelector("[data-bell]"));
    bell().querySelectorAll("time[data-elapsed]").forEach(setElapsed);
  } catch {
    sayGone(); // The next poll tries again.
  }
}

/** What was new is no longer so for this person; the rows stay marked while the bell is open. */
function look(shown) {
  const count = shown.querySelector("[data-bell-count]");
  if (!count) return;
  count.remove();
  shown.querySelector("summary").setAttribute("aria-label", "Alerts");
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  fetch(shown.dataset.seenAddress, { method: "POST", headers: { "X-CSRFToken": token } }).catch(() => {});
}

export function startBell() {
  if (!bell()) return;
  // "toggle" does not bubble, and the bell is replaced now and then.
  document.addEventListener("toggle", (event) => event.target.matches("[data-bell][open]") && look(event.target), true);
  setInterval(refresh, EVERY_MS);
}
