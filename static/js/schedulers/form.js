/**
 * The form for a scheduler's training: of each choice, only the words of what is chosen are shown, and workload and
 * agent follow each other.
 */
const form = document.querySelector("[data-scheduler-form]");
const agents = JSON.parse(document.getElementById("agents-of-workloads").textContent);

function showChosen() {
  for (const words of form.querySelectorAll("[data-variant]")) {
    const control = form.elements.namedItem(words.dataset.of);
    words.classList.toggle("selected", control.value === words.dataset.variant);
  }
}

function keepTogether({ target }) {
  const workload = form.elements.namedItem("workload");
  const agent = form.elements.namedItem("scheduling.kind");
  if (agents[workload.value] === agent.value) return;
  if (target === workload) agent.value = agents[workload.value];
  if (target === agent) workload.value = Object.keys(agents).find((name) => agents[name] === agent.value);
}

form.addEventListener("change", (event) => {
  keepTogether(event);
  showChosen();
});
form.addEventListener("submit", () => (form.querySelector("[data-train]").disabled = true));
// After the browser's Back button the launch button must be usable again.
addEventListener("pageshow", () => {
  form.querySelector("[data-train]").disabled = false;
  showChosen();
});
const wrong = form.querySelector("[aria-invalid='true']");
if (wrong) {
  wrong.focus({ preventScroll: true });
  wrong.scrollIntoView({ block: "center" });
}
