/** Shows the form's chosen variants. Fields that two variants share keep their value at a switch. */

function choicesOf(form) {
  const names = new Set([...form.querySelectorAll("div.variant")].map((one) => one.dataset.of));
  return [...names].map((name) => form.elements.namedItem(name));
}

/** A variant's controls by question; controls of two variants with the same question share their value. */
function byQuestion(form, choice, tag) {
  const variant = `div.variant[data-of="${choice.name}"][data-variant="${tag}"]`;
  const fields = [...form.querySelectorAll(`${variant} [data-question]`)];
  return new Map(fields.map((field) => [field.dataset.question, field.querySelector("input, select")]));
}

function takeOver(form, choice, before) {
  const source = byQuestion(form, choice, before);
  for (const [question, control] of byQuestion(form, choice, choice.value)) {
    const known = source.get(question);
    if (!known) continue;
    control.value = known.value;
    if (control.type === "checkbox") control.checked = known.checked;
  }
}

export function showVariants(form) {
  for (const variant of form.querySelectorAll("[data-variant]")) {
    const selector = form.elements.namedItem(variant.dataset.of);
    variant.classList.toggle("selected", selector.value === variant.dataset.variant);
  }
}

/** Must be registered before listeners that read the form. */
export function startVariants(form) {
  const chosen = new Map();
  const look = () => choicesOf(form).forEach((choice) => chosen.set(choice, choice.value));
  form.addEventListener("input", ({ target }) => {
    if (!chosen.has(target) || chosen.get(target) === target.value) return;
    takeOver(form, target, chosen.get(target));
    chosen.set(target, target.value);
  });
  // On Back, a browser restores the fields after this has run.
  addEventListener("pageshow", look);
  look();
}
