/**
 * One chart that keeps up with its job: a legend line of fixed height, and a cursor that all charts of a page share.
 * Drawn by the page, at most once a frame, and only while it is visible.
 *
 * A recipe has: `lines()` (uPlot series after the first), `data()` (uPlot columns), `yRange(low, high)`, `yWords`
 * (values as text), `legend(at)` (entries for a position, or for the last one if null), `summary()` (a sentence or two
 * for those who do not see the chart), `table()` ({head, rows} of what is drawn), and if need be `complete()` (what a
 * table waits for), `bands()`, `hooks`,
 * `mayBeLog`; and `hasPoints()`: without any, a sentence stands in the chart's place. What it reads of the job is
 * `sight`: {columns, view, x}; `x` is the range that all charts of the page share, and `reach` how far it goes.
 */
import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { startExports } from "./export.js";
import { writeLegend } from "./legend.js";
import { Plot } from "./plot.js";

const SUMMARY_EVERY_MS = 10000;
const LOGARITHMIC = 3;
const AROUND_ZERO = 4;
export const TOGETHER = "job";

export class LiveChart extends Plot {
  /** @param {HTMLElement} figure @param {object} recipe @param {{columns: object, view: object}} sight */
  constructor(figure, recipe, sight) {
    super(figure.querySelector("[data-plot]"));
    Object.assign(this, { figure, recipe, sight, summarisedAt: 0, seen: true, waiting: false });
    this.legend = figure.querySelector("[data-legend]");
    this.make();
    startExports(this);
    new IntersectionObserver(([entry]) => this.looked(entry.isIntersecting), { rootMargin: "200px" }).observe(this.place);
  }

  make() {
    this.recipe.y?.reset();
    super.make();
    this.showLegend();
  }

  data() {
    return this.recipe.data();
  }

  looked(seen) {
    this.seen = seen;
    if (seen && this.waiting) this.draw();
  }

  draw() {
    this.figure.classList.toggle("no-points", !this.recipe.hasPoints());
    this.waiting = !this.seen;
    if (this.waiting) return;
    this.plot.setData(this.data());
    this.showLegend();
    this.summarise();
  }

  options() {
    const { recipe, sight } = this;
    const { axis, log } = sight.view;
    const distribution = log && recipe.mayBeLog ? (recipe.positive() ? LOGARITHMIC : AROUND_ZERO) : 1;
    return {
      ...this.frame(recipe.lines(), axis, (value, apart) => recipe.yWords(value, distribution === 1 ? apart : 0)),
      cursor: { y: false, drag: { x: true, y: false, setScale: false, dist: 8 }, points: { size: 7 }, sync: { key: TOGETHER }, bind: { dblclick: () => () => sight.view.zoom && sight.view.set({ zoom: null }) } },
      scales: {
        x: { time: false, range: (plot, low, high) => this.xRange(low, high) },
        y: { distr: distribution, range: (plot, low, high) => yRange(recipe, distribution, low, high) },
      },
      bands: recipe.bands?.() ?? [],
      hooks: { setCursor: [() => this.showLegend()], setSelect: [(plot) => this.zoom(plot)], ...(recipe.hooks ?? {}) },
    };
  }

  xRange(low, high) {
    if (!this.sight.view.zoom || !Number.isFinite(low)) return this.sight.x.over(0, Math.max(high, this.sight.reach));
    return low === high ? [low - 1, high + 1] : [low, high];
  }

  /** What was drawn over with the pointer becomes all there is, here and in the other charts. */
  zoom(plot) {
    const { left, width } = plot.select;
    if (width < 8 || !this.sight.columns.length) return;
    const rounds = this.sight.columns.axes.round;
    const [from, to] = [left, left + width].map((pixel) => rounds[Math.min(plot.posToIdx(pixel), rounds.length - 1)]);
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    const now = this.sight.view.zoom;
    if (to > from && (now?.[0] !== from || now?.[1] !== to)) this.sight.view.set({ zoom: [from, to] });
  }

  showLegend() {
    if (!this.plot) return;
    const { axis } = this.sight.view;
    const at = this.plot.cursor.idx ?? null;
    const entries = this.recipe.legend(at);
    if (at !== null && this.plot.data[0][at] !== undefined) entries.push({ name: "at", value: axis.words(this.plot.data[0][at]) });
    writeLegend(this.legend, entries);
  }

  /** Not too often, as it is read aloud; the last word is never left out. */
  summarise() {
    const due = this.summarisedAt + SUMMARY_EVERY_MS - Date.now();
    if (due > 0) {
      this.later ??= setTimeout(() => this.summarise(), due);
      return;
    }
    clearTimeout(this.later);
    this.later = null;
    this.summarisedAt = Date.now();
    this.place.setAttribute("aria-label", this.recipe.summary());
  }
}

function yRange(recipe, distribution, low, high) {
  if (distribution === 1) return recipe.yRange(low, high);
  if (!Number.isFinite(low) || !Number.isFinite(high)) return [1, 10];
  return distribution === LOGARITHMIC ? uPlot.rangeLog(low, high, 10, false) : uPlot.rangeAsinh(low, high, 10, false);
}
