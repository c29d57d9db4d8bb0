/** Puts our own server's markup, with everything in it escaped there, into a place; what somebody has opened stays open. */
export function exchange(place, markup) {
  const opened = [...place.querySelectorAll("details")].map((one) => one.open);
  place.innerHTML = markup;
  place.querySelectorAll("details").forEach((one, at) => (one.open = opened[at] ?? one.open));
}
