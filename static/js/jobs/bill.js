/** The bill on a job's page: polled until it is final. */
const EVERY_MS = 8000;
const place = document.querySelector("[data-bill]");
const facts = () => place.querySelector("[data-bill-state]").dataset;

async function refresh() {
  // Hidden pages, and sections with something open, are not replaced.
  const wanted = !document.hidden && !place.closest("[hidden]") && !place.querySelector("details[open]");
  if (wanted) {
    try {
      const answer = await fetch(place.dataset.bill, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) exchange(await answer.text());
    } catch {
      // No network: the next poll tries again.
    }
  }
  lookAgain();
}

function exchange(markup) {
  const fresh = new DOMParser().parseFromString(markup, "text/html").body;
  if (fresh.querySelector("[data-bill-state]").dataset.billState !== facts().billState) {
    place.replaceChildren(...fresh.childNodes);
  }
}

function lookAgain() {
  if (facts().billOver === "no") setTimeout(refresh, EVERY_MS);
}

lookAgain();
