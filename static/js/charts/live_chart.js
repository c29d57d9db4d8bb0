/**
 * One chart that keeps up with its job: thin axes, a legend line of fixed height, the theme's colours, the size of
 * its place. Charts are given a recipe and drawn by the page, at most once a frame.
 *
 * A recipe has: `lines` (what to draw, in the order of the data), `data()` (uPlot columns), `xRange`, `yRange`
 * (see scale.js), `xWords`, `yWords` (values as text), `legend(at)` (entries for a position, or for the last one if
 * null), `summary()` (one sentence for those who do not see the chart), and if need be `paths` or `hooks` of uPlot.
 */
import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { colour, faint } from "./colours.js";

const SUMMARY_EVERY_MS = 10000;

export class LiveChart {
  /** @param {HTMLElement} figure @param {object} recipe */
  constructor(figure, recipe) {
    this.figure = figure;
    this.recipe = recipe;
    this.place = figure.querySelector("[data-plot]");
    this.legend = figure.querySelector("[data-legend]");
    this.place.setAttribute("role", "img");
    this.summarisedAt = 0;
    this.make();
    new ResizeObserver(() => this.resize()).observe(this.place);
    document.addEventListener("starling:theme", () => this.make());
  }

  /** Builds the chart anew: at first, and when the theme or the axes change. */
  make() {
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.recipe.data(), this.place);
    this.showLegend();
  }

  draw() {
    const data = this.recipe.data();
    this.figure.classList.toggle("has-data", data[0].length > 0);
    this.plot.setData(data);
    this.showLegend();
    this.summarise();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.place;
    if (width > 0 && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }

  options() {
    const { recipe } = this;
    const axis = {
      stroke: colour("--text-2"),
      font: `12px ${getComputedStyle(document.body).fontFamily}`,
      grid: { stroke: faint(colour("--line"), 0.8), width: 1 },
      ticks: { show: false },
    };
    return {
      width: this.place.clientWidth || 600,
      height: this.place.clientHeight || 200,
      legend: { show: false },
      padding: [8, 36, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      scales: {
        x: { time: false, range: (plot, low, high) => recipe.xRange(low, high) },
        y: { range: (plot, low, high) => recipe.yRange(low, high) },
      },
      axes: [
        {
          ...axis,
          grid: { show: false },
          space: 80,
          size: 28,
          values: (plot, at) => at.map(recipe.xWords),
          ...(recipe.xIncrements?.() ? { incrs: recipe.xIncrements() } : {}),
        },
        { ...axis, space: 44, size: 60, values: (plot, at) => at.map(recipe.yWords) },
      ],
      series: [{}, ...recipe.lines.map((line) => line.series())],
      hooks: { setCursor: [() => this.showLegend()], ...(recipe.hooks ?? {}) },
    };
  }

  showLegend() {
    if (!this.plot) return;
    const entries = this.recipe.legend(this.plot.cursor.idx ?? null);
    while (this.legend.children.length > entries.length) this.legend.lastChild.remove();
    entries.forEach((entry, at) => writeEntry(this.legend.children[at] ?? this.legend.appendChild(newEntry()), entry));
  }

  summarise() {
    if (Date.now() - this.summarisedAt < SUMMARY_EVERY_MS) return;
    this.summarisedAt = Date.now();
    this.place.setAttribute("aria-label", this.recipe.summary());
  }
}

/** What marks an entry: a line, a dashed line, a dot or a filled box, so that colour is not the only sign. */
const KEYS = {
  line: '<path d="M0 4h12" stroke-width="2"/>',
  dashed: '<path d="M0 4h4M8 4h4" stroke-width="2"/>',
  dot: '<circle cx="6" cy="4" r="3" fill="currentColor" stroke="none"/>',
  box: '<rect width="12" height="8" rx="1.5" fill="currentColor" stroke="none"/>',
};

function newEntry() {
  const entry = document.createElement("span");
  entry.className = "entry";
  entry.innerHTML = '<svg class="key" viewBox="0 0 12 8" fill="none" stroke="currentColor"></svg><span></span><b></b>';
  return entry;
}

/** @param {HTMLElement} element @param {{name: string, value: string, mark?: string, variable?: string}} entry */
function writeEntry(element, entry) {
  const [key, name, value] = element.children;
  key.style.display = entry.mark ? "" : "none";
  if (entry.mark && key.dataset.mark !== entry.mark) {
    key.dataset.mark = entry.mark;
    key.innerHTML = KEYS[entry.mark];
  }
  if (entry.variable) key.style.color = `var(${entry.variable})`;
  if (name.textContent !== entry.name) name.textContent = entry.name;
  if (value.textContent !== entry.value) value.textContent = entry.value;
}
