/** The lines about running cloud resources: fetched again while the page is visible. */
const EVERY_MS = 5000;

for (const place of document.querySelectorAll("[data-resources]")) keepFresh(place);

function keepFresh(place) {
  setTimeout(async () => keepFresh(document.hidden ? place : await again(place)), EVERY_MS);
}

async function again(place) {
  try {
    const answer = await fetch(place.dataset.resources, { headers: { Accept: "text/html" } });
    if (!answer.ok || answer.redirected) return place;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-resources]");
    // A reader who is at a link keeps it.
    if (!fresh || place.contains(document.activeElement)) return place;
    place.replaceWith(fresh);
    return fresh;
  } catch {
    return place; // no network: the next look tries again
  }
}
