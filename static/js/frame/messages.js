/** Messages can be closed; good news goes by itself after 8 s, unless the pointer or the focus rests on it. */
const LIFETIME_MS = 8000;

export function startMessages() {
  for (const message of document.querySelectorAll("[data-message]")) {
    const close = message.querySelector("[data-close]");
    close.hidden = false;
    close.addEventListener("click", () => message.remove());
    if (!message.classList.contains("message-error")) goLater(message);
  }
}

function goLater(message) {
  setTimeout(() => (message.matches(":hover, :focus-within") ? goLater(message) : message.remove()), LIFETIME_MS);
}
