/** A select with data-submit-on-change sends its form as soon as another value is chosen. */
export function startForms() {
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
  });
}
