/** Figures, money and times in words; the server's twin is webapp/formatting.py, and one test holds both to one table. */

export const UNKNOWN = "\u2013";
/** As the server rounds: half-way goes to the even digit, and what rounds to nothing has no sign. */
const AS_SERVER = { roundingMode: "halfEven", signDisplay: "negative" };

/** Dollars: two digits from $1 on, three significant ones below. @param {string|number|null} usd */
export function money(usd) {
  if (usd === null || usd === undefined || usd === "") return UNKNOWN;
  const value = Number(usd);
  const size = Math.abs(value);
  const sign = value < 0 ? "-" : "";
  let places = size >= 1 || size === 0 ? 2 : Math.min(12, Math.max(2, 2 - Math.floor(Math.log10(size))));
  if (Number(size.toFixed(places)) >= 1) places = 2;
  // Text is rounded as it is written, half up as bills are: as a number, $1.005 would be a little less.
  const digits = new Intl.NumberFormat("en-GB", { minimumFractionDigits: places, maximumFractionDigits: places });
  return `${sign}$${digits.format(String(usd).replace(/^-/, ""))}`;
}

/** A number with thousands separators. */
export function grouped(value, places = 0) {
  return value.toLocaleString("en-GB", { minimumFractionDigits: places, maximumFractionDigits: places, ...AS_SERVER });
}

/** To three digits that count, with thousands separators. */
function threeDigits(value) {
  return value.toLocaleString("en-GB", { maximumSignificantDigits: 3, ...AS_SERVER }).replace("-", "\u2212");
}

export function count(value) {
  return value === null || value === undefined ? UNKNOWN : grouped(value);
}

/** A tick between whole numbers of something countable says nothing. */
export function wholeCount(value) {
  return Number.isInteger(value) ? grouped(value) : "";
}

/** A score: with its decimals under a thousand, with none above. */
export function score(value, decimals = 1) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return grouped(value, Math.abs(value) < 999.95 ? decimals : 0).replace("-", "\u2212");
}

/** A score at a tick of an axis. */
export function axisScore(value, decimals = 1) {
  return score(value, decimals).replace(/\.0+$/, "");
}

/** A number at a tick of an axis, with as many decimals as tell ticks that are so far apart from each other. */
export function axisNumber(value, apart) {
  const steps = [...Array(13).keys()].map((places) => apart * 10 ** places);
  const places = steps.findIndex((step) => Math.abs(step - Math.round(step)) < 1e-6 * step);
  return value === 0 ? "0" : grouped(value, places < 0 ? 12 : places).replace("-", "\u2212");
}

/** Any other figure: three significant digits, thousands grouped. */
export function figures(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return threeDigits(value);
}

/** 8.2 s, 12 min 5 s, 3 h 20 min. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 0) return `\u2212${duration(-seconds)}`;
  if (seconds < 59.95) return `${grouped(seconds, 1)} s`;
  const whole = Math.max(60, Math.floor(seconds));
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${grouped(Math.floor(whole / 3600))} h ${Math.floor((whole % 3600) / 60)} min`;
}

/** As of a call or a round, to three digits: 350 ms, 8.21 s, 1,230 s. */
export function shortTime(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 0) return `\u2212${shortTime(-seconds)}`;
  if (seconds > 0 && seconds <= 0.0005) return "< 1 ms";
  return seconds > 0 && seconds < 0.9995 ? `${grouped(seconds * 1000)} ms` : `${threeDigits(seconds)} s`;
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

/** A typed number without "$" and marks between thousands; a comma that may be that of decimals stays, so it is no number. */
export function ungroup(text) {
  const bare = text.trim().replace(/^\$/, "").trim();
  const found = /^([+-]?)([1-9]\d{0,2}(?:([,_ \u00a0\u202f])\d{3})(?:\3\d{3})*)((?:\.\d*)?)$/.exec(bare);
  return found ? `${found[1]}${found[2].replaceAll(found[3], "")}${found[4]}` : bare;
}

const FORMULA = /(^[;\t\r\n]?|[;\t\r\n])(?=[\s\x00-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u2212])/g;

/** The text of a cell of a file, marked where a spreadsheet would run it as a formula; numbers as they are. */
export function harmless(value) {
  const text = String(value ?? "");
  if (typeof value === "number") return text;
  const marked = text.replace(FORMULA, "$1'");
  return /^[\t\r\n]/.test(marked) ? `'${marked}` : marked;
}
