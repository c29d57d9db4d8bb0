/** The bill on a job's page: polled until it is final. */
import { parseMarkup, startPolling } from "../frame/polling.js";

const place = document.querySelector("[data-bill]");
const facts = (root) => root.querySelector("[data-bill-state]").dataset;

startPolling({
  address: () => place.dataset.bill,
  // Sections that are hidden, or have something open, are not replaced.
  wanted: () => !place.closest("[hidden]") && !place.querySelector("details[open]"),
  everyMs: () => facts(place).billOver === "no" && 8000,
  take(markup) {
    const fresh = parseMarkup(markup);
    if (facts(fresh).billState !== facts(place).billState) place.replaceChildren(...fresh.childNodes);
  },
});
