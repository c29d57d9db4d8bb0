/** Reward surfaces that are being measured grow on the page, point by point. */
const EVERY_MS = 1500;

async function look() {
  const place = document.querySelector("[data-surfaces]");
  if (place?.querySelector("[data-waiting]") && !document.hidden) {
    try {
      const answer = await fetch(place.dataset.surfaces, { headers: { Accept: "text/html" } });
      // Our own server's page, with everything in it escaped there.
      if (answer.ok && !answer.redirected) exchange(place, await answer.text());
    } catch {
      // No network: the next look tries again.
    }
  }
  setTimeout(look, EVERY_MS);
}

/** A table that somebody has opened stays open. */
function exchange(place, markup) {
  const opened = [...place.querySelectorAll("details")].map((one) => one.open);
  place.innerHTML = markup;
  place.querySelectorAll("details").forEach((one, at) => (one.open = opened[at] ?? false));
}

setTimeout(look, EVERY_MS);
