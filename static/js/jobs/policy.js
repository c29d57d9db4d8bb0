/** The checkpoint tab: polled while a film is being made; films play on request. */
import { parseMarkup, startPolling } from "../frame/polling.js";

const place = document.querySelector("[data-policy]");
const facts = (root) => root.querySelector("[data-policy-state]").dataset;

/** Replaces the tab where it changed, and keeps the focus. */
function take(markup) {
  const fresh = parseMarkup(markup);
  const { policyState, policyOver } = facts(fresh);
  if (policyState === facts(place).policyState && policyOver === facts(place).policyOver) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  place.replaceChildren(...fresh.childNodes);
  const again = focused && [...place.querySelectorAll("[aria-label]")].find((one) => one.ariaLabel === focused);
  if (again) again.focus();
}

place.addEventListener("click", (event) => {
  const button = event.target.closest("[data-play]");
  if (button) {
    event.preventDefault();
    play(button);
  }
  const link = event.target.closest("[data-to-film]");
  if (link) {
    // The part after # is the tab's.
    event.preventDefault();
    const film = document.querySelector(link.hash);
    film.scrollIntoView({ block: "nearest" });
    play(film.querySelector("[data-play]"), true);
  }
});

/** Films play and stop only on request. */
function play(button, onlyStart = false) {
  const picture = button.closest("figure").querySelector("img");
  const words = button.querySelector("span");
  const playing = words.textContent === "Stop";
  if (playing && onlyStart) return;
  picture.dataset.still ??= picture.src;
  picture.src = playing ? picture.dataset.still : picture.dataset.moving;
  words.textContent = playing ? "Play" : "Stop";
}

startPolling({
  address: () => place.dataset.policy,
  wanted: () => !place.hidden,
  everyMs: () => (facts(place).policyPending === "yes" ? 2000 : facts(place).policyOver === "no" && 15000),
  take,
});
