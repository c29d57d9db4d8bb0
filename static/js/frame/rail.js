/** The rail of places, with names or as icons alone: kept in this browser, put in place before the paint by theme-first.js. */
const root = document.documentElement;

export function foldRail() {
  const folded = root.dataset.rail !== "folded";
  root.dataset.rail = folded ? "folded" : "open";
  try {
    localStorage.setItem("rail", root.dataset.rail);
  } catch {
    // Storage is switched off: it holds for this page.
  }
}

export function startRail() {
  document.querySelector("[data-fold-rail]")?.addEventListener("click", foldRail);
}
