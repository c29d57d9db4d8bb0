/** Keeps <time data-elapsed> true: "since" shows 12 min, "ago" shows 12 min ago. */
import { elapsed } from "../format.js";

/** @param {HTMLElement} element */
export function setElapsed(element) {
  const seconds = (Date.now() - Date.parse(element.getAttribute("datetime"))) / 1000;
  const text = elapsed(seconds);
  const shown = element.dataset.elapsed === "ago" && text !== "now" ? `${text} ago` : text;
  if (element.textContent !== shown) element.textContent = shown;
}

/** A <time> for an ISO moment. */
export function timeElement(iso, style = "ago") {
  const element = document.createElement("time");
  element.setAttribute("datetime", iso);
  element.title = new Date(iso).toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC");
  element.dataset.elapsed = style;
  setElapsed(element);
  return element;
}

export function startClocks() {
  setInterval(() => document.querySelectorAll("time[data-elapsed]").forEach(setElapsed), 1000);
}
