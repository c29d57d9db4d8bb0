/** Ranges that grow by whole nice steps, so a chart does not rescale with every point. */

const STEPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

/** The smallest of 1, 1.5, 2, 3, 4, 5, 6, 8, 10 times a power of ten that is not below `value`. */
export function niceAbove(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = STEPS.find((candidate) => candidate * power >= value * (1 - 1e-9));
  return step * power;
}

const TIMES_S = [1, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1500, 1800, 2700, 3600];

/** The same for seconds: whole minutes and hours once they are long. */
export function niceTimeAbove(seconds) {
  return TIMES_S.find((time) => time >= seconds * (1 - 1e-9)) ?? 3600 * niceAbove(seconds / 3600);
}

/** What the ticks of a time axis may be apart. */
export const TIME_INCREMENTS_S = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800],
  ...[1, 2, 3, 6, 12, 24, 48, 120, 240].map((hours) => hours * 3600),
];

/** A range from 0 that only grows, by steps that `nice` allows. */
export class FromZero {
  constructor(least = 0, nice = niceAbove) {
    this.least = least;
    this.nice = nice;
    this.reset();
  }

  reset() {
    this.top = this.least;
  }

  /** @returns {[number, number]} */
  over(low, high) {
    if (Number.isFinite(high) && high > this.top) this.top = this.nice(high);
    return [0, this.top || 1];
  }
}

/** A range around the data, in steps of a nice size, that only grows. */
export class AroundData {
  constructor() {
    this.reset();
  }

  reset() {
    this.low = Infinity;
    this.high = -Infinity;
  }

  /** @returns {[number, number]} */
  over(low, high) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
    const bottom = Math.min(low, this.low);
    const top = Math.max(high, this.high);
    if (low < this.low || high > this.high) {
      const step = niceAbove(Math.max(top - bottom, Math.abs(top) * 0.02, 1e-6) / 4);
      this.low = Math.floor(bottom / step) * step;
      this.high = Math.max(Math.ceil(top / step) * step, this.low + step);
    }
    return [this.low, this.high];
  }
}
