/** A channel's page: copies the signing key, and follows a message until it is sent or waits for another attempt. */
import { setElapsed } from "../frame/clocks.js";
import { startPolling } from "../frame/polling.js";
import { startCopying } from "../jobs/copying.js";

const place = document.querySelector("[data-log-place]");

startCopying();
startPolling({
  address: () => place.dataset.logUrl,
  everyMs: () => place.querySelector("[data-waiting]") && 1000,
  take(markup) {
    if (place.contains(document.activeElement)) return;
    place.innerHTML = markup;
    place.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
  },
});
