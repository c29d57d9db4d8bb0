/** What happened to a run, drawn on its chart: checkpoints as ticks at the foot, the rest as lines with a shape on top. */
import { colour, faint } from "./colours.js";
import { count } from "../format.js";

const LOOKS = {
  checkpoint: { word: "checkpoint", variable: "--text-2" },
  call_failed: { word: "call failed", variable: "--state-warning", shape: "triangle" },
  resumed: { word: "resumed from a checkpoint", variable: "--state-waiting", shape: "ring" },
  budget: { word: "budget", variable: "--state-budget", shape: "square" },
  bounds: { word: "bounds of actors changed", variable: "--accent", shape: "diamond" },
};
const APART_PX = 5;

/** @param {uPlot} plot @param {{columns: object, view: object}} sight */
export function drawMarks(plot, { columns, view }) {
  if (!columns.length) return;
  const places = columns.axes[view.axis.column];
  const [first, last] = [columns.axes.round[0], columns.lastRound];
  for (const [kind, look] of Object.entries(LOOKS)) {
    let before = -Infinity;
    for (const round of columns.marks[kind] ?? []) {
      if (round < first - columns.perPoint || round > last + 1) continue;
      const x = plot.valToPos(places[columns.at(round)], "x", true);
      if (x - before < APART_PX * devicePixelRatio) continue; // so near that they would be one blot
      before = x;
      drawMark(plot, x, look);
    }
  }
}

function drawMark(plot, x, { variable, shape }) {
  const { ctx: context, bbox } = plot;
  const unit = devicePixelRatio;
  const bottom = bbox.top + bbox.height;
  context.save();
  context.strokeStyle = shape ? faint(colour(variable), 0.45) : colour(variable);
  context.fillStyle = context.strokeStyle;
  context.lineWidth = unit;
  context.beginPath();
  context.moveTo(x, shape ? bbox.top : bottom - 6 * unit);
  context.lineTo(x, bottom);
  context.stroke();
  context.fillStyle = colour(variable);
  context.strokeStyle = colour(variable);
  context.beginPath();
  const size = 4 * unit;
  if (shape === "triangle") {
    context.moveTo(x, bbox.top - size);
    context.lineTo(x + size, bbox.top + size);
    context.lineTo(x - size, bbox.top + size);
    context.fill();
  } else if (shape === "square") {
    context.fillRect(x - size, bbox.top - size, 2 * size, 2 * size);
  } else if (shape === "diamond") {
    context.moveTo(x, bbox.top - size);
    context.lineTo(x + size, bbox.top);
    context.lineTo(x, bbox.top + size);
    context.lineTo(x - size, bbox.top);
    context.fill();
  } else if (shape === "ring") {
    context.lineWidth = 1.5 * unit;
    context.arc(x, bbox.top, size, 0, 2 * Math.PI);
    context.stroke();
  }
  context.restore();
}

/** What happened in the point's rounds, for the legend. */
export function marksNear(columns, at) {
  const round = columns.axes.round[at];
  const from = round - ((round - 1) % columns.perPoint);
  return Object.entries(LOOKS)
    .map(([kind, look]) => ({ ...look, number: (columns.marks[kind] ?? []).filter((one) => one >= from && one <= round).length }))
    .filter(({ number }) => number)
    .map(({ word, variable, number }) => ({ name: word, value: number > 1 ? `\u00d7 ${count(number)}` : "", mark: "tick", variable }));
}
