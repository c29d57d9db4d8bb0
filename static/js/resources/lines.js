/** The lines about running cloud resources: fetched again while the page is visible. */
import { parseMarkup, startPolling } from "../frame/polling.js";

for (const place of document.querySelectorAll("[data-resources]")) keepFresh(place);

function keepFresh(place) {
  let shown = place;
  startPolling({
    address: () => shown.dataset.resources,
    everyMs: () => 5000,
    take(markup) {
      const fresh = parseMarkup(markup).querySelector("[data-resources]");
      // A reader who is at a link keeps it.
      if (!fresh || shown.contains(document.activeElement)) return;
      shown.replaceWith(fresh);
      shown = fresh;
    },
  });
}
