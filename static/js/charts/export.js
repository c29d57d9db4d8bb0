/** What a chart shows, taken away: as a picture, as a file of numbers, or as a table on the page. */
import { harmless } from "../format.js";
import { colour } from "./colours.js";

const MARGIN = 16;
const HEAD = 48;

/** @param {object} chart a LiveChart */
export function startExports(chart) {
  const acts = { png: savePicture, csv: saveNumbers, table: toggleTable };
  for (const button of chart.figure.querySelectorAll("[data-export]")) {
    button.addEventListener("click", async () => {
      button.closest("details").open = false;
      await chart.recipe.complete?.();
      acts[button.dataset.export](chart);
    });
  }
}

function titleOf(chart) {
  return chart.figure.querySelector("h2").textContent.trim();
}

function pageTitle() {
  return document.querySelector("h1").textContent.trim();
}

/** "simulated" or "emulated" on pages of money that no one pays; empty on others. */
function unreal() {
  return document.querySelector("[data-unreal]")?.dataset.unreal ?? "";
}

function fileName(title, ending) {
  return `${pageTitle()} ${title} ${unreal()}`.trim().toLowerCase().replace(/[^a-z0-9]+/g, "-") + ending;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function savePicture(chart) {
  saveDrawn(chart.plot, titleOf(chart), [...chart.legend.children].map((entry) => entry.textContent.trim().replace(/\s+/g, " ")));
}

/** The chart with its title and legend, on its own ground. @param {uPlot} plot @param {string} title @param {string[]} entries */
export function saveDrawn(plot, title, entries) {
  const drawn = plot.ctx.canvas;
  const scale = devicePixelRatio;
  const canvas = document.createElement("canvas");
  canvas.width = drawn.width + 2 * MARGIN * scale;
  canvas.height = drawn.height + (HEAD + 2 * MARGIN) * scale;
  const context = canvas.getContext("2d");
  context.fillStyle = colour("--surface");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(scale, scale);
  const family = getComputedStyle(document.body).fontFamily;
  context.fillStyle = colour("--text");
  context.font = `600 14px ${family}`;
  context.fillText(`${pageTitle()}: ${title}${unreal() && ` (${unreal()})`}`, MARGIN, MARGIN + 14);
  context.font = `12px ${family}`;
  context.fillStyle = colour("--text-2");
  context.fillText(entries.join("   "), MARGIN, MARGIN + 36);
  context.drawImage(drawn, MARGIN, MARGIN + HEAD, drawn.width / scale, drawn.height / scale);
  canvas.toBlob((blob) => save(blob, fileName(title, ".png")), "image/png");
}

function saveNumbers(chart) {
  const { head, rows } = numbersOf(chart);
  saveTable(titleOf(chart), head, rows);
}

/** @param {string} title @param {string[]} head @param {any[][]} rows */
export function saveTable(title, head, rows) {
  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const named = head.map((name) => (unreal() ? name.replace("[USD]", `[USD, ${unreal()}]`) : name));
  const text = [named, ...rows].map((row) => row.map((value) => quoted(harmless(value))).join(",")).join("\n");
  save(new Blob([`${text}\n`], { type: "text/csv" }), fileName(title, ".csv"));
}

/** What is drawn, with every axis a point has a place on. */
function numbersOf(chart) {
  const { axes, perPoint } = chart.sight.columns;
  const { head, columns } = chart.recipe.table();
  const places = { round: "round", steps: "steps", wall_s: "wall time [s]", platform_s: "platform time [s]", spent_usd: "spent [USD]" };
  if (document.querySelector("[data-no-money]")) delete places.spent_usd; // not known here, which is not nothing
  const rows = axes.round.map((_, at) => [...Object.keys(places).map((name) => axes[name][at]), perPoint, ...columns.map((column) => column[at] ?? "")]);
  return { head: [...Object.values(places), "rounds in this point", ...head], rows };
}

function toggleTable(chart) {
  const place = chart.figure.querySelector("[data-table]");
  place.hidden = !place.hidden;
  if (place.hidden) return;
  const { head, columns } = chart.recipe.table();
  const { axis } = chart.sight.view;
  const at = chart.sight.columns.axes[axis.column];
  const table = document.createElement("table");
  table.className = "grid";
  const line = (cells, tag) => {
    const row = document.createElement("tr");
    for (const text of cells) row.appendChild(Object.assign(document.createElement(tag), { textContent: text, className: "number" }));
    return row;
  };
  table.createTHead().append(line([axis.name, ...head], "th"));
  table.createTBody().append(...at.map((x, index) => line([axis.words(x), ...columns.map((column) => shown(column[index]))], "td")));
  place.replaceChildren(table);
  place.focus();
}

function shown(value) {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "\u2013" : Number(value.toPrecision(5)).toLocaleString("en-GB", { maximumSignificantDigits: 5 });
}
