/** Moving a slider predicts again, without reloading the page. */
import { money } from "../format.js";
import { exchange } from "../frame/exchange.js";

const WAIT_MS = 250;
const form = document.querySelector("[data-what-if]");
const place = document.querySelector("[data-predicted]");
let latest = 0;
let timer = null;

if (form) {
  form.querySelector("[data-predict]").hidden = true;
  form.addEventListener("input", ({ target }) => {
    const words = target.dataset.words === "usd" ? money(target.value) : target.value;
    form.querySelector(`output[for=${target.id}]`).textContent = words;
    clearTimeout(timer);
    timer = setTimeout(predict, WAIT_MS);
  });
}

async function predict() {
  const mine = (latest += 1);
  const query = new URLSearchParams({ actors: form.elements.actors.value, limit_usd: form.elements.limit_usd.value });
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${form.dataset.whatIf}?${query}`, { headers: { Accept: "text/html" } });
    if (mine !== latest) return;
    if (answer.redirected) return location.reload();
    if (answer.ok) exchange(place, await answer.text());
  } catch {
    // No network: the next move tries again.
  }
  if (mine === latest) place.removeAttribute("aria-busy");
}
