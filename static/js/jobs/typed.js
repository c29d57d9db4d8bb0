/** Keeps what was typed in the job form when it is sent, and fills it in again if the reader comes back by the browser's Back. */
const OF_THE_PAGE = new Set(["csrfmiddlewaretoken", "idempotency_key"]);
const place = () => `typed ${location.pathname}${location.search}`;

export function keepTyped(form) {
  form.addEventListener("submit", () => {
    const typed = [...new FormData(form)].filter(([name, value]) => !OF_THE_PAGE.has(name) && typeof value === "string");
    try {
      sessionStorage.setItem(place(), JSON.stringify(typed));
    } catch {
      // Storage is full or switched off: the form is then as the site draws it.
    }
  });
  if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") fillIn(form);
}

function fillIn(form) {
  let typed = null;
  try {
    typed = JSON.parse(sessionStorage.getItem(place()));
  } catch {
    // Storage is switched off.
  }
  if (!typed) return;
  const values = new Map(typed);
  for (const control of form.elements) {
    if (!control.name || OF_THE_PAGE.has(control.name)) continue;
    if (control.type === "checkbox") control.checked = values.has(control.name);
    else if (control.tagName !== "BUTTON" && values.has(control.name)) control.value = values.get(control.name);
  }
}
