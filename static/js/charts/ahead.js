/** Where a job's spending is heading: a band from its last point to the line it meets, or to its own end. */

const RATE_OVER_POINTS = 40;
/** So far a chart looks ahead at most, beside what has passed: all charts share its range. */
const FURTHEST = 0.25;

/**
 * @param {{axes: object, length: number}} columns
 * @param {string} column of the horizontal axis
 * @param {{hourly_usd: number, doubt: number, line_usd: number, done_in_s: number|null}|null} ahead
 * @returns {{x: number[], low: number[], middle: number[], high: number[]}|null} the last point first
 */
export function bandOf(columns, column, ahead) {
  const last = columns.length - 1;
  if (!ahead || last < 2 || column === "spent_usd") return null;
  const { platform_s: time, spent_usd: spent } = columns.axes;
  const across = columns.axes[column];
  const first = Math.max(0, last - RATE_OVER_POINTS);
  const passed = time[last] - time[first];
  const speed = (across[last] - across[first]) / passed;
  const rate = ahead.hourly_usd / 3600;
  if (!(passed > 0) || !(speed > 0) || !(rate > 0)) return null;
  const most = (FURTHEST * (across[last] - across[0])) / speed;
  const times = moments(ahead, rate, spent[last], most);
  const spending = (share) => times.map((s) => Math.min(Math.max(spent[last], ahead.line_usd), spent[last] + rate * share * s));
  return {
    x: times.map((s) => across[last] + speed * s),
    low: spending(1 - ahead.doubt),
    middle: spending(1),
    high: spending(1 + ahead.doubt),
  };
}

/** Seconds from now at which one of the lines turns: where it meets the limit, where the job or the chart ends. */
function moments({ doubt, line_usd: line, done_in_s: done }, rate, spent, most) {
  const left = Math.max(0, line - spent);
  const meets = [1 + doubt, 1, 1 - doubt].map((share) => (share > 0 ? left / (rate * share) : Infinity));
  const end = Math.min(meets[2], done ?? Infinity, most);
  const inside = meets.filter((s) => s > 0 && s < end);
  return [0, ...inside, ...(end > 0 ? [end] : [])];
}
