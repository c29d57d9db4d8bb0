/** The form for a scheduler's training: of each choice, only the words of what is chosen are shown. */
const form = document.querySelector("[data-scheduler-form]");

function showChosen() {
  for (const words of form.querySelectorAll("[data-variant]")) {
    const control = form.elements.namedItem(words.dataset.of);
    words.classList.toggle("selected", control.value === words.dataset.variant);
  }
}

form.addEventListener("change", showChosen);
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
