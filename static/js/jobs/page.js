/** A job's page: live messages in, one redraw a frame out. */
import { LiveFeed } from "../live.js";
import { Columns } from "../charts/columns.js";
import { ReturnChart } from "../charts/return.js";
import { ActorsChart } from "../charts/actors.js";
import { SpendChart } from "../charts/spend.js";
import { RoundTimeChart } from "../charts/round_time.js";
import { EventList } from "./events.js";
import { showHeader, showStatus } from "./header.js";
import { startTabs } from "./tabs.js";
import { startCopying } from "./copying.js";

const OVER = new Set(["succeeded", "failed", "cancelled"]);
const STALE_MS = 12000;
const page = document.querySelector("[data-job-page]");
const figure = (name) => page.querySelector(`[data-chart="${name}"]`);
export const columns = new Columns();
const spend = new SpendChart(figure("spend"), columns);
const charts = [
  new ReturnChart(figure("return"), columns),
  new ActorsChart(figure("actors"), columns),
  spend,
  new RoundTimeChart(figure("round_time"), columns),
];
const events = new EventList(page.querySelector(".events"));

/** What waits for the next frame. */
const pending = { job: JSON.parse(document.getElementById("job-header").textContent), events: [], charts: false, seq: 0 };
let frame = 0;
let status = "";
let over = OVER.has(pending.job.observed);

function schedule() {
  frame ||= requestAnimationFrame(draw);
}

function draw() {
  frame = 0;
  const { job, seq } = pending;
  showHeader(job);
  over = OVER.has(job.observed);
  events.add(pending.events.splice(0));
  spend.setLimit(Number(job.limit_usd));
  if (pending.charts) for (const chart of charts) chart.draw();
  pending.charts = false;
  // The charts commit in microtasks of their own; this one comes after them.
  queueMicrotask(() => {
    document.documentElement.dataset.drawnSeq = String(seq);
    performance.mark(`drawn:${seq}`);
  });
}

const feed = new LiveFeed({
  socketPath: page.dataset.socket,
  streamPath: page.dataset.stream,
  onSnapshot(message) {
    columns.load(message.series);
    pending.events.push(...message.events);
    Object.assign(pending, { job: message.job, seq: message.seq, charts: true });
    schedule();
  },
  onEvents(message) {
    for (const event of message.events) pending.charts = columns.add(event) || pending.charts;
    pending.events.push(...message.events);
    Object.assign(pending, { job: message.job, seq: message.last });
    schedule();
  },
  onStatus(now) {
    status = now;
    tellStatus();
  },
});

function tellStatus() {
  showStatus(status, feed.heardAt, over);
  page.classList.toggle("stale", status !== "" && !over && Date.now() - feed.heardAt > STALE_MS);
}

events.add(JSON.parse(document.getElementById("job-events").textContent));
startTabs(() => charts.forEach((chart) => chart.resize()));
startCopying();
setInterval(tellStatus, 200);
feed.start();
