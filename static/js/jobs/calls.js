/** The tab of actors: the newest round's calls, fetched again while the job runs. */
import { parseMarkup, startPolling } from "../frame/polling.js";

const place = document.querySelector("[data-calls]");
const isFollowing = !place.dataset.calls.includes("round=");

startPolling({
  address: () => place.dataset.calls,
  wanted: () => !place.matches(":focus-within"),
  everyMs: () => isFollowing && place.dataset.over === "no" && 1500,
  take(markup) {
    const scrolled = place.querySelector(".table-scroll")?.scrollLeft ?? 0;
    place.replaceChildren(...parseMarkup(markup).childNodes);
    const table = place.querySelector(".table-scroll");
    if (table) table.scrollLeft = scrolled;
  },
});
