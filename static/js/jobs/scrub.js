/** The bar below the return chart: one round for the film, the cursor of all charts, the actors and the money. */
import { lastKnown } from "../charts/lines.js";
import { ACTOR, ROUND, capitalized } from "../charts/names.js";
import { count, money, plural, score } from "../format.js";

const AWAY = { left: -10, top: -10 };

export class Scrub {
  /** @param {HTMLElement} place @param {{columns: object, view: object}} sight @param {object[]} charts @param {object | null} films */
  constructor(place, sight, charts, films) {
    Object.assign(this, { sight, charts, films, round: null, drawn: "", pointed: false });
    [this.range, this.words, this.newest, this.ticks] = ["round", "words", "newest", "films"].map((name) => place.querySelector(`[data-scrub-${name}]`));
    this.unpaid = place.dataset.unpaid;
    this.tellsMoney = place.closest("[data-no-money]") === null;
    const { decimals, score: name } = document.querySelector("[data-chart=return]").dataset;
    this.scored = (value) => `${name.toLowerCase()} ${score(value, Number(decimals))}`;
    this.range.addEventListener("input", () => this.choose(Number(this.range.value)));
    this.newest.addEventListener("click", () => {
      this.range.focus(); // the button is disabled now
      this.choose(null);
    });
    this.watchPointer(place.closest("[data-charts]"));
  }

  /** A pointer that moves over a chart has its cursor. One that only rests there, as pages scroll below it, has not. */
  watchPointer(place) {
    place.addEventListener("pointermove", ({ target, movementX, movementY }) => {
      if (movementX || movementY) this.pointed = target.closest("[data-plot]") !== null;
      if (!this.pointed) this.point();
    });
    place.addEventListener("pointerleave", () => {
      this.pointed = false;
      this.point();
    });
  }

  /** @param {number | null} round null: the newest one, as the job goes on */
  choose(round) {
    this.pointed = false;
    this.round = round !== null && round >= this.sight.columns.lastRound ? null : round;
    this.films?.choose(this.round);
    if (this.round === null) for (const { plot } of this.charts) plot.setCursor(AWAY, true, false);
    this.draw();
  }

  /** After new rounds, another part of the run or another film. */
  draw() {
    const { columns } = this.sight;
    if (!columns.length) return;
    const { range } = this;
    const [first, last] = [columns.axes.round[0], columns.lastRound];
    Object.assign(range, { min: String(first), max: String(last), value: String(this.round ?? last) });
    const at = columns.at(this.round ?? last);
    const words = [
      `${capitalized(ROUND)} ${count(columns.axes.round[at])}`,
      plural(columns.values.actors?.[at] ?? 0, ACTOR),
      ...(this.tellsMoney ? [money(columns.axes.spent_usd[at]) + this.unpaid] : []),
      this.scored(lastKnown(columns.values.return?.slice(0, at + 1) ?? [])),
    ].join(" \u00b7 ");
    this.words.textContent = words;
    range.setAttribute("aria-valuetext", words);
    this.newest.disabled = this.round === null;
    this.drawTicks(first, last);
    this.point();
  }

  /** Puts the cursor of all charts at the chosen round. */
  point() {
    const { columns, view } = this.sight;
    if (this.round === null || this.pointed) return;
    const place = columns.axes[view.axis.column][columns.at(this.round)];
    for (const { plot } of this.charts) plot.setCursor({ left: plot.valToPos(place, "x"), top: 0 }, true, false);
  }

  /** A tick for each film. */
  drawTicks(first, last) {
    const rounds = (this.films?.all ?? []).map((film) => film.round).filter((round) => round >= first && round <= last);
    const drawn = `${first} ${last} ${rounds}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.ticks.replaceChildren(
      ...rounds.map((round) => {
        const tick = document.createElementNS("http://www.w3.org/2000/svg", "circle");
        const across = last > first ? (100 * (round - first)) / (last - first) : 0;
        for (const [name, value] of Object.entries({ cx: `${across}%`, cy: "4", r: "2.5" })) tick.setAttribute(name, value);
        return tick;
      }),
    );
  }
}
