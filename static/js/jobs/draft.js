/** Saves a draft's form shortly after the last change, and shows when it was saved or why not. */
const PAUSE_MS = 1200;

export function startDraft(form) {
  const status = form.querySelector("[data-draft]");
  if (!status.dataset.draft) return;
  let waiting = null;
  let leaving = false;

  async function save() {
    const body = new URLSearchParams(new FormData(form));
    body.set("save", "1");
    const headers = { Accept: "application/json", "X-CSRFToken": body.get("csrfmiddlewaretoken") };
    try {
      const answer = await fetch(form.action, { method: "POST", body, headers });
      if (leaving) return;
      if (answer.redirected || !answer.headers.get("Content-Type")?.includes("json")) throw new Error();
      const { saved_at: savedAt, refused } = await answer.json();
      status.textContent = refused ? `Not saved. ${refused}` : `Draft, saved ${clock(savedAt)}.`;
    } catch {
      if (!leaving) status.textContent = "Not saved: the site was not reached. The next change tries again.";
    }
  }

  form.addEventListener("input", () => {
    status.textContent = "Not saved yet\u2026";
    clearTimeout(waiting);
    waiting = setTimeout(save, PAUSE_MS);
  });
  form.addEventListener("submit", (event) => {
    clearTimeout(waiting);
    leaving = !event.submitter?.hasAttribute("data-stays");
  });
}

function clock(moment) {
  return new Date(moment).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
