/** Keys without Ctrl: ? lists them, g and a letter goes to a place. That list also switches them off. */
import { foldRail } from "./rail.js";

const WAIT_MS = 1500;
const dialog = document.getElementById("keys");
let leading = -Infinity;

function wanted() {
  try {
    return localStorage.getItem("single-keys") !== "off";
  } catch {
    return true;
  }
}

/** Whether what is pressed is meant for the element that has the focus, or for a dialog. */
function taken(event) {
  // A field in a dialog that was closed just now keeps the focus for a moment.
  const element = event.target.closest("dialog:not([open])") ? document.body : event.target;
  return (
    event.ctrlKey || event.metaKey || event.altKey || event.isComposing ||
    element.closest("input, textarea, select, [contenteditable], [role=slider], dialog[open]") !== null ||
    document.querySelector("dialog[open]") !== null
  );
}

function press(event) {
  if (taken(event) || !wanted()) return;
  const after = performance.now() - leading < WAIT_MS;
  leading = -Infinity;
  if (after) {
    const place = document.querySelector(`.rail a[data-key="${CSS.escape(event.key)}"]`);
    if (place) event.preventDefault();
    place?.click();
    return;
  }
  const act = { "?": () => dialog.showModal(), g: () => (leading = performance.now()), n: newJob, t: otherTheme, f: foldRail }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function newJob() {
  const jobs = document.querySelector('.rail a[data-key="j"]');
  if (jobs) location.assign(`${jobs.getAttribute("href")}new/`);
}

function otherTheme() {
  const other = document.documentElement.dataset.bsTheme === "dark" ? "light" : "dark";
  document.querySelector(`button[data-theme=${other}]`)?.click();
}

export function startKeys() {
  if (!dialog) return;
  document.addEventListener("keydown", press);
  const box = dialog.querySelector("[data-single-keys]");
  box.checked = wanted();
  box.addEventListener("change", () => {
    try {
      localStorage.setItem("single-keys", box.checked ? "on" : "off");
    } catch {
      // Storage is switched off: it holds for this page.
    }
  });
}
