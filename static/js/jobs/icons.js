/** Icons that the server put into the page's template, as copies. */
const drawings = document.getElementById("icons").content;

/** @param {string} name */
export function icon(name) {
  const found = drawings.querySelector(`[data-icon="${name}"] svg`);
  return found ? found.cloneNode(true) : document.createElement("span");
}
