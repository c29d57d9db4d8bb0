/** The event list: each event of a job in words, newest first, in a place of fixed height. */
import { count, money, plural, score, shortTime } from "../format.js";
import { timeElement } from "../frame/clocks.js";
import { icon } from "./icons.js";

const MOST_SHOWN = 300;
const PICODOLLARS_PER_USD = 1e12;

/** By kind of event: what to say, and the icon and tone to say it with. */
const WORDS = {
  state: (p) => ({ text: sentence(p.text), ...stateLook(p) }),
  started: (p) => ({
    text: p.resumed_from_round ? `Went on from the checkpoint of round ${count(p.resumed_from_round)}.` : "Training started.",
    more: p.notes,
    icon: "arrow-right-circle",
  }),
  round: (p) => ({ text: roundWords(p.report), icon: "dot" }),
  evaluation: (p) => ({
    text: `Evaluated after round ${count(p.round_no)}: ${score(p.return_mean)} \u00b1 ${score(p.return_std)} over ${plural(p.episode_returns.length, "episode")}.`,
    icon: "bar-chart",
    tone: "running",
  }),
  checkpoint: (p) => ({ text: `Checkpoint of round ${count(p.round_no)} saved, ${fileSize(p.byte_count)}.`, icon: "bookmark-check" }),
  call_failed: (p) => ({
    text: `${p.call_kind === "update" ? "An update" : `A call (${p.call_kind})`} of round ${count(p.round_no)} failed: ${sentence(p.reason)} ${p.will_retry ? "It is tried again." : "It is not tried again."}`,
    icon: "exclamation-triangle-fill",
    tone: "warning",
  }),
  resumed: (p) => ({ text: p.text ?? "Went on.", icon: "arrow-repeat", tone: "warning" }),
  budget: (p) => ({ text: p.text, icon: "sign-stop-fill", tone: "budget" }),
  stopped: (p) => ({ text: `${sentence(p.reason)} ${plural(p.rounds, "round")}, ${count(p.env_steps)} steps.`, ...stopLook(p.reason_code) }),
  note: (p) => ({ text: p.text, icon: "dot" }),
};

export class EventList {
  /** @param {HTMLElement} section */
  constructor(section) {
    this.list = section.querySelector("[data-events]");
    this.seen = new Set();
    const toggle = section.querySelector("[data-show-rounds]");
    const apply = () => section.classList.toggle("without-rounds", !toggle.checked);
    toggle.addEventListener("change", apply);
    apply();
  }

  /** Puts events in by their number, each once; what somebody is reading stays where it is. */
  add(events) {
    const before = this.list.scrollHeight;
    const reading = this.list.scrollTop > 8;
    for (const event of events) {
      if (this.seen.has(event.seq)) continue;
      this.seen.add(event.seq);
      this.insert(event);
    }
    while (this.list.children.length > MOST_SHOWN) this.list.lastChild.remove();
    if (reading) this.list.scrollTop += this.list.scrollHeight - before;
  }

  insert(event) {
    const row = rowOf(event);
    let after = this.list.firstElementChild;
    while (after && Number(after.dataset.seq) > event.seq) after = after.nextElementSibling;
    this.list.insertBefore(row, after);
  }
}

function rowOf(event) {
  const told = (WORDS[event.kind] ?? WORDS.note)(event.payload);
  const row = document.createElement("li");
  row.dataset.seq = String(event.seq);
  row.dataset.kind = event.kind;
  if (told.tone) row.className = `tone-${told.tone}`;
  const words = document.createElement("span");
  words.textContent = [told.text, ...(told.more ?? [])].filter(Boolean).join(" ");
  row.append(icon(told.icon), words, timeElement(event.at));
  return row;
}

function roundWords(report) {
  const cost = money(report.cost_picodollars / PICODOLLARS_PER_USD);
  return `Round ${count(report.round_no)}: return ${score(report.episode_return_mean)}, ${plural(report.actors, "actor")}, ${shortTime(report.total_s)}, ${cost}.`;
}

function stateLook({ observed, reason_code: code }) {
  if (observed === "paused" && code === "budget") return { icon: "sign-stop-fill", tone: "budget" };
  return {
    failed: { icon: "x-octagon-fill", tone: "failed" },
    recovering: { icon: "arrow-repeat", tone: "warning" },
    succeeded: { icon: "check-circle", tone: "ok" },
  }[observed] ?? { icon: "arrow-right-circle" };
}

function stopLook(code) {
  if (code === "budget") return { icon: "sign-stop-fill", tone: "budget" };
  if (code === "failing") return { icon: "x-octagon-fill", tone: "failed" };
  return { icon: "check-circle", tone: code === "cancelled" || code === "paused" ? undefined : "ok" };
}

function sentence(text) {
  const whole = String(text ?? "").trim();
  if (!whole) return "";
  return whole[0].toUpperCase() + whole.slice(1) + (/[.!?]$/.test(whole) ? "" : ".");
}

function fileSize(bytes) {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
