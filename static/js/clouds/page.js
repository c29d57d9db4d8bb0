/** A connection's page: copies text to paste elsewhere, follows a set-up, and reloads at its end. */
import { exchange } from "../frame/exchange.js";
import { startCopying } from "../jobs/copying.js";

const EVERY_MS = 1000;

showWhatCannotBeCopied();
startCopying();
for (const place of document.querySelectorAll("[data-report-place]")) watchReport(place);

/** Without access to the clipboard, the text is selected instead, for which it has to be visible. */
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
      // Signed out meanwhile, or the connection is gone: the page says which.
      const html = await answer.text();
      const over = answer.redirected || !answer.ok || !html.includes("data-waiting");
      if (over) return location.reload();
      // The page comes from this server, which escapes everything in it. Steps come one by one.
      if (place.innerHTML.trim() !== html.trim()) exchange(place, html);
    } catch {
      // The network is down for a moment.
    }
    watchReport(place);
  }, EVERY_MS);
}
