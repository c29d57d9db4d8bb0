/** The tab of actors: the newest round's calls, fetched again while the job runs. */
const EVERY_MS = 1500;
const place = document.querySelector("[data-calls]");
const following = !place.dataset.calls.includes("round=");

async function refresh() {
  if (!document.hidden && !place.matches(":focus-within")) {
    try {
      const answer = await fetch(place.dataset.calls, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) exchange(await answer.text());
    } catch {
      // No network: the next poll tries again.
    }
  }
  setTimeout(refresh, EVERY_MS);
}

function exchange(markup) {
  const fresh = new DOMParser().parseFromString(markup, "text/html").body;
  const scrolled = place.querySelector(".table-scroll")?.scrollLeft ?? 0;
  place.replaceChildren(...fresh.childNodes);
  const table = place.querySelector(".table-scroll");
  if (table) table.scrollLeft = scrolled;
}

if (following && place.dataset.over === "no") setTimeout(refresh, EVERY_MS);
