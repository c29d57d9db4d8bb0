/** A connection's page: copies what is to be pasted elsewhere, follows a set-up, and shows itself anew at an end. */
import { exchange } from "../frame/exchange.js";
import { startCopying } from "../jobs/copying.js";

const EVERY_MS = 1000;

showWhatCannotBeCopied();
startCopying();
for (const place of document.querySelectorAll("[data-report-place]")) watchReport(place);

/** Where a browser gives no clipboard, the text is selected for the reader instead, and has to be seen for that. */
function showWhatCannotBeCopied() {
  if (navigator.clipboard) return;
  for (const button of document.querySelectorAll(".paper [data-copy]")) {
    button.addEventListener("click", () => (button.closest(".paper").querySelector("details").open = true));
  }
}

function watchReport(place) {
  if (!place.querySelector("[data-waiting]")) return;
  setTimeout(async () => {
    try {
      const answer = await fetch(place.dataset.reportUrl, { headers: { Accept: "text/html" } });
      // Signed out meanwhile, or the connection is gone: the page itself says which.
      const told = await answer.text();
      const over = answer.redirected || !answer.ok || !told.includes("data-waiting");
      if (over) return location.reload();
      // Our own server's page, with everything in it escaped there. Steps come one by one.
      if (place.innerHTML.trim() !== told.trim()) exchange(place, told);
    } catch {
      // The network is away for a moment.
    }
    watchReport(place);
  }, EVERY_MS);
}
