/** Keeps <time data-elapsed> true: "since" shows 12 min, "ago" shows 12 min ago. The exact moment is on hover. */
import { elapsed } from "../format.js";

const LOCAL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const ZONE = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });

/** @param {HTMLElement} element */
export function setElapsed(element) {
  const seconds = (Date.now() - Date.parse(element.getAttribute("datetime"))) / 1000;
  const text = elapsed(seconds);
  const shown = element.dataset.elapsed === "ago" && text !== "now" ? `${text} ago` : text;
  if (element.textContent !== shown) element.textContent = shown;
  if (!element.dataset.exact) setExact(element);
}

/** The moment where the reader is, and in UTC, as reports and logs have it. */
function setExact(element) {
  const moment = new Date(element.getAttribute("datetime"));
  if (Number.isNaN(moment.getTime())) return;
  const utc = moment.toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC");
  const zone = ZONE.formatToParts(moment).find((part) => part.type === "timeZoneName").value;
  element.title = zone === "UTC" ? utc : `${LOCAL.format(moment)} ${zone} · ${utc}`;
  element.dataset.exact = "";
}

/** A <time> for an ISO moment. */
export function timeElement(iso, style = "ago") {
  const element = document.createElement("time");
  element.setAttribute("datetime", iso);
  element.dataset.elapsed = style;
  setElapsed(element);
  return element;
}

export function startClocks() {
  document.querySelectorAll("time[datetime]").forEach(setExact);
  setInterval(() => document.querySelectorAll("time[data-elapsed]").forEach(setElapsed), 1000);
}
