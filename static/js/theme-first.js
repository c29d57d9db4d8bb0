/* Sets the theme, and the rail as it was left, before anything is painted: a plain script, as modules run too late. */
(() => {
  var root = document.documentElement;
  var match = document.cookie.match(/(?:^|; )theme=(light|dark|system)/);
  var wanted = match ? match[1] : "system";
  try {
    wanted = localStorage.getItem("theme") || wanted;
    root.dataset.rail = localStorage.getItem("rail") || "open";
  } catch {
    // Storage is switched off: the cookie is enough.
  }
  var dark = wanted === "dark" || (wanted !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.bsTheme = dark ? "dark" : "light";
  root.dataset.themeWanted = wanted;
  root.classList.add("js");
})();
