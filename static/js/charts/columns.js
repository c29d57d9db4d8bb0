/**
 * The figures of a job's rounds and evaluations as columns, kept up to date from the live messages.
 * What a resume repeats is dropped as soon as it is told.
 */
const PICODOLLARS_PER_USD = 1e12;

export class Columns {
  constructor() {
    this.clear();
  }

  clear() {
    for (const name of ROUND_COLUMNS) this[name] = [];
    this.evaluationSteps = [];
    this.evaluationReturn = [];
  }

  /** @param {Record<string, any>} series as a snapshot holds them, by chart */
  load(series) {
    this.clear();
    const { return: reward, actors, spend, round_time: time } = series;
    this.round = [...actors.x];
    this.steps = [...reward.x];
    this.episodeReturn = [...reward.episode_return_mean];
    this.actors = [...actors.actors];
    this.platformTime = [...spend.x];
    this.spentUsd = [...spend.spent_usd];
    this.collect = [...time.collect_s];
    this.update = [...time.update_s];
    this.total = [...time.total_s];
    this.evaluationSteps = [...reward.evaluation.x];
    this.evaluationReturn = [...reward.evaluation.y];
  }

  /** @param {{kind: string, payload: any}} event @returns {boolean} whether anything changed */
  add(event) {
    if (event.kind === "round") this.addRound(event.payload.report);
    else if (event.kind === "evaluation") this.addEvaluation(event.payload);
    else if (event.kind === "resumed") this.forgetAfter(event.payload.from_round);
    else return false;
    return true;
  }

  /** Drops what came after a round: a job that goes on from there makes those rounds again. */
  forgetAfter(round) {
    while (this.round.length && this.round.at(-1) > round) {
      for (const name of ROUND_COLUMNS) this[name].pop();
    }
    const steps = this.steps.at(-1) ?? 0;
    while (this.evaluationSteps.length && this.evaluationSteps.at(-1) > steps) {
      this.evaluationSteps.pop();
      this.evaluationReturn.pop();
    }
  }

  addRound(report) {
    this.forgetAfter(report.round_no - 1);
    const before = this.spentUsd.at(-1) ?? 0;
    const spent = report.spend ? report.spend.spent_picodollars : null;
    this.round.push(report.round_no);
    this.steps.push(report.total_env_steps);
    this.episodeReturn.push(report.episode_return_mean);
    this.actors.push(report.actors);
    this.platformTime.push(report.started_s + report.total_s);
    this.spentUsd.push(spent === null ? before + report.cost_picodollars / PICODOLLARS_PER_USD : spent / PICODOLLARS_PER_USD);
    this.collect.push(report.collect_s);
    this.update.push(report.update_s);
    this.total.push(report.total_s);
  }

  addEvaluation(evaluation) {
    while (this.evaluationSteps.length && this.evaluationSteps.at(-1) >= evaluation.total_env_steps) {
      this.evaluationSteps.pop();
      this.evaluationReturn.pop();
    }
    this.evaluationSteps.push(evaluation.total_env_steps);
    this.evaluationReturn.push(evaluation.return_mean);
  }

  /** The value of another column where this many steps had been made: that of the last round up to there. */
  atSteps(column, steps) {
    let low = 0;
    let high = this.steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.steps[middle] <= steps) low = middle + 1;
      else high = middle;
    }
    return low === 0 ? (column[0] ?? 0) : column[low - 1];
  }
}

const ROUND_COLUMNS = ["round", "steps", "episodeReturn", "actors", "platformTime", "spentUsd", "collect", "update", "total"];
