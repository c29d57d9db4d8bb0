/**
 * A button with data-dialog="id" opens that dialog instead of submitting its form; without a script the form is
 * submitted at once. data-close inside the dialog closes it. A menu that the button is in closes, and has the focus
 * again after the dialog.
 */
export function startDialogs() {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener) {
      event.preventDefault();
      const menu = opener.closest("details.menu");
      if (menu) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
      document.getElementById(opener.dataset.dialog).showModal();
    }
    const closer = event.target.closest("dialog [data-close]");
    if (closer) closer.closest("dialog").close();
    if (event.target.tagName === "DIALOG") event.target.close();
  });
}
