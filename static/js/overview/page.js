/** Updates the overview while the page is visible: parts that change are fetched and replaced where they differ. */
import { setElapsed } from "../frame/clocks.js";
import { exchangeParts, takeToken } from "../frame/exchange.js";
import { parseMarkup, startPolling } from "../frame/polling.js";

const place = document.querySelector("[data-now]");
takeToken(place);
let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
setMotion(place);

function take(markup) {
  const fresh = parseMarkup(markup);
  takeToken(fresh);
  fresh.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
  setMotion(fresh);
  exchangeParts(place, fresh);
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

const address = new URL(location.href);
address.searchParams.set("now", "1");
startPolling({
  address: () => address,
  // A reader who is at a link, or has the table open, keeps it.
  wanted: () => !place.contains(document.activeElement) && !place.querySelector("details[open]"),
  everyMs: () => 3000,
  take,
});
