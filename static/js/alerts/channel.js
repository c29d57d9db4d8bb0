/** A channel's page: copies the signing key, and follows a message until it is sent or waits for another attempt. */
import { startCopying } from "../jobs/copying.js";
import { setElapsed } from "../frame/clocks.js";

const EVERY_MS = 1000;
const place = document.querySelector("[data-log-place]");

async function follow() {
  try {
    const answer = await fetch(place.dataset.logUrl, { headers: { Accept: "text/html" } });
    if (answer.ok && !answer.redirected && !place.contains(document.activeElement)) {
      // The page comes from this server, which escapes everything in it.
      place.innerHTML = await answer.text();
      place.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
    }
  } catch {
    // The network is down for a moment.
  }
  if (place.querySelector("[data-waiting]")) setTimeout(follow, EVERY_MS);
}

startCopying();
if (place.querySelector("[data-waiting]")) setTimeout(follow, EVERY_MS);
