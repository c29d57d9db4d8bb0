/**
 * The palette: Ctrl-K opens it, the server answers what is typed, arrows choose, Enter goes there.
 * The focus stays in the field; aria-activedescendant says which option is chosen.
 */
const dialog = document.querySelector("[data-palette]");
const field = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
const WAIT_MS = 120;
let timer = 0;
let latest = 0;

const options = () => [...list.querySelectorAll("[role=option]")];
const chosen = () => list.querySelector("[aria-selected=true]");

/** @param {HTMLElement|undefined} option */
function choose(option) {
  for (const one of options()) one.setAttribute("aria-selected", String(one === option));
  if (!option) return field.removeAttribute("aria-activedescendant");
  field.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

async function ask() {
  const turn = ++latest;
  const address = new URL(dialog.dataset.palette, location.href);
  address.searchParams.set("options", "1");
  address.searchParams.set("q", field.value);
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (turn !== latest) return; // the text has changed since
    if (!answer.ok || answer.redirected) throw new Error(`status ${answer.status}`);
    list.innerHTML = await answer.text();
  } catch {
    if (turn === latest) say("The site does not answer just now. Type again in a moment.");
    return;
  }
  options().forEach((option, at) => (option.id = `palette-option-${at}`));
  choose(options()[0]);
  const count = options().length;
  say(count ? `${count} found. Arrows choose, Enter goes there.` : "Nothing has all of these words. Try fewer of them.");
}

function say(words) {
  dialog.querySelector("[data-palette-words]").textContent = words;
}

function go(option, { elsewhere = false } = {}) {
  if (!option) return;
  if (elsewhere) {
    window.open(option.dataset.href, "_blank", "noopener");
    return;
  }
  dialog.close();
  location.assign(option.dataset.href);
}

function move(event) {
  const all = options();
  const at = all.indexOf(chosen());
  const to = { ArrowDown: (at + 1) % all.length, ArrowUp: (at - 1 + all.length) % all.length }[event.key];
  if (to !== undefined && all.length) {
    event.preventDefault();
    choose(all[to]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    go(chosen(), { elsewhere: event.ctrlKey || event.metaKey });
  }
}

export function openPalette() {
  if (!dialog || dialog.open) return;
  field.value = "";
  dialog.showModal();
  field.focus();
  ask();
}

export function startPalette() {
  if (!dialog) return;
  document.querySelector("[data-palette-opener]").addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openPalette();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
    if (document.querySelector("dialog[open]:not(#palette)")) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else openPalette();
  });
  field.addEventListener("keydown", move);
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT_MS);
  });
  list.addEventListener("pointermove", (event) => {
    const option = event.target.closest("[role=option]");
    if (option && option !== chosen()) choose(option);
  });
  list.addEventListener("click", (event) => go(event.target.closest("[role=option]"), { elsewhere: event.ctrlKey || event.metaKey }));
}
