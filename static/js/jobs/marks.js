/** Marks on fields that differ from what the form began with, each with a way back. The server draws the same ones. */

/** A value so that two that mean the same are the same: 100,000 and 100000, 0.50 and 0.5. */
function meant(text) {
  const bare = text.trim();
  const number = Number(bare.replace(/[\s,_]/g, ""));
  return bare !== "" && Number.isFinite(number) ? String(number) : bare;
}

function controlOf(field) {
  return field.querySelector("input, select");
}

function valueOf(control) {
  return control.type === "checkbox" ? (control.checked ? "True" : "False") : control.value;
}

/** What stood there, as its control shows it. */
function words(control, was) {
  if (control.type === "checkbox") return was === "True" ? "on" : "off";
  if (control.tagName === "SELECT") return [...control.options].find((one) => one.value === was)?.textContent ?? was;
  return was === "" ? "empty" : was;
}

function shown(field) {
  return field.closest(".variant:not(.variant-words):not(.selected)") === null;
}

function mark(field, control, was, label) {
  const line = document.createElement("p");
  line.className = "changed";
  line.dataset.changed = "";
  const back = document.createElement("button");
  back.className = "back";
  back.name = "back";
  back.value = control.name;
  back.textContent = "Back";
  back.setAttribute("aria-label", `${label}: back to ${words(control, was)}`);
  line.append(`changed from ${words(control, was)} `, back);
  (field.querySelector(".with-unit") ?? field.querySelector("label")).after(line);
}

/** Draws and removes the marks; what is changed and asked for, in the order of the page. */
export function markChanges(form) {
  const changes = [];
  for (const field of form.querySelectorAll("[data-was]")) {
    const control = controlOf(field);
    const was = field.dataset.was;
    const changed = meant(valueOf(control)) !== meant(was);
    const line = field.querySelector("[data-changed]");
    const label = field.querySelector("label").textContent;
    if (changed && !line) mark(field, control, was, label);
    if (!changed && line) line.remove();
    if (changed && shown(field) && !["name", "tags", "group"].includes(control.name)) {
      const now = words(control, valueOf(control));
      changes.push({ field, text: `${label}: ${words(control, was)} \u2192 ${now}` });
    }
  }
  return changes;
}

/** The same changes as a list, for the review. */
export function listChanges(form, changes) {
  const list = form.querySelector("[data-changes]");
  if (!list) return;
  const rows = changes.map(({ text }) => {
    const row = document.createElement("li");
    row.textContent = text;
    return row;
  });
  if (!rows.length) {
    const none = document.createElement("li");
    none.className = "secondary";
    none.textContent = "Nothing.";
    rows.push(none);
  }
  list.replaceChildren(...rows);
}

/** Going back happens on the page itself, with nothing sent. */
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
