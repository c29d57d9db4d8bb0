/** The event list: each event with its text, newest first. */
import { timeElement } from "../frame/clocks.js";
import { icon } from "./icons.js";

const MOST_SHOWN = 300;

export class EventList {
  /** @param {HTMLElement} list */
  constructor(list) {
    this.list = list;
    this.seen = new Set([...list.children].map((row) => Number(row.dataset.seq)));
  }

  /** Adds events by their number, each once. The lines that a user is reading keep their place. */
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

function rowOf({ seq, kind, at, description }) {
  const row = document.createElement("li");
  row.dataset.seq = String(seq);
  row.dataset.kind = kind;
  if (description.tone) row.className = `tone-${description.tone}`;
  const words = document.createElement("span");
  words.textContent = description.text;
  row.append(icon(description.icon), words, timeElement(at));
  return row;
}
