/** The head of a job's page: state, sentences and figures, updated from each message's header. */
import { ROUND, capitalized } from "../charts/names.js";
import { UNKNOWN, count, duration, money, plural, score } from "../format.js";
import { inLocalTime, timeElement } from "../frame/clocks.js";
import { icon } from "./icons.js";

const OVER = new Set(["succeeded", "failed", "cancelled"]);
const HOW = { ".": "", " on request.": "On request.", " by hand.": "By hand." };
const PAUSABLE = new Set(["queued", "starting", "running", "recovering"]);
const states = JSON.parse(document.getElementById("job-states").textContent);
const slots = {};
for (const slot of document.querySelectorAll("[data-live]")) slots[slot.dataset.live] = slot;
const decimals = Number(document.querySelector("[data-decimals]").dataset.decimals);
let shownState = "";

/** @param {any} job the header of a message */
export function showHeader(job) {
  write("return", score(job.evaluated_score ?? job.training_score, decimals));
  write("evaluation", job.judged);
  write("steps", count(job.total_progress));
  write("actors", job.actors ? count(job.actors) : UNKNOWN);
  write("round", job.round_no ? `${ROUND} ${count(job.round_no)}` : `no ${ROUND} yet`);
  if (slots.spent) {
    write("spent", money(job.spent_usd));
    write("limit", money(job.limit_usd));
  }
  write("time", job.platform_s ? duration(job.platform_s) : UNKNOWN);
  write("reason", reasonInWords(job));
  write("burn", inLocalTime(job.burn ?? ""));
  write("reached", job.reached);
  write("progress", job.progress);
  write("no-news", job.no_news);
  write("plan", job.plan);
  write("learner", job.learner);
  write("elsewhere", job.elsewhere);
  if (slots.bar) showBar(Number(job.spent_usd), Number(job.reserved_usd), Number(job.limit_usd));
  if (slots["money-sentence"]) showSentences(job);
  showState(job);
}

function stateOf(job) {
  return states[`${job.observed}:${job.reason_code}`] ?? states[job.observed];
}

/** The reason without what the pill says. */
function reasonInWords(job) {
  if (!job.reason) return job.observed === "running" ? `${capitalized(ROUND)} ${count(job.round_no + 1)} is under way.` : "";
  const word = stateOf(job).word;
  return HOW[job.reason.startsWith(word) ? job.reason.slice(word.length) : job.reason] ?? job.reason;
}

/** A heartbeat brings the reason for waiting; it is shown until the next event. */
export function showWaiting(words) {
  if (words) write("reason", words);
}

function write(name, text) {
  const slot = slots[name];
  if (slot && slot.textContent !== text) slot.textContent = text;
}

function showBar(spent, reserved, limit) {
  const percent = (part) => `${Math.min(100, (100 * part) / limit).toFixed(2)}%`;
  slots.bar.querySelector(".spent").setAttribute("width", percent(spent));
  slots.bar.querySelector(".reserved").setAttribute("width", percent(spent + reserved));
}

function showSentences(job) {
  const sentence = slots["money-sentence"];
  const bold = document.createElement("b");
  if (OVER.has(job.observed)) {
    bold.textContent = money(job.spent_usd);
    sentence.replaceChildren("This job cost ", bold, ` of the ${money(job.limit_usd)} it was allowed.`);
  } else {
    bold.textContent = money(job.cap_usd);
    const because = job.cap_because ? ` (${job.cap_because})` : "";
    const what = job.calls_in_flight ? `${plural(job.calls_in_flight, "call")} in flight` : "rent";
    const reserved = Number(job.reserved_usd) > 0 ? `${money(job.reserved_usd)} reserved for ${what}, ` : "";
    const parts = `${money(job.spent_usd)} spent, ${reserved}${money(job.free_usd)} free.`;
    sentence.replaceChildren("This job cannot cost more than ", bold, `${because}: ${parts}`);
  }
}

function showState(job) {
  const key = `${job.observed}/${job.reason_code}/${job.since}`;
  if (key === shownState) return;
  shownState = key;
  const state = stateOf(job);
  const pill = document.createElement("span");
  pill.className = `pill tone-${state.tone}`;
  const word = document.createElement("span");
  word.textContent = state.word;
  pill.append(icon(state.icon), word);
  slots.pill.replaceChildren(pill);
  slots.since.replaceChildren(timeElement(job.since, "since"));
  if (slots["budget-box"]) slots["budget-box"].hidden = !(job.observed === "paused" && job.reason_code === "budget");
  if (!slots["stop-form"]) return;
  const able = slots["pause-form"].dataset.able === "yes";
  slots["stop-form"].hidden = OVER.has(job.observed);
  slots["pause-form"].hidden = !able || !PAUSABLE.has(job.observed);
  slots["resume-form"].hidden = job.observed !== "paused" || job.reason_code === "budget";
}

/** Shows the connection's state; `stale` dims values that may be old. */
export function showStatus(status, heardAt, over) {
  const mark = slots.mark;
  const seconds = Math.max(0, (Date.now() - heardAt) / 1000);
  const words = {
    live: over ? "finished" : `live \u2013 ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s ago`,
    polling: `every 2 s \u2013 ${seconds.toFixed(1)} s ago`,
    reconnecting: seconds < 3 ? "reconnecting\u2026" : `reconnecting\u2026 ${Math.round(seconds)} s old`,
    "signed-out": "signed out",
    closed: mark.dataset.closed ?? "sign in again to continue",
  }[status];
  if (words === undefined) return;
  mark.dataset.state = status;
  write("mark-words", words);
}
