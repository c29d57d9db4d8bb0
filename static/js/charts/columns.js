/**
 * A job's rounds as columns of points, kept up to date from the live messages; the server's twin is
 * webapp/jobs/charts/history.py. A point is 1, 2, 4, 8, ... rounds: of lines it holds the last value with the least and the
 * most, of parts their mean. Rounds that a resume repeats are dropped as soon as they arrive.
 */
const MOST_POINTS = 800;
const AXES = ["round", "steps", "platform_s", "spent_usd", "wall_s"];
const MARKED = new Set(["checkpoint", "call_failed", "resumed", "budget", "bounds"]);

export class Columns {
  constructor() {
    this.load({ per_point: 1, columns: {}, low: {}, high: {}, lines: [], parts: [], evaluations: { round: [], steps: [], mean: [] }, marks: {} });
  }

  /** @param {Record<string, any>} series as a snapshot or /series holds them */
  load(series) {
    this.perPoint = series.per_point;
    this.lines = series.lines;
    this.parts = series.parts;
    this.axes = {};
    this.values = {};
    this.low = {};
    this.high = {};
    for (const name of AXES) this.axes[name] = [...(series.columns[name] ?? [])];
    const points = this.axes.round.length;
    for (const name of [...this.lines, ...this.parts]) this.values[name] = series.columns[name] ?? new Array(points).fill(null);
    for (const name of this.lines) {
      this.low[name] = series.low[name] ?? [...this.values[name]];
      this.high[name] = series.high[name] ?? [...this.values[name]];
    }
    this.evaluations = series.evaluations;
    this.marks = series.marks;
  }

  get length() {
    return this.axes.round.length;
  }

  get lastRound() {
    return this.axes.round.at(-1) ?? 0;
  }

  /** Whether anything is known of a line or part at all. */
  knows(name) {
    return (this.values[name] ?? []).some((value) => value !== null);
  }

  /**
   * @param {{kind: string, point?: any, payload?: any}} event
   * @returns {""|"changed"|"reload"} reload: the held columns no longer show which rounds are left
   */
  add(event) {
    if (event.kind === "round") return this.addRound(event.point);
    if (event.kind === "evaluation") return this.addEvaluation(event.payload);
    const kind = event.kind === "note" && "actors_least" in event.payload ? "bounds" : event.kind;
    if (!MARKED.has(kind)) return "";
    const round = kind === "checkpoint" ? event.payload.round_no : kind === "resumed" ? event.payload.from_round : this.lastRound + 1;
    const outcome = kind === "resumed" ? this.forgetAfter(round) : "changed";
    const marks = (this.marks[kind] ??= []);
    if (marks.at(-1) !== round) marks.push(round);
    return outcome;
  }

  /** Drops what came after a round: a job that goes on from there makes those rounds again. */
  forgetAfter(round) {
    while (this.evaluations.round.length && this.evaluations.round.at(-1) > round) {
      for (const column of Object.values(this.evaluations)) column.pop();
    }
    if (this.lastRound <= round) return "changed";
    if (this.perPoint > 1) return "reload";
    while (this.length && this.lastRound > round) for (const column of this.all()) column.pop();
    return "changed";
  }

  *all() {
    for (const group of [this.axes, this.values, this.low, this.high]) yield* Object.values(group);
  }

  addRound(point) {
    if (this.forgetAfter(point.round - 1) === "reload") return "reload";
    const spent = point.spent_usd ?? (this.axes.spent_usd.at(-1) ?? 0) + (point.cost_usd ?? 0);
    const whole = { ...point, spent_usd: spent };
    if (this.length && this.bucket(this.lastRound) === this.bucket(point.round)) this.foldIn(whole);
    else this.append(whole);
    if (this.length > MOST_POINTS) this.halve();
    return "changed";
  }

  bucket(round) {
    return Math.floor((round - 1) / this.perPoint);
  }

  append(point) {
    for (const name of AXES) this.axes[name].push(point[name] ?? 0);
    for (const name of this.parts) this.values[name].push(point[name] ?? null);
    for (const name of this.lines) for (const column of [this.values, this.low, this.high]) column[name].push(point[name] ?? null);
  }

  /** Puts a round into the last point. */
  foldIn(point) {
    const at = this.length - 1;
    const known = ((this.axes.round[at] - 1) % this.perPoint) + 1;
    for (const name of AXES) this.axes[name][at] = point[name] ?? this.axes[name][at];
    for (const name of this.parts) {
      const value = point[name];
      if (value !== undefined) this.values[name][at] = ((this.values[name][at] ?? value) * known + value) / (known + 1);
    }
    for (const name of this.lines) this.mergeLine(name, at, point[name], point[name], point[name]);
  }

  mergeLine(name, at, last, low, high) {
    if (last === undefined || last === null) return;
    this.values[name][at] = last;
    this.low[name][at] = this.low[name][at] === null ? low : Math.min(this.low[name][at], low);
    this.high[name][at] = this.high[name][at] === null ? high : Math.max(this.high[name][at], high);
  }

  /** Makes one point of each two that belong together. */
  halve() {
    const before = this.perPoint;
    this.perPoint *= 2;
    let to = -1;
    for (let at = 0; at < this.length; at += 1) {
      if (to >= 0 && this.bucket(this.axes.round[to]) === this.bucket(this.axes.round[at])) this.join(to, at, before);
      else this.move((to += 1), at);
    }
    for (const column of this.all()) column.length = to + 1;
  }

  move(to, from) {
    if (to !== from) for (const column of this.all()) column[to] = column[from];
  }

  join(to, from, before) {
    const [one, other] = [before, ((this.axes.round[from] - 1) % before) + 1];
    for (const name of AXES) this.axes[name][to] = this.axes[name][from];
    for (const name of this.parts) {
      const [mine, its] = [this.values[name][to], this.values[name][from]];
      this.values[name][to] = mine === null || its === null ? (mine ?? its) : (mine * one + its * other) / (one + other);
    }
    for (const name of this.lines) this.mergeLine(name, to, this.values[name][from], this.low[name][from], this.high[name][from]);
  }

  addEvaluation(evaluation) {
    const { round, steps, mean } = this.evaluations;
    while (round.length && round.at(-1) >= evaluation.round_no) for (const column of [round, steps, mean]) column.pop();
    round.push(evaluation.round_no);
    steps.push(evaluation.total_env_steps);
    mean.push(evaluation.return_mean);
    return "changed";
  }

  /** The first point that holds this round or a later one; the last one for what lies beyond. */
  at(round) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.axes.round[middle] < round) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, this.length - 1);
  }

  /** The same columns between two rounds, for looking closer where every round is a point. */
  between(first, last) {
    const [from, to] = [this.at(first), this.at(last) + 1];
    const part = new Columns();
    const cut = (group) => Object.fromEntries(Object.entries(group).map(([name, column]) => [name, column.slice(from, to)]));
    const inside = this.evaluations.round.map((round) => round >= first && round <= last);
    const evaluations = Object.fromEntries(Object.entries(this.evaluations).map(([name, column]) => [name, column.filter((_, at) => inside[at])]));
    const { perPoint, lines, parts, marks } = this;
    return Object.assign(part, { perPoint, lines, parts, marks, evaluations, axes: cut(this.axes), values: cut(this.values), low: cut(this.low), high: cut(this.high) });
  }
}
