/** The forecast beside the job form: asked for again a moment after the last change. */
const PAUSE_MS = 400;
const form = document.querySelector("[data-job-form]");
const panel = form.querySelector("[data-forecast]");
const words = panel.querySelector("[data-forecast-words]");
let waiting = null;
let asking = null;
let told = "";

/** The form as the server will read it, but for what changes no forecast. */
function asked() {
  const data = new FormData(form);
  data.delete("idempotency_key");
  data.set("name", "Forecast");
  return new URLSearchParams(data);
}

function show(markup) {
  const fresh = new DOMParser().parseFromString(markup, "text/html").body;
  const more = fresh.querySelector("[data-forecast-more]");
  if (more) more.open = words.querySelector("[data-forecast-more]")?.open ?? false;
  words.replaceChildren(...fresh.childNodes);
}

async function ask() {
  const body = asked();
  if (body.toString() === told) return;
  asking?.abort();
  asking = new AbortController();
  panel.setAttribute("aria-busy", "true");
  try {
    const headers = { Accept: "text/html", "X-CSRFToken": body.get("csrfmiddlewaretoken") };
    const answer = await fetch(panel.dataset.forecast, { method: "POST", body, headers, signal: asking.signal });
    // A form with a fault in it has no forecast, and neither has one that nobody is signed in to.
    show(answer.ok && !answer.redirected ? await answer.text() : "");
    told = body.toString();
    panel.removeAttribute("aria-busy");
  } catch (error) {
    if (error.name === "AbortError") return;
    show("");
    panel.removeAttribute("aria-busy");
  }
}

function soon() {
  clearTimeout(waiting);
  waiting = setTimeout(ask, PAUSE_MS);
}

form.addEventListener("input", soon);
addEventListener("pageshow", ask);
ask();
