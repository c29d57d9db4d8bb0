/** Polls the job list's rows every 3 s and replaces only changed ones. The selection stays. */
import { setElapsed } from "../frame/clocks.js";
import { fetchMarkup, parseMarkup } from "../frame/polling.js";

const EVERY_MS = 3000;
const body = document.querySelector("[data-rows]");
const selection = document.querySelector("[data-selection]");

/** @param {HTMLElement} fresh a tbody as the server would draw it now */
function merge(fresh) {
  const ids = (rows) => [...rows.children].map((row) => row.dataset.job).join(" ");
  const chosen = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
  for (const box of fresh.querySelectorAll("[name=job]")) box.checked = chosen.has(box.value);
  if (ids(fresh) !== ids(body)) {
    body.replaceChildren(...fresh.children);
    showChosen();
    return;
  }
  [...fresh.children].forEach((row, at) => {
    const shown = body.children[at];
    if (shown.dataset.version !== row.dataset.version && !shown.contains(document.activeElement)) shown.replaceWith(row);
  });
}

async function refresh() {
  const address = new URL(location.href);
  address.searchParams.set("rows", "1");
  const rows = document.hidden ? null : await fetchMarkup(address);
  if (rows === null) return;
  merge(parseMarkup(`<table><tbody>${rows}</tbody></table>`).querySelector("tbody"));
  body.querySelectorAll("time[data-elapsed]").forEach(setElapsed);
}

function boxes() {
  return [...body.querySelectorAll("[name=job]")];
}

/** Shows how many jobs are chosen, and enables the actions for that number. A row of seeds stands for several. */
function showChosen() {
  const jobs = new Set(boxes().filter((box) => box.checked).flatMap((box) => box.value.split(" ")));
  const chosen = jobs.size;
  selection.classList.toggle("none-chosen", chosen === 0);
  for (const button of selection.querySelectorAll("[data-needs-chosen]")) button.disabled = chosen < Number(button.dataset.needsChosen);
  selection.querySelector("[data-chosen-words]").textContent = chosen ? `${chosen} chosen` : "";
  const all = selection.querySelector("[data-choose-all]");
  all.checked = chosen > 0 && boxes().every((box) => box.checked);
  all.indeterminate = chosen > 0 && !all.checked;
}

function startSelection() {
  const all = selection.querySelector("[data-choose-all]");
  all.hidden = false;
  selection.addEventListener("change", (event) => {
    if (event.target === all) for (const box of boxes()) box.checked = all.checked;
    showChosen();
  });
  addEventListener("pageshow", showChosen);
  showChosen();
}

/** "/" focuses the search, except while the user types. */
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select")) return;
  event.preventDefault();
  document.querySelector("[data-question]")?.focus();
});

/** A row of seeds unfolds in its place; the address keeps what is unfolded. */
async function unfold(event) {
  const link = event.target.closest("a[data-unfold]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const { job } = link.closest("tr").dataset;
  history.replaceState(null, "", link.href);
  await refresh();
  body.querySelector(`tr[data-job="${job}"] a[data-unfold]`)?.focus();
}

if (body) {
  startSelection();
  body.addEventListener("click", unfold);
  setInterval(refresh, EVERY_MS);
}
