/** The line above a chart that says what is under the cursor, or what came last: of fixed height, so nothing jumps. */

/** What marks an entry: a line, a dashed line, a dot or a filled box, so that colour is not the only sign. */
const KEYS = {
  line: '<path d="M0 4h12" stroke-width="2"/>',
  dashed: '<path d="M0 4h4M8 4h4" stroke-width="2"/>',
  dot: '<circle cx="6" cy="4" r="3" fill="currentColor" stroke="none"/>',
  box: '<rect width="12" height="8" rx="1.5" fill="currentColor" stroke="none"/>',
  band: '<rect width="12" height="8" rx="1.5" fill="currentColor" stroke="none" opacity=".3"/>',
  tick: '<path d="M6 0v8" stroke-width="2"/>',
};

/** @param {HTMLElement} legend @param {{name: string, value: string, mark?: string, variable?: string}[]} entries */
export function writeLegend(legend, entries) {
  while (legend.children.length > entries.length) legend.lastChild.remove();
  entries.forEach((entry, at) => writeEntry(legend.children[at] ?? legend.appendChild(newEntry()), entry));
}

function newEntry() {
  const entry = document.createElement("span");
  entry.className = "entry";
  entry.innerHTML = '<svg class="key" viewBox="0 0 12 8" fill="none" stroke="currentColor" aria-hidden="true"></svg><span></span><b></b>';
  return entry;
}

function writeEntry(element, entry) {
  const [key, name, value] = element.children;
  key.style.display = entry.mark ? "" : "none";
  if (entry.mark && key.dataset.mark !== entry.mark) {
    key.dataset.mark = entry.mark;
    key.innerHTML = KEYS[entry.mark];
  }
  if (entry.variable) key.style.color = `var(${entry.variable})`;
  if (name.textContent !== entry.name) name.textContent = entry.name;
  if (value.textContent !== entry.value) value.textContent = entry.value;
}
