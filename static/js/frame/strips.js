/** Tabs and filters that are wider than a phone begin with the chosen one in sight. The page itself does not move. */
export function startStrips() {
  for (const chosen of document.querySelectorAll(":is(.tabs, .segmented) > [aria-current]")) {
    for (let strip = chosen.parentElement; strip && strip !== document.body; strip = strip.parentElement) {
      if (strip.scrollWidth <= strip.clientWidth) continue;
      const beyond = chosen.getBoundingClientRect().right - strip.getBoundingClientRect().right;
      if (beyond > 0) strip.scrollLeft += beyond;
      break;
    }
  }
}
