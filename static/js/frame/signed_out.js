/** Says on an open page that its reader was signed out, by another tab or by time, with a link that comes back here. */
const template = document.querySelector("template[data-signed-out]");
let said = false;

/**
 * @param {Response} answer to a request of this page
 * @returns {boolean} whether it leads to the sign-in page
 */
export function isSignIn(answer) {
  return Boolean(template) && answer.redirected && new URL(answer.url).pathname === template.dataset.signedOut;
}

export function saySignedOut() {
  if (said || !template) return;
  said = true;
  const message = template.content.cloneNode(true);
  message.querySelector("a").href = `${template.dataset.signedOut}?${new URLSearchParams({ next: location.pathname + location.search })}`;
  document.querySelector("[data-messages]").append(message);
}

/**
 * @param {Response} answer to a poll of this page
 * @returns {boolean} whether it can be used; says so if it leads to the sign-in page
 */
export function isUsable(answer) {
  if (isSignIn(answer)) saySignedOut();
  return answer.ok && !answer.redirected;
}
