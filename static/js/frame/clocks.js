/** Keeps <time data-elapsed> true: "since" shows 12 min, "ago" shows 12 min ago. The exact moment is on hover. */
import { elapsed } from "../format.js";

const LOCAL = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const ZONE = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
/** As sentences have it: "14:20 UTC (± 6 min)", "14:20 UTC on 22 November", "22 November, 14:20 UTC". */
const IN_UTC = /(?:(\d{1,2} [A-Z][a-z]+),? )?(\d\d:\d\d) UTC(?: on (\d{1,2} [A-Z][a-z]+))?(?: \((±[^)]*)\))?/g;

/** A sentence with the reader's own time before each moment in UTC: "19:50 (14:20 UTC, ± 6 min)". */
export function inLocalTime(words, now = new Date()) {
  return words?.replace(IN_UTC, (text, before, time, after, doubt) => {
    const day = before ?? after ?? `${now.getUTCDate()} ${now.toLocaleString("en-GB", { month: "long", timeZone: "UTC" })}`;
    const moment = new Date(`${day} ${now.getUTCFullYear()} ${time} UTC`);
    if (Number.isNaN(moment.getTime()) || moment.getTimezoneOffset() === 0) return text;
    const elsewhere = DAY.format(moment) === DAY.format(now) ? "" : `${DAY.format(moment)} `;
    const utc = doubt ? text.replace(` (${doubt})`, `, ${doubt}`) : text;
    return `${elsewhere}${CLOCK.format(moment)} (${utc})`;
  });
}

/** @param {HTMLElement} element */
export function setElapsed(element) {
  const seconds = (Date.now() - Date.parse(element.getAttribute("datetime"))) / 1000;
  const text = elapsed(seconds);
  const isAgo = element.dataset.elapsed === "ago";
  const shown = text === "now" ? (isAgo ? text : "a second") : isAgo ? `${text} ago` : text;
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
  for (const element of document.querySelectorAll("[data-moments]")) element.textContent = inLocalTime(element.textContent);
  setInterval(() => document.querySelectorAll("time[data-elapsed]").forEach(setElapsed), 1000);
}
