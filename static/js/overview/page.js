/** Updates the overview while the page is visible: parts that change are fetched and replaced where they differ. */
import { setElapsed } from "../frame/clocks.js";

const EVERY_MS = 3000;
const place = document.querySelector("[data-now]");
const TOKEN = document.querySelector("[name=csrfmiddlewaretoken]").value;
for (const token of place.querySelectorAll("[name=csrfmiddlewaretoken]")) token.setAttribute("value", TOKEN);

async function refresh() {
  // A reader who is at a link, or has the table open, keeps it.
  if (document.hidden || place.contains(document.activeElement) || place.querySelector("details[open]")) return;
  const address = new URL(location.href);
  address.searchParams.set("now", "1");
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (answer.ok && !answer.redirected) take(await answer.text());
  } catch {
    // Not reachable: the next poll tries again.
  }
}

function take(text) {
  const fresh = document.createElement("div");
  fresh.innerHTML = text;
  // The token of a form differs each time and says nothing new.
  for (const token of fresh.querySelectorAll("[name=csrfmiddlewaretoken]")) token.setAttribute("value", TOKEN);
  fresh.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
  [...fresh.children].forEach((part, at) => {
    const shown = place.children[at];
    if (!shown) place.append(part.cloneNode(true));
    else if (!shown.isEqualNode(part)) shown.replaceWith(part.cloneNode(true));
  });
  while (place.children.length > fresh.children.length) place.lastElementChild.remove();
}

setInterval(refresh, EVERY_MS);
