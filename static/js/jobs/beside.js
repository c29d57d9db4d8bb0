/** The forecast and the checklist beside the job form: fetched again shortly after each change. */
const PAUSE_MS = 400;
const form = document.querySelector("[data-job-form]");
const launch = form.querySelector("[data-launch]");

/** The form's data, without the fields that affect neither panel. */
function formBody() {
  const data = new FormData(form);
  data.delete("idempotency_key");
  if (data.get("name").trim()) data.set("name", "Forecast");
  return new URLSearchParams(data);
}

/** The launch is the page's first act only while no check has failed. */
function showLaunch() {
  const failed = form.querySelector("[data-beside-words] .check.tone-failed") !== null;
  launch.classList.toggle("btn-primary", !failed);
  launch.classList.toggle("btn-quiet", failed);
}

class Panel {
  constructor(section) {
    this.section = section;
    this.words = section.querySelector("[data-beside-words]");
    this.asking = null;
    this.sent = "";
  }

  show(markup) {
    const fresh = new DOMParser().parseFromString(markup, "text/html").body;
    const more = fresh.querySelector("details");
    if (more) more.open = this.words.querySelector("details")?.open ?? false;
    this.words.replaceChildren(...fresh.childNodes);
    showLaunch();
    form.dispatchEvent(new Event("checked"));
  }

  async ask(body) {
    if (body.toString() === this.sent) return;
    this.asking?.abort();
    this.asking = new AbortController();
    this.section.setAttribute("aria-busy", "true");
    try {
      const headers = { Accept: "text/html", "X-CSRFToken": body.get("csrfmiddlewaretoken") };
      const { signal } = this.asking;
      const answer = await fetch(this.section.dataset.beside, { method: "POST", body, headers, signal });
      if (answer.redirected) this.sayWhyNot("You are signed out. Sign in again to see this.");
      else if (!answer.ok) this.sayWhyNot(`The site could not work this out (${answer.status}).`);
      else this.show(await answer.text());
      if (answer.ok && !answer.redirected) this.sent = body.toString();
      this.section.removeAttribute("aria-busy");
    } catch (error) {
      if (error.name === "AbortError") return;
      this.sayWhyNot("The site was not reached.");
      this.section.removeAttribute("aria-busy");
    }
  }

  /** There is always a sentence, and a way to try again. */
  sayWhyNot(sentence) {
    const words = document.createElement("p");
    words.className = "forecast-sentence";
    words.textContent = sentence;
    const again = document.createElement("button");
    again.type = "button";
    again.className = "btn btn-quiet btn-small";
    again.textContent = "Try again";
    again.addEventListener("click", () => this.ask(formBody()));
    this.words.replaceChildren(words, again);
  }
}

const panels = [...form.querySelectorAll("[data-beside]")].map((section) => new Panel(section));
let waiting = null;

function ask() {
  const body = formBody();
  for (const panel of panels) panel.ask(body);
}

form.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(ask, PAUSE_MS);
});
addEventListener("pageshow", ask);
ask();
