/** Figures, money and times in words; the server's twin is webapp/templatetags/look.py. */

export const UNKNOWN = "\u2013";

/** Dollars: two digits from $1 on, three significant ones below. @param {string|number|null} usd */
export function money(usd) {
  if (usd === null || usd === undefined || usd === "") return UNKNOWN;
  const value = Number(usd);
  const size = Math.abs(value);
  const sign = value < 0 ? "-" : "";
  if (size >= 1 || size === 0) return sign + "$" + grouped(size, 2);
  let places = Math.max(2, 2 - Math.floor(Math.log10(size)));
  if (Number(size.toFixed(places)) >= 1) places = 2;
  return sign + "$" + size.toFixed(places);
}

/** A number with thousands separators. */
export function grouped(value, places = 0) {
  return value.toLocaleString("en-GB", { minimumFractionDigits: places, maximumFractionDigits: places });
}

export function count(value) {
  return value === null || value === undefined ? UNKNOWN : grouped(value);
}

/** A tick between whole numbers of something countable says nothing. */
export function wholeCount(value) {
  return Number.isInteger(value) ? grouped(value) : "";
}

/** A return: one decimal under a thousand, none above. */
export function score(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return grouped(value, Math.abs(value) < 1000 ? 1 : 0).replace("-", "\u2212");
}

/** Any other figure: three significant digits, thousands grouped. */
export function figures(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return value.toLocaleString("en-GB", { maximumSignificantDigits: 3 }).replace("-", "\u2212");
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.floor(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${grouped(Math.floor(whole / 3600))} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** A short time, as of a call or a round: three significant digits. */
export function shortTime(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  return seconds > 0 && seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${Number(seconds.toPrecision(3))} s`;
}

/** Seconds at a tick of an axis: 30 s, 2 min, 1 h 30 min. */
export function axisTime(seconds) {
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min${seconds % 60 ? ` ${Math.round(seconds % 60)} s` : ""}`;
  return `${grouped(Math.floor(minutes / 60))} h${minutes % 60 ? ` ${minutes % 60} min` : ""}`;
}

/** Dollars at a tick of an axis: $0, $0.5, $1,200. */
export function axisMoney(usd) {
  return `$${Number(usd.toPrecision(3)).toLocaleString("en-GB", { maximumFractionDigits: 9 })}`;
}

/** How long something is ago, in its largest unit. */
export function elapsed(seconds) {
  if (seconds < 1) return "now";
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return `${Math.floor(seconds)} s`;
}

/** "1 call", "16 calls". */
export function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? "" : "s"}`;
}
