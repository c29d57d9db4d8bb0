/**
 * How all charts of a page are drawn: the horizontal axis, smoothing, the vertical scale and what part of the run.
 * It is part of the address, so a view can be kept, sent and returned to.
 */
import { TIME_INCREMENTS_S, niceAbove, niceTimeAbove } from "./scale.js";
import { axisMoney, axisTime, count, duration, money, wholeCount } from "../format.js";

/** What the horizontal axis can be: the column, its name, its values as text at ticks and in the legend. */
export const AXES = {
  steps: { column: "steps", name: "steps", label: "steps", least: 1000, tick: wholeCount, words: (value) => `${count(value)} steps`, nice: niceAbove },
  rounds: { column: "round", name: "round", label: "rounds", least: 10, tick: wholeCount, words: (value) => `round ${count(value)}`, nice: niceAbove },
  wall: { column: "wall_s", name: "wall time [s]", label: "wall time", least: 10, tick: axisTime, words: duration, nice: niceTimeAbove, increments: TIME_INCREMENTS_S },
  time: { column: "platform_s", name: "platform time [s]", label: "time of the platform", least: 10, tick: axisTime, words: duration, nice: niceTimeAbove, increments: TIME_INCREMENTS_S },
  usd: { column: "spent_usd", name: "spent [USD]", label: "dollars spent", least: 0.001, tick: axisMoney, words: money, nice: niceAbove },
};
/** Says what the progress of these runs counts. @param {string} unit */
export function countProgressIn(unit) {
  Object.assign(AXES.steps, { name: unit, label: unit, words: (value) => `${count(value)} ${unit}` });
}

const USUAL = { x: "steps", smooth: "0.9", log: "", from: "", to: "" };
/** Says how much these runs are smoothed at first: returns of few episodes are noisy, a loss over all rows is not. */
export function smoothAtFirst(weight) {
  USUAL.smooth = weight;
}

export class View {
  /** @param {() => void} onChange called after each change */
  constructor(onChange) {
    this.onChange = onChange;
    this.read();
    addEventListener("popstate", () => {
      this.read();
      onChange();
    });
  }

  read() {
    const wanted = new URLSearchParams(location.search);
    const setting = (name) => wanted.get(name) ?? USUAL[name];
    this.axisName = setting("x") in AXES ? setting("x") : "steps";
    this.smoothing = Math.min(0.98, Math.max(0, Number(setting("smooth")) || 0));
    this.log = setting("log") === "1";
    const [from, to] = [Number(setting("from")), Number(setting("to"))];
    this.zoom = from > 0 && to > from ? [from, to] : null;
  }

  get axis() {
    return AXES[this.axisName];
  }

  /** @param {Partial<{axisName: string, smoothing: number, log: boolean, zoom: [number, number]|null}>} changes */
  set(changes) {
    Object.assign(this, changes);
    const address = new URL(location.href);
    const settings = { x: this.axisName, smooth: String(this.smoothing), log: this.log ? "1" : "", from: String(this.zoom?.[0] ?? ""), to: String(this.zoom?.[1] ?? "") };
    for (const [name, value] of Object.entries(settings)) {
      if (value === USUAL[name]) address.searchParams.delete(name);
      else address.searchParams.set(name, value);
    }
    history[changes.zoom === undefined ? "replaceState" : "pushState"](null, "", address);
    this.onChange();
  }
}

/** The bar above the charts. @param {HTMLFormElement} bar @param {View} view @returns {() => void} shows the view */
export function startBar(bar, view) {
  const [slider, value, log, back] = ["smooth", "smooth-value", "log", "unzoom"].map((name) => bar.querySelector(`[data-${name}]`));
  bar.addEventListener("submit", (event) => event.preventDefault());
  bar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-axis]");
    if (button) view.set({ axisName: button.dataset.axis });
  });
  slider.addEventListener("input", () => view.set({ smoothing: Number(slider.value) }));
  log.addEventListener("change", () => view.set({ log: log.checked }));
  back.addEventListener("click", () => view.set({ zoom: null }));
  return () => {
    for (const button of bar.querySelectorAll("[data-axis]")) button.setAttribute("aria-pressed", String(button.dataset.axis === view.axisName));
    slider.value = String(view.smoothing);
    value.textContent = view.smoothing.toFixed(2);
    log.checked = view.log;
    back.hidden = !view.zoom;
  };
}
