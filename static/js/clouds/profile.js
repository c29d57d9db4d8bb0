/** Shows what a profile would cost, a moment after the form has changed. */
const PAUSE_MS = 300;
const form = document.querySelector("[data-profile-form]");
const place = form.querySelector("[data-cost]");
let waiting = null;
let asking = null;

async function ask() {
  asking?.abort();
  asking = new AbortController();
  try {
    const body = new URLSearchParams(new FormData(form));
    const headers = { Accept: "text/html", "X-CSRFToken": body.get("csrfmiddlewaretoken") };
    const answer = await fetch(place.dataset.cost, { method: "POST", body, headers, signal: asking.signal });
    // An invalid form has no cost, and neither has one after signing out.
    const markup = answer.ok && !answer.redirected ? await answer.text() : "";
    place.replaceChildren(...new DOMParser().parseFromString(markup, "text/html").body.childNodes);
  } catch {
    // Another change came before the answer, or the network is down for a moment.
  }
}

form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(ask, PAUSE_MS);
});
