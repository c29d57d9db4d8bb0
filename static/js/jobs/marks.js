/** Marks on fields that differ from the form's starting point, each with a reset button. The server draws the same ones. */

/** A number with marks between its thousands, as `ungroup` of webapp/formatting.py reads it: the comma of 1,5 is none. */
const GROUPED = /^[+-]?[1-9]\d{0,2}([,_ \u00a0\u202f])\d{3}(?:\1\d{3})*(?:\.\d*)?$/;

/** Normalises a value or each item of a list, so that 100,000 equals 100000 and 0.50 equals 0.5. */
function meant(text, listed) {
  if (listed) return text.split(/[,;]/).map((one) => meant(one, false)).join(",");
  const bare = text.trim().replace(/^\$/, "").trim();
  const found = bare.match(GROUPED);
  const number = Number(found ? bare.replaceAll(found[1], "") : bare);
  return bare !== "" && Number.isFinite(number) ? String(number) : bare;
}

function controlOf(field) {
  return field.querySelector("input, select");
}

function typedIn(control) {
  return control.type === "checkbox" ? (control.checked ? "True" : "False") : control.value;
}

function optionOf(control, value) {
  return [...control.options].find((one) => one.value === value);
}

/** A value as its control shows it. */
function words(control, value) {
  if (control.type === "checkbox") return value === "True" ? "on" : "off";
  const shown = control.tagName === "SELECT" ? optionOf(control, value)?.textContent : value;
  return (shown ?? value) || "empty";
}

/** The field's starting value, as its own or another variant's control displays it. */
function wasWords(field, control) {
  return field.dataset.wasShown ?? words(control, field.dataset.was);
}

function shown(field) {
  return field.closest(".variant:not(.variant-words):not(.selected)") === null;
}

function mark(field, control, label) {
  const was = wasWords(field, control);
  const line = document.createElement("p");
  line.className = "changed";
  line.dataset.changed = "";
  line.append(`changed from ${was} `);
  if (control.tagName !== "SELECT" || optionOf(control, field.dataset.was)) {
    const back = document.createElement("button");
    back.className = "back";
    back.name = "back";
    back.value = control.name;
    back.textContent = "Back";
    back.setAttribute("aria-label", `${label}: back to ${was}`);
    line.append(back);
  }
  (field.querySelector(".with-unit") ?? field.querySelector("label")).after(line);
}

function labelOf(field) {
  return field.querySelector("label").textContent;
}

function fieldsOf(form, choice, tag, having) {
  const variant = `div.variant[data-of="${choice.name}"][data-variant="${tag}"]`;
  return [...form.querySelectorAll(`${variant} .field${having}`)];
}

/** Sentences about the fields that only one of a changed choice's two variants has. */
function onlyInOne(form, choice, was) {
  const above = choice.name.slice(0, choice.name.lastIndexOf(".") + 1);
  const has = (name) => form.elements.namedItem(`${above}${choice.value}.${name}`) !== null;
  const added = fieldsOf(form, choice, choice.value, "[data-not-in]").map((field) => {
    const control = controlOf(field);
    return `${labelOf(field)} ${words(control, typedIn(control))}`;
  });
  const gone = fieldsOf(form, choice, was, "[data-was]")
    .filter((field) => !has(controlOf(field).name.slice(`${above}${was}.`.length)))
    .map((field) => `${labelOf(field)} ${words(controlOf(field), field.dataset.was)}`);
  return [
    [choice.value, added],
    [was, gone],
  ]
    .filter(([, found]) => found.length)
    .map(([tag, found]) => `Only in ${words(choice, tag)}: ${found.join(", ")}.`);
}

/** Draws and removes the marks; returns the changes in the order of the page. */
export function markChanges(form) {
  const changes = [];
  for (const field of form.querySelectorAll("[data-was]")) {
    const control = controlOf(field);
    const was = field.dataset.was;
    const listed = "list" in field.dataset;
    const changed = meant(typedIn(control), listed) !== meant(was, listed);
    const line = field.querySelector("[data-changed]");
    const label = labelOf(field);
    if (changed && !line) mark(field, control, label);
    if (!changed && line) line.remove();
    if (changed && shown(field) && !["name", "tags", "group"].includes(control.name)) {
      const text = `${label}: ${wasWords(field, control)} \u2192 ${words(control, typedIn(control))}`;
      const inside = `div.variant[data-of="${control.name}"]`;
      // Another kind of training has hardly a field in common, so there is nothing to list field by field.
      const whole = form.querySelector(`${inside} div.variant`) !== null;
      const chooses = !whole && form.querySelector(inside) !== null;
      changes.push({ field, text, whole: whole ? inside : "", beside: chooses ? onlyInOne(form, control, was) : [] });
    }
  }
  const wholes = changes.map(({ whole }) => whole).filter(Boolean);
  return changes.filter(({ field }) => !wholes.some((inside) => field.closest(inside)));
}

/** The same changes as a list, for the review. */
export function listChanges(form, changes) {
  const list = form.querySelector("[data-changes]");
  if (!list) return;
  const rows = changes.map(({ text, beside }) => {
    const row = document.createElement("li");
    row.textContent = text;
    for (const sentence of beside) {
      const words = document.createElement("span");
      words.className = "beside secondary small";
      words.textContent = sentence;
      row.append(words);
    }
    return row;
  });
  list.replaceChildren(...rows);
  list.closest("[data-changed-part]").hidden = !rows.length;
}

/** Resetting happens on the page, without a request. */
export function startMarks(form) {
  form.addEventListener("click", (event) => {
    const button = event.target.closest("button.back");
    if (!button) return;
    event.preventDefault();
    const field = button.closest("[data-was]");
    const control = controlOf(field);
    if (control.type === "checkbox") control.checked = field.dataset.was === "True";
    else control.value = field.dataset.was;
    control.focus();
    control.dispatchEvent(new Event("input", { bubbles: true }));
  });
}
