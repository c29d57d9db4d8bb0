/** A button with data-copy="name" copies the text of [data-copy-text="name"] and says so for 2 s. */
export function startCopying() {
  for (const button of document.querySelectorAll("[data-copy]")) {
    const words = button.querySelector("span");
    const before = words.textContent;
    button.addEventListener("click", async () => {
      const source = document.querySelector(`[data-copy-text="${button.dataset.copy}"]`);
      words.textContent = (await copied(source)) ? "Copied" : "Selected: press Ctrl-C";
      setTimeout(() => (words.textContent = before), 2000);
    });
  }
}

async function copied(source) {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    // Browsers allow the clipboard on https and localhost only.
    getSelection().selectAllChildren(source);
    return false;
  }
}
