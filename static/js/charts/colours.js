/** The theme's colours, read from the same CSS variables as everything else. */

/** @param {string} name such as "--accent" */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A #rrggbb colour made see-through. */
export function faint(hex, opacity) {
  return hex + Math.round(opacity * 255).toString(16).padStart(2, "0");
}
