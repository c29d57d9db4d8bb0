/**
 * Says on an open page why it shows nothing new: its reader was signed out, by another tab or by time, or the site does
 * not respond. The bell's poll finds out on every page; a page that polls by itself may ask, too.
 */
const GONE_MS = 10_000;
const template = document.querySelector("template[data-signed-out]");
const goneTemplate = document.querySelector("template[data-site-gone]");
let said = false;
let reachedAt = Date.now();
let gone = null;

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
  if (answer.status >= 500) sayGone();
  else sayBack();
  return answer.ok && !answer.redirected;
}

/** The site failed to answer a poll. A page with a live mark of its own says so itself. */
export function sayGone() {
  if (gone || !goneTemplate || Date.now() - reachedAt < GONE_MS || document.querySelector("[data-stale]")) return;
  document.querySelector("[data-messages]").append(goneTemplate.content.cloneNode(true));
  gone = document.querySelector("[data-messages]").lastElementChild;
}

function sayBack() {
  reachedAt = Date.now();
  gone?.remove();
  gone = null;
}
