/* Sets the theme before anything is painted; a plain script in the head, because modules run too late for that. */
(function () {
  var match = document.cookie.match(/(?:^|; )theme=(light|dark|system)/);
  var wanted = match ? match[1] : "system";
  try {
    wanted = localStorage.getItem("theme") || wanted;
  } catch (refused) {
    // Storage is switched off: the cookie is enough.
  }
  var dark = wanted === "dark" || (wanted !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.bsTheme = dark ? "dark" : "light";
  document.documentElement.dataset.themeWanted = wanted;
  document.documentElement.classList.add("js");
})();
