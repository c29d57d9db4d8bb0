/** The checkpoint tab: polled while a film is being made; films play on request. */
const AWAITED_MS = 2000;
const QUIET_MS = 15000;
const place = document.querySelector("[data-policy]");
const facts = () => place.querySelector("[data-policy-state]").dataset;

/** Replaces only parts that changed and that the user is not using. */
async function refresh() {
  if (!document.hidden && !place.hidden) {
    try {
      const answer = await fetch(place.dataset.policy, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) exchange(await answer.text());
    } catch {
      // No network: the next poll tries again.
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

lookAgain();
