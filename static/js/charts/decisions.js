/** Reasons for each round's actors: shown below the chart for the round under the cursor, and marked where they change. */
import { colour } from "./colours.js";
import { ACTOR, ROUND, capitalized } from "./names.js";
import { count, plural } from "../format.js";

const AGAIN_MS = 1000;
const MEANWHILE_MS = 10000;
const MOST_MARKS = 120;

export class Decisions {
  /** @param {{columns: object}} sight */
  constructor(sight) {
    this.sight = sight;
    this.said = [];
    this.last = 0;
    this.every = 1;
    this.fetchedAt = 0;
    this.shown = null;
    // The job's news keep the sentence of the last round up to date, also while another round's is shown in its place.
    this.usual = document.querySelector("[data-chart='actors'] [data-live='plan']");
    this.place = document.querySelector("[data-chart='actors'] [data-why]");
    this.hooks = { ready: [makeReachable], draw: [(plot) => this.mark(plot)] };
    this.load();
  }

  async load(afterMs = AGAIN_MS) {
    if (document.querySelector("[data-shared]")) return; // reasons are not shared
    if (Date.now() - this.fetchedAt < afterMs) return;
    this.fetchedAt = Date.now();
    try {
      const answer = await fetch("decisions", { headers: { Accept: "application/json" } });
      if (answer.ok && !answer.redirected) Object.assign(this, await answer.json());
      this.tell();
    } catch {
      // No network: the next poll tries again.
    }
  }

  /** @param {number} round @returns {string} empty for one that is not known (yet) */
  of(round) {
    if (round > this.last) return "";
    let low = 0;
    let high = this.said.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.said[middle][0] <= round) low = middle + 1;
      else high = middle;
    }
    return low ? this.said[low - 1][1] : "";
  }

  /** @param {number | null} round null when the cursor has left: then the present reason is shown again */
  show(round, actors) {
    this.shown = round === null ? null : { round, actors };
    if (round !== null && round > this.last) this.load();
    this.tell();
  }

  tell() {
    if (!this.place) return;
    const why = this.shown === null ? "" : this.of(this.shown.round);
    if (why) {
      const { round, actors } = this.shown;
      this.place.textContent = `${capitalized(ROUND)} ${count(round)} had ${plural(actors, ACTOR)}: ${why}.`;
    }
    this.place.hidden = !why;
    this.usual.hidden = Boolean(why);
  }

  /** A dot wherever the number was changed, as long as dots do not overlap. */
  mark(plot) {
    const [places, , , actors] = plot.data;
    if (this.sight.columns.lastRound > this.last) this.load(MEANWHILE_MS);
    const changes = actors.map((one, at) => (at && one !== null && one !== actors[at - 1] ? at : 0)).filter(Boolean);
    if (changes.length > MOST_MARKS) return;
    const { ctx: context } = plot;
    context.save();
    context.fillStyle = colour("--surface");
    context.strokeStyle = colour("--series-1");
    context.lineWidth = 1.5 * devicePixelRatio;
    for (const at of changes) {
      context.beginPath();
      context.arc(plot.valToPos(places[at], "x", true), plot.valToPos(actors[at], "y", true), 2.5 * devicePixelRatio, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
    context.restore();
  }
}

/** With the keyboard: Tab comes to the chart, the arrows go from round to round. @param {uPlot} plot */
function makeReachable(plot) {
  const place = plot.root.parentElement;
  place.tabIndex = 0;
  place.onkeydown = (event) => step(event, plot);
  place.onblur = () => plot.setCursor({ left: -10, top: -10 });
}

function step(event, plot) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  if (!(event.key in steps) || !plot.data[0].length) return;
  event.preventDefault();
  const last = plot.data[0].length - 1;
  const at = Math.min(last, Math.max(0, (plot.cursor.idx ?? last) + steps[event.key]));
  plot.setCursor({ left: plot.valToPos(plot.data[0][at], "x"), top: 0 });
}
