/** A connection's page: copies what is to be pasted elsewhere, and shows itself anew once an awaited test has ended. */
import { startCopying } from "../jobs/copying.js";

const EVERY_MS = 1000;

startCopying();
watchReport(document.querySelector("[data-report-place]"));

function watchReport(place) {
  if (!place.querySelector("[data-waiting]")) return;
  setTimeout(async () => {
    try {
      const answer = await fetch(place.dataset.reportUrl, { headers: { Accept: "text/html" } });
      // Signed out meanwhile, or the connection is gone: the page itself says which.
      const over = answer.redirected || !answer.ok || !(await answer.text()).includes("data-waiting");
      if (over) return location.reload();
    } catch {
      // The network is away for a moment.
    }
    watchReport(place);
  }, EVERY_MS);
}
