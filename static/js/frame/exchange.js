/** Replaces what differs from a fresh drawing. Of what has `data-parts` only those parts; what has
 * `data-kept` stays, as its own program draws it. */
export function exchangeParts(here, fresh) {
  [...fresh.children].forEach((part, at) => {
    const shown = here.children[at];
    if (!shown) here.append(part.cloneNode(true));
    else if ("kept" in shown.dataset || shown.isEqualNode(part)) return;
    else if ("parts" in shown.dataset && "parts" in part.dataset) exchangeParts(shown, part);
    else shown.replaceWith(part.cloneNode(true));
  });
  while (here.children.length > fresh.children.length) here.lastElementChild.remove();
}

/** Gives fresh markup this page's token: that of a form differs each time and says nothing new. */
export function takeToken(fresh) {
  const token = document.querySelector("[name=csrfmiddlewaretoken]")?.value;
  for (const field of fresh.querySelectorAll("[name=csrfmiddlewaretoken]")) field.setAttribute("value", token);
}

/** Replaces a place by markup of our own server, which escaped it; what the person has opened stays open. */
export function exchange(place, markup) {
  const opened = [...place.querySelectorAll("details")].map((one) => one.open);
  place.innerHTML = markup;
  place.querySelectorAll("details").forEach((one, at) => (one.open = opened[at] ?? one.open));
}
