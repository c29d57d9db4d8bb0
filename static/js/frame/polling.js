/** Parts of a page that the server draws again while something changes there. Hidden pages wait. */

/** @returns {Promise<string|null>} the server's markup; null where it refuses, or is not reached: the next poll tries again */
export async function fetchMarkup(address) {
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    return answer.ok && !answer.redirected ? await answer.text() : null;
  } catch {
    return null;
  }
}

/** The elements of our own server's markup, which escapes everything in it. */
export function parseMarkup(markup) {
  return new DOMParser().parseFromString(markup, "text/html").body;
}

/**
 * Fetches the markup of `address()` again and again, and passes it to `take`.
 * @param {() => number|false} everyMs how long to wait for the next poll; false ends it
 * @param {() => boolean} [wanted] whether the page may change now
 */
export function startPolling({ address, take, everyMs, wanted = () => true }) {
  async function look() {
    const markup = !document.hidden && wanted() ? await fetchMarkup(address()) : null;
    try {
      if (markup !== null) take(markup);
    } finally {
      wait();
    }
  }

  function wait() {
    const pause = everyMs();
    if (pause) setTimeout(look, pause);
  }

  wait();
}
