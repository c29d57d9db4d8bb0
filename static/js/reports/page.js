/** Reports that the worker builds: their list is fetched again until all of them are done. */
import { parseMarkup, startPolling } from "../frame/polling.js";

const place = document.querySelector("[data-files]");

startPolling({
  address: () => place.dataset.files,
  // A page without a list of its own is loaded again: it is short.
  wanted: () => place !== null || location.reload(),
  everyMs: () => document.querySelector("[data-unfinished='yes']") !== null && 2000,
  take: (markup) => place.replaceChildren(...parseMarkup(markup).childNodes),
});
