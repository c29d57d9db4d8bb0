/** The log tab: appends new lines while "Follow" is on. */
const EVERY_MS = 1000;
const MOST_SHOWN = 2000;
const place = document.querySelector("[data-logs]");
const list = place.querySelector("[data-lines]");
const follow = place.querySelector("[data-follow]");
let position = place.dataset.position;

async function refresh() {
  if (!document.hidden && follow.checked) {
    try {
      const query = new URLSearchParams(location.search);
      query.set("after", position);
      const answer = await fetch(`${place.dataset.logs}?${query}`, { headers: { Accept: "text/html" } });
      if (answer.ok && !answer.redirected) take(await answer.text(), answer.headers.get("Starling-Position"));
    } catch {
      // No network: the next poll tries again.
    }
  }
  setTimeout(refresh, EVERY_MS);
}

/** A user who has scrolled up is reading: do not scroll. */
function take(markup, now) {
  position = now;
  const atFoot = list.scrollHeight - list.scrollTop - list.clientHeight < 24;
  const fresh = new DOMParser().parseFromString(`<ol>${markup}</ol>`, "text/html").querySelectorAll("li");
  if (!fresh.length) return;
  list.append(...fresh);
  place.querySelector("[data-log-words]").textContent = `${list.children.length} lines. Times are UTC.`;
  while (list.children.length > MOST_SHOWN) list.firstElementChild.remove();
  if (atFoot) list.scrollTop = list.scrollHeight;
}

place.querySelector("[data-follow-switch]").hidden = false;
list.scrollTop = list.scrollHeight;
if (place.dataset.over === "no") setTimeout(refresh, EVERY_MS);
