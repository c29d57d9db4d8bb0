/** A form that is a draft keeps itself a moment after the last change, and says when it did or why it could not. */
const PAUSE_MS = 1200;

export function startDraft(form) {
  const told = form.querySelector("[data-draft]");
  if (!told.dataset.draft) return;
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
      told.textContent = refused ? `Not saved. ${refused}` : `Draft, saved ${clock(savedAt)}.`;
    } catch {
      if (!leaving) told.textContent = "Not saved: the site was not reached. It is tried again after the next change.";
    }
  }

  form.addEventListener("input", () => {
    told.textContent = "Not saved yet\u2026";
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
