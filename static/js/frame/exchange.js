/** Replaces a place by markup of our own server, which escaped it; what the person has opened stays open. */
export function exchange(place, markup) {
  const opened = [...place.querySelectorAll("details")].map((one) => one.open);
  place.innerHTML = markup;
  place.querySelectorAll("details").forEach((one, at) => (one.open = opened[at] ?? one.open));
}
