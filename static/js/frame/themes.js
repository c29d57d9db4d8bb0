/** Light, dark or like the system: kept in this browser; the event "starling:theme" tells charts. */
const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;

/** @param {"light"|"dark"|"system"} wanted */
function apply(wanted) {
  root.dataset.themeWanted = wanted;
  const theme = wanted === "system" ? (system.matches ? "dark" : "light") : wanted;
  for (const button of document.querySelectorAll("[data-theme]")) {
    button.setAttribute("aria-pressed", String(button.dataset.theme === wanted));
  }
  if (root.dataset.bsTheme === theme) return;
  root.dataset.bsTheme = theme;
  document.dispatchEvent(new CustomEvent("starling:theme"));
}

function keep(wanted) {
  document.cookie = `theme=${wanted}; path=/; max-age=31536000; samesite=lax`;
  try {
    localStorage.setItem("theme", wanted);
  } catch {
    // Storage is switched off: the cookie is enough.
  }
}

export function startThemes() {
  apply(root.dataset.themeWanted || "system");
  system.addEventListener("change", () => apply(root.dataset.themeWanted));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-theme]");
    if (!button) return;
    keep(button.dataset.theme);
    apply(button.dataset.theme);
    const menu = button.closest("details");
    if (menu) menu.open = false;
  });
}
