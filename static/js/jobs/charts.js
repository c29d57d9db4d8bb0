/** The chart tab: all charts share one view and the same columns, of the whole run or of the zoomed part. */
import { Columns } from "../charts/columns.js";
import { LiveChart } from "../charts/live_chart.js";
import { ROUND } from "../charts/names.js";
import { recipeFor } from "../charts/panels.js";
import { FromZero } from "../charts/scale.js";
import { View, countProgressIn, smoothAtFirst, startBar } from "../charts/view.js";
import { count } from "../format.js";
import { Films } from "./films.js";
import { joinIn, schedule } from "./page.js";
import { Scrub } from "./scrub.js";

const page = document.querySelector("[data-job-page]");
const bar = page.querySelector("[data-chart-bar]");
const words = bar.querySelector("[data-bucket-words]");
export const columns = new Columns();
countProgressIn(bar.dataset.unit);
smoothAtFirst(bar.dataset.smoothing);
const view = new View(changed);
const sight = { columns, view, x: null, reach: 0 };
shareRange();
export const charts = [...page.querySelectorAll("[data-chart]")].map((figure) => new LiveChart(figure, recipeFor(figure, sight), sight));
const spend = charts.find((chart) => chart.figure.dataset.chart === "spend");
const showBar = startBar(bar, view);
const [filmCard, scrubBar] = ["films", "scrub"].map((name) => page.querySelector(`[data-${name}]`));
const films = filmCard && new Films(filmCard, () => scrub?.draw());
const scrub = scrubBar && new Scrub(scrubBar, sight, charts, films);
let fresh = false;
let latest = 0;

/** All charts go as far as the one that goes furthest. */
function shareRange() {
  sight.x = new FromZero(view.axis.least, view.axis.nice);
}

function measureReach() {
  const ends = [sight.columns.axes[view.axis.column].at(-1) ?? 0, spend?.recipe.data()[0].at(-1) ?? 0];
  const reach = Math.max(...ends);
  if (reach < sight.reach) shareRange(); // a resume took rounds back
  sight.reach = reach;
}

/** The view changed: build every chart again over its present columns. */
async function changed() {
  showBar();
  await look();
  sight.reach = 0;
  shareRange();
  measureReach();
  for (const chart of charts) chart.make();
  fresh = true;
  schedule();
}

async function look() {
  const { zoom } = view;
  if (!zoom || !columns.length) sight.columns = columns;
  else if (columns.perPoint === 1) sight.columns = columns.between(...zoom);
  else sight.columns = (await series(`from=${zoom[0]}&to=${zoom[1]}`)) ?? columns;
}

/** Some rounds, cut into points by the server; null if the request failed or a newer one was sent. */
async function series(query) {
  const mine = (latest += 1);
  try {
    const answer = await fetch(`${page.dataset.series}?${query}`, { headers: { Accept: "application/json" } });
    if (!answer.ok || answer.redirected) return null;
    const found = new Columns();
    found.load(await answer.json());
    return mine === latest ? found : null;
  } catch {
    return null;
  }
}

/** A resume repeated rounds that share points with others. */
async function reload() {
  const whole = await series("");
  if (!whole) return;
  Object.assign(columns, whole);
  fresh = true;
  schedule();
}

joinIn({
  snapshot(message) {
    performance.mark("data");
    columns.load(message.series);
    fresh = true;
    films?.expect(columns.evaluations.round.at(-1) ?? 0);
    if (view.zoom) changed();
  },
  events(message) {
    for (const event of message.events) {
      const outcome = columns.add(event);
      fresh = fresh || outcome === "changed";
      if (event.kind === "evaluation") films?.expect(event.payload.round_no);
      if (outcome === "reload") reload();
    }
  },
  draw(job) {
    if (spend?.recipe.setLimit(Number(job.limit_usd))) fresh = true;
    if (spend?.recipe.setAhead(job.ahead)) fresh = true;
    if (!fresh) return;
    fresh = false;
    if (!view.zoom) measureReach();
    page.querySelector("[data-charts]").classList.toggle("no-rounds", columns.length === 0);
    tellPoints();
    for (const chart of charts) {
      if (chart.figure.hidden && tells(chart.figure.dataset)) chart.figure.hidden = false;
      chart.draw();
    }
    scrub?.draw();
    performance.mark("charts-drawn");
  },
});

/** Charts that few jobs use are hidden until they have data. */
function tells({ chart: name, shownFor }) {
  return columns.knows(name) && (shownFor !== "positive" || columns.values[name].some((value) => value > 0));
}

function tellPoints() {
  const { perPoint } = sight.columns;
  const what = perPoint === 1 ? `1 point = 1 ${ROUND}` : `1 point = ${count(perPoint)} ${ROUND}s, their least and most as a band`;
  const zoom = view.zoom ? `${ROUND}s ${count(view.zoom[0])} to ${count(view.zoom[1])}; ` : "";
  words.textContent = columns.length ? zoom + what : "";
}

showBar();
