/** The user's machines of a job: polls their number while the job lasts, and copies their command. */
import { parseMarkup, startPolling } from "../frame/polling.js";
import { startCopying } from "./copying.js";

const place = document.querySelector("[data-machines]");

if (place) {
  startPolling({
    address: () => place.dataset.machines,
    everyMs: () => place.querySelector("[data-machines-over]").dataset.machinesOver === "no" && 3000,
    take(markup) {
      const fresh = parseMarkup(markup);
      if (fresh.textContent !== place.textContent) place.replaceChildren(...fresh.childNodes);
    },
  });
} else startCopying();
