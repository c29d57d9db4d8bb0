/** The tab of checkpoints: fresh while something is awaited, and films that play when asked to. */
const AWAITED_MS = 2000;
const QUIET_MS = 15000;
const place = document.querySelector("[data-policy]");
const facts = () => place.querySelector("[data-policy-state]").dataset;

/** Nothing is exchanged under a reader's hands: only what says something else, and nobody is in the middle of. */
async function refresh() {
  if (!document.hidden && !place.hidden) {
    try {
      const answer = await fetch(place.dataset.policy, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) exchange(await answer.text());
    } catch {
      // No network: the next look tries again.
    }
  }
  lookAgain();
}

function exchange(markup) {
  const fresh = new DOMParser().parseFromString(markup, "text/html").body;
  const { policyState, policyOver } = fresh.querySelector("[data-policy-state]").dataset;
  if (policyState === facts().policyState && policyOver === facts().policyOver) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  place.replaceChildren(...fresh.childNodes);
  const again = focused && [...place.querySelectorAll("[aria-label]")].find((one) => one.ariaLabel === focused);
  if (again) again.focus();
}

function lookAgain() {
  if (facts().policyPending === "yes") setTimeout(refresh, AWAITED_MS);
  else if (facts().policyOver === "no") setTimeout(refresh, QUIET_MS);
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

/** Moving pictures move because somebody asked, and stop the same way. */
function play(button, onlyStart = false) {
  const picture = button.closest("figure").querySelector("img");
  const words = button.querySelector("span");
  const playing = words.textContent === "Stop";
  if (playing && onlyStart) return;
  picture.dataset.still ??= picture.src;
  picture.src = playing ? picture.dataset.still : picture.dataset.moving;
  words.textContent = playing ? "Play" : "Stop";
}

lookAgain();
