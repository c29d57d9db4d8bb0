/**
 * The head of a job's page, the same on all its tabs: live messages in, one redraw a frame out. A tab that shows more
 * of them joins in with `joinIn`.
 */
import { saySignedOut } from "../frame/reachability.js";
import { LiveFeed } from "../live.js";
import { EventList } from "./events.js";
import { showHeader, showStatus, showWaiting } from "./header.js";
import { startCopying } from "./copying.js";

const OVER = new Set(["succeeded", "failed", "cancelled"]);
const STALE_MS = 12000;
const page = document.querySelector("[data-job-page]");
const list = page.querySelector("[data-events]");
const events = list && !list.closest("[data-older]") ? new EventList(list) : null;
const parts = [];

/** What waits for the next frame. */
const pending = { job: JSON.parse(document.getElementById("job-header").textContent), events: [], seq: 0 };
let frame = 0;
let status = "";
let over = OVER.has(pending.job.observed);

/**
 * @param {{snapshot?: (m: object) => void, events?: (m: object) => void, draw?: (job: object) => void}} part
 * called with the messages as they come, and once in a frame that has something new
 */
export function joinIn(part) {
  parts.push(part);
}

/** Draws in the next frame, also without a new message. */
export function schedule() {
  if (!frame) frame = requestAnimationFrame(draw);
}

function draw() {
  frame = 0;
  const { job, seq } = pending;
  showHeader(job);
  over = OVER.has(job.observed);
  events?.add(pending.events.splice(0));
  for (const part of parts) part.draw?.(job);
  // Charts commit in microtasks of their own; this one comes after them.
  queueMicrotask(() => {
    document.documentElement.dataset.drawnSeq = String(seq);
    performance.mark(`drawn:${seq}`);
  });
}

const feed = new LiveFeed({
  socketPath: page.dataset.socket,
  streamPath: page.dataset.stream,
  onSnapshot(message) {
    for (const part of parts) part.snapshot?.(message);
    pending.events.push(...message.events);
    Object.assign(pending, { job: message.job, seq: message.seq });
    schedule();
  },
  onEvents(message) {
    for (const part of parts) part.events?.(message);
    pending.events.push(...message.events);
    Object.assign(pending, { job: { ...pending.job, ...message.job }, seq: message.last });
    schedule();
  },
  onSignOfLife: (message) => showWaiting(message.waiting),
  onStatus(now) {
    status = now;
    if (now === "signed-out") saySignedOut();
    tellStatus();
  },
});

function tellStatus() {
  showStatus(status, feed.heardAt, over);
  const stale = status !== "" && !feed.isOver() && !over && Date.now() - feed.heardAt > STALE_MS;
  page.classList.toggle("stale", stale);
  page.querySelector("[data-stale]").hidden = !stale;
}

startCopying();
setInterval(tellStatus, 200);
// Once every part of the page has joined in.
addEventListener("DOMContentLoaded", () => {
  if (!parts.some((part) => part.snapshot)) {
    feed.seq = pending.seq = Number(page.dataset.seq); // the page holds all that came before
    schedule();
  }
  feed.start();
});
