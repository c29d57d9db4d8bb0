/** Updates the overview while the page is visible: parts that change are fetched and replaced where they differ. */
import { setElapsed } from "../frame/clocks.js";

const EVERY_MS = 3000;
const place = document.querySelector("[data-now]");
const TOKEN = document.querySelector("[name=csrfmiddlewaretoken]").value;
for (const token of place.querySelectorAll("[name=csrfmiddlewaretoken]")) token.setAttribute("value", TOKEN);
let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
setMotion(place);

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
  setMotion(fresh);
  exchange(place, fresh);
}

/** Replaces what differs. Of what has parts only those that differ, so that films play on. */
function exchange(here, fresh) {
  [...fresh.children].forEach((part, at) => {
    const shown = here.children[at];
    if (!shown) here.append(part.cloneNode(true));
    else if (shown.isEqualNode(part)) return;
    else if ("parts" in shown.dataset && "parts" in part.dataset) exchange(shown, part);
    else shown.replaceWith(part.cloneNode(true));
  });
  while (here.children.length > fresh.children.length) here.lastElementChild.remove();
}

/** Lets films play, or shows their first pictures. */
function setMotion(root) {
  for (const film of root.querySelectorAll("[data-film]")) film.setAttribute("src", playing ? film.dataset.film : film.dataset.still);
  for (const button of root.querySelectorAll("[data-films-play]")) {
    button.classList.toggle("playing", playing);
    button.querySelector("span").textContent = playing ? "Stop" : "Play";
  }
}

place.addEventListener("click", (event) => {
  if (!event.target.closest("[data-films-play]")) return;
  playing = !playing;
  setMotion(place);
});

setInterval(refresh, EVERY_MS);
