/** The job form: shows only the chosen variants, and updates the review and the launch button. */
import { grouped, money, ungroup } from "../format.js";
import { startDraft } from "./draft.js";
import { listChanges, markChanges, startMarks } from "./marks.js";
import { keepTyped } from "./typed.js";
import { showVariants, startVariants } from "./variants.js";

const form = document.querySelector("[data-job-form]");
const review = form.querySelector("[data-review]");
const launch = form.querySelector("[data-launch]");

/** The budget as typed, or null if it is no amount. */
function budget() {
  const text = ungroup(form.elements.namedItem("budget_usd").value);
  const value = Number(text);
  return text !== "" && Number.isFinite(value) && value > 0 ? value : null;
}

/** What the launch can cost at most: its budget, or what a budget above leaves; null without a budget. */
function mostCost() {
  const own = budget();
  const cap = form.querySelector("[data-cap-usd]");
  return own === null || cap === null ? own : Math.min(own, Number(cap.dataset.capUsd));
}

/** The number of seeds; 1 while the field is invalid. */
function seeds() {
  const value = Number(form.elements.namedItem("seeds").value);
  return Number.isInteger(value) && value > 1 ? value : 1;
}

function worstCase(most, own, runs) {
  if (most === null) return "Set a budget: the job stops before it can spend more.";
  if (runs === 1) return `This job cannot cost more than ${money(most)}.`;
  return `The ${runs} runs together cannot cost more than ${money(most)}: each gets ${money(Math.floor((own * 1e6) / runs + 1e-6) / 1e6)}.`;
}

function shownValue(input, blank) {
  if (input.tagName === "SELECT") return input.selectedOptions[0]?.textContent ?? "";
  const text = input.value.trim();
  if (text === "") return blank || "\u2013";
  const number = Number(ungroup(text));
  return Number.isInteger(number) ? grouped(number) : text;
}

function showReview() {
  for (const place of form.querySelectorAll("[data-review-of]")) {
    const input = form.elements.namedItem(place.dataset.reviewOf);
    if (!input) continue;
    place.textContent = shownValue(input, place.dataset.blank);
    const line = place.closest("[data-only-set]");
    if (line) line.hidden = input.value.trim() === "";
  }
  const own = budget();
  const most = mostCost();
  const kind = form.elements.namedItem("platform.kind")?.value;
  const simulated = kind === "simulated";
  const emulatedNote = review.querySelector("[data-emulated-note]");
  const emulated = emulatedNote?.dataset.emulatedNote.split(" ").includes(kind) ?? false;
  if (emulatedNote) emulatedNote.hidden = !emulated;
  review.classList.toggle("simulated", simulated || emulated);
  review.querySelector("[data-simulated-note]").hidden = !simulated;
  const amount = form.querySelector("[data-budget]");
  const unpaid = simulated ? " sim." : emulated ? " emul." : "";
  amount.textContent = own === null ? "\u2013" : money(own) + unpaid;
  review.querySelector("[data-worst-case]").textContent = worstCase(most, own, seeds());
  launch.textContent = most === null ? "Launch" : `Launch \u2013 at most ${money(most)}`;
}

/** Shows how many folded settings have a problem or were changed. */
function showFolded(changes) {
  const note = form.querySelector("[data-step-note]");
  const part = document.getElementById(note.dataset.stepNote);
  const faults = part.querySelectorAll("[aria-invalid='true']").length;
  const changed = changes.filter((one) => part.contains(one.field)).length;
  note.textContent = faults ? `${faults} to look at` : changed ? `${changed} changed` : "";
  note.classList.toggle("wrong", faults > 0);
}

function showFirstProblem() {
  const wrong = form.querySelector("[aria-invalid='true']");
  if (!wrong) return;
  wrong.focus({ preventScroll: true });
  wrong.scrollIntoView({ block: "center" });
}

function show() {
  showVariants(form);
  showReview();
  const changes = markChanges(form);
  listChanges(form, changes);
  showFolded(changes);
}

keepTyped(form);
startVariants(form);
form.addEventListener("input", show);
form.addEventListener("checked", showReview);
form.addEventListener("submit", (event) => {
  if (event.submitter === null || event.submitter === launch) launch.disabled = true;
});
form.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit(launch);
});
// After the browser's Back button the launch button must be usable again.
addEventListener("pageshow", () => {
  launch.disabled = false;
  show();
});
startMarks(form);
startDraft(form);
show();
showFirstProblem();
