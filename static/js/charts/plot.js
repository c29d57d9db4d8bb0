/** What the charts of all pages have in common: uPlot with thin axes, the theme's colours and the size of its place. */
import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { colour, faint } from "./colours.js";

/** Heirs have `options()` and `data()` as uPlot takes them. */
export class Plot {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    new ResizeObserver(() => this.resize()).observe(place);
    document.addEventListener("starling:theme", () => this.make());
  }

  /** Draws again: at first, and when the theme or the view changes. */
  make() {
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.data(), this.place);
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.place;
    if (this.plot && width > 0 && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }

  /**
   * @param {object[]} lines uPlot's series after the first
   * @param {{tick: (value: number) => string, label?: string, increments?: number[]}} across the horizontal axis
   * @param {(value: number, apart: number) => string} upWords values at ticks of the upright axis, which are so far apart
   */
  frame(lines, across, upWords) {
    const style = {
      stroke: colour("--text-2"),
      font: `12px ${getComputedStyle(document.body).fontFamily}`,
      grid: { stroke: faint(colour("--line"), 0.8), width: 1 },
      ticks: { show: false },
    };
    const label = across.label ? { label: across.label, labelSize: 14, labelGap: -2, labelFont: style.font } : {};
    return {
      width: this.place.clientWidth || 600,
      height: this.place.clientHeight || 200,
      legend: { show: false },
      padding: [8, 36, 0, 0],
      axes: [
        { ...style, ...label, grid: { show: false }, space: 80, size: 28, values: (plot, at) => at.map(across.tick), ...(across.increments ? { incrs: across.increments } : {}) },
        { ...style, space: 44, size: 60, values: (plot, at, axis, space, apart) => at.map((value) => (value === null ? "" : upWords(value, at.length > 1 ? apart : 0))) },
      ],
      series: [{}, ...lines],
    };
  }
}
