/** Tabs whose address is the part after #; without a script all parts stand one below the other. */
export function startTabs(onShow) {
  const tabs = [...document.querySelectorAll("[data-tabs] [role=tab]")];
  const show = (wanted) => {
    const chosen = tabs.find((tab) => tab.hash === wanted) ?? tabs[0];
    for (const tab of tabs) {
      const selected = tab === chosen;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      document.querySelector(tab.hash).hidden = !selected;
    }
    onShow();
  };
  for (const [at, tab] of tabs.entries()) {
    tab.addEventListener("click", (event) => {
      event.preventDefault();
      history.replaceState(null, "", tab.hash);
      show(tab.hash);
    });
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = tabs[(at + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  }
  addEventListener("hashchange", () => show(location.hash));
  show(location.hash);
}
