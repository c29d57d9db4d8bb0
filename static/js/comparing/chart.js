/**
 * The curves of a comparison: return over steps, time or dollars, of groups with the interval of their mean.
 * A side keeps its colour and its dash on the whole page; both are those of css/curves.css.
 */
import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { colour, faint } from "../charts/colours.js";
import { saveDrawn, saveTable } from "../charts/export.js";
import { Plot } from "../charts/plot.js";
import { AXES, countProgressIn } from "../charts/view.js";
import { axisScore, score } from "../format.js";
import { startLiveParts } from "../frame/live_parts.js";

const SERIES_A_SIDE = 3;
const TABLE_ROWS = 10;

const figure = document.querySelector("[data-compare-chart]");
const decimals = Number(figure?.dataset.decimals);
if (figure) countProgressIn(figure.dataset.unit);

/** @param {number} place from 1 */
function inkOf(place) {
  return colour(`--series-${((place - 1) % 8) + 1}`);
}

/** As the side's mark in the legend has it. */
function dashOf(place) {
  const mark = figure.querySelector(`.series-mark.place-${place}`);
  return (getComputedStyle(mark).getPropertyValue("--dash").match(/\d+/g) ?? []).map(Number);
}

class CompareChart extends Plot {
  constructor(sides) {
    super(figure.querySelector("[data-plot]"));
    this.sides = sides;
    this.words = [...document.querySelectorAll("[data-at-cursor]")];
    this.axis = figure.querySelector("[data-axis][aria-pressed=true]").dataset.axis;
    for (const button of figure.querySelectorAll("[data-axis]")) button.addEventListener("click", () => this.setAxis(button.dataset.axis));
    this.whole = figure.querySelector("[data-unzoom]");
    this.whole.addEventListener("click", () => this.make());
    figure.querySelector("[data-export=png]").addEventListener("click", () => this.save(() => this.savePicture()));
    figure.querySelector("[data-export=csv]").addEventListener("click", () => this.save(() => this.saveNumbers()));
    for (const row of figure.querySelectorAll("[data-side]")) {
      row.addEventListener("pointerenter", () => this.highlight(Number(row.dataset.side)));
      row.addEventListener("pointerleave", () => this.highlight(null));
    }
    this.make();
  }

  /** The same sides with newer curves. A part that the reader has zoomed into stays. */
  take(sides) {
    this.sides = sides;
    if (this.whole.hidden) this.make();
  }

  /** One side among the others: those are drawn faintly. @param {number|null} side */
  highlight(side) {
    this.plot.setSeries(side === null ? null : SERIES_A_SIDE * side + 1, { focus: side !== null });
  }

  save(act) {
    act();
    figure.querySelector(".chart-menu").open = false;
  }

  savePicture() {
    saveDrawn(this.plot, figure.querySelector("h2").textContent, this.sides.map(({ name, place }) => `${place}: ${name}`));
  }

  /** What is drawn: each side's mean and the ends of its interval, over the chosen axis. */
  saveNumbers() {
    const head = [AXES[this.axis].name, ...this.sides.flatMap(({ name }) => [name, `${name}, low`, `${name}, high`])];
    const columns = this.data();
    saveTable(figure.querySelector("h2").textContent, head, columns[0].map((_, at) => columns.map((column) => column[at])));
  }

  setAxis(axis) {
    this.axis = axis;
    for (const button of figure.querySelectorAll("[data-axis]")) button.setAttribute("aria-pressed", String(button.dataset.axis === axis));
    const address = new URL(location.href);
    address.searchParams.set("over", axis);
    history.replaceState(null, "", address);
    this.make();
  }

  /** For each side its mean and, where there is one, the two ends of its interval, all on one horizontal axis. */
  data() {
    return uPlot.join(
      this.sides.map(({ lines }) => {
        const { x, y, low, high } = lines[this.axis];
        return [x, y, low ?? x.map(() => null), high ?? x.map(() => null)];
      }),
    );
  }

  make() {
    figure.classList.toggle("has-data", this.sides.some(({ lines }) => lines[this.axis].x.length > 0));
    super.make();
    this.whole.hidden = true;
    this.showValues();
    this.writeTable();
  }

  /** The same curves in figures, at evenly spaced places of the chosen axis. */
  writeTable() {
    const lines = this.sides.map((side) => side.lines[this.axis]).filter(({ x }) => x.length);
    const last = Math.max(...lines.map(({ x }) => x.at(-1)));
    const places = lines.length ? Array.from({ length: TABLE_ROWS }, (_, at) => (last * (at + 1)) / TABLE_ROWS) : [];
    const rows = places.map((at) => [AXES[this.axis].words(at), ...this.sides.map(({ lines: { [this.axis]: { x, y } } }) => score(heightAt(x, y, at), decimals))]);
    const table = Object.assign(document.createElement("table"), { className: "grid" });
    table.createTHead().append(tableRow("th", [figure.querySelector("[data-axis][aria-pressed=true]").textContent, ...this.sides.map(({ name }) => name)]));
    table.createTBody().append(...rows.map((cells) => tableRow("td", cells)));
    figure.querySelector("[data-curve-table] .table-scroll").replaceChildren(table);
  }

  options() {
    const { tick } = AXES[this.axis];
    return {
      ...this.frame(this.sides.flatMap((side) => seriesOf(side)), { tick }, (value) => axisScore(value, decimals)),
      cursor: { y: false, drag: { x: true, y: false }, points: { size: 7 } },
      focus: { alpha: 0.25 },
      scales: { x: { time: false }, y: { range: { min: { pad: 0.05 }, max: { pad: 0.05 } } } },
      bands: this.sides.map((side, at) => ({
        series: [SERIES_A_SIDE * at + 3, SERIES_A_SIDE * at + 2],
        fill: faint(inkOf(side.place), 0.14),
      })),
      hooks: { setCursor: [() => this.showValues()], setSelect: [({ select }) => (this.whole.hidden = select.width === 0)] },
    };
  }

  /** The chips show the values at the cursor; without a cursor the last ones. */
  showValues() {
    const left = this.plot?.cursor.left ?? -1;
    const at = left >= 0 ? this.plot.posToVal(left, "x") : null;
    this.sides.forEach(({ lines }, index) => {
      const { x, y } = lines[this.axis];
      const value = at === null ? y.at(-1) : heightAt(x, y, at);
      this.words[index].textContent = score(value, decimals);
    });
    figure.querySelector("[data-cursor-words]").textContent = at === null ? "at the end" : `at ${AXES[this.axis].words(at)}`;
  }
}

function seriesOf({ place }) {
  const end = { stroke: "transparent", width: 0, points: { show: false }, spanGaps: true };
  const line = { stroke: inkOf(place), width: 2, dash: dashOf(place), spanGaps: true, points: { show: false } };
  return [line, end, end];
}

function tableRow(tag, cells) {
  const row = document.createElement("tr");
  row.append(...cells.map((textContent) => Object.assign(document.createElement(tag), { textContent, className: "number" })));
  return row;
}

/** A line's height between its points; null beyond its ends. */
function heightAt(x, y, at) {
  if (!x.length || at < x[0] || at > x.at(-1)) return null;
  const next = x.findIndex((value) => value >= at);
  if (next <= 0) return y[0];
  const share = (at - x[next - 1]) / (x[next] - x[next - 1] || 1);
  return y[next - 1] + share * (y[next] - y[next - 1]);
}

const curvesOf = (page) => page.getElementById("compare-curves")?.textContent ?? "[]";
let curves = curvesOf(document);
const chart = figure && new CompareChart(JSON.parse(curves));

startLiveParts((page) => {
  const fresh = curvesOf(page);
  if (fresh === curves) return;
  const sides = JSON.parse(fresh);
  // Another number of sides has another legend and another table.
  if (sides.length !== JSON.parse(curves).length) location.reload();
  else chart.take(sides);
  curves = fresh;
});
