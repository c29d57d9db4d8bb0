/** Reports that the worker builds: their list is fetched again until all of them are done. */
const EVERY_MS = 2000;
const place = document.querySelector("[data-files]");
const unfinished = () => document.querySelector("[data-unfinished='yes']") !== null;

async function refresh() {
  if (!document.hidden) {
    // A page without a list of its own is loaded again: it is short.
    if (!place) return location.reload();
    try {
      const answer = await fetch(place.dataset.files, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) {
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").body;
        place.replaceChildren(...fresh.childNodes);
      }
    } catch {
      // No network: the next poll tries again.
    }
  }
  lookAgain();
}

function lookAgain() {
  if (unfinished()) setTimeout(refresh, EVERY_MS);
}

lookAgain();
