/** The bill on a job's page: fetched again now and then while more may come to it. */
const EVERY_MS = 8000;
const place = document.querySelector("[data-bill]");
const facts = () => place.querySelector("[data-bill-state]").dataset;

async function refresh() {
  // Nothing is exchanged where nobody looks, or under a reader who has opened something.
  const wanted = !document.hidden && !place.closest("[hidden]") && !place.querySelector("details[open]");
  if (wanted) {
    try {
      const answer = await fetch(place.dataset.bill, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) exchange(await answer.text());
    } catch {
      // No network: the next look tries again.
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
