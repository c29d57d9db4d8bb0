/**
 * A job's live messages in order and without a gap: the picture as it is now by an ordinary request (which comes
 * compressed), what follows by a websocket, and polling where sockets do not get through.
 *
 * onSnapshot gets the whole picture and replaces what was shown; onEvents gets what came after, each number once, and
 * of the job what may have changed.
 * onStatus gets "live", "reconnecting", "polling", "signed-out" or "closed".
 *
 * @typedef {{t: "snapshot", seq: number, job: object, series: object, events: object[]}} Snapshot
 * @typedef {{t: "events", first: number, last: number, events: object[], job: object}} Events
 */
import { isSignIn } from "./frame/reachability.js";

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8000;
const SILENCE_MS = 12000; // heartbeats come every 5 s
const FAILURES_BEFORE_POLLING = 3;
const POLL_MS = 2000;
const SOCKET_AGAIN_MS = 30000;
const SIGNED_OUT = 4401;
const CHANGED = new Set([4403, 4404]); // a lower role, or no job any more: the page itself says which

export class LiveFeed {
  /**
   * @param {{socketPath: string, streamPath: string, onSnapshot: (m: Snapshot) => void, onEvents: (m: Events) => void, onSignOfLife?: (m: object) => void,
   *   onStatus: (s: string) => void}} options
   */
  constructor(options) {
    this.options = options;
    this.seq = 0;
    this.failures = 0;
    this.heardAt = Date.now();
    this.socket = null;
    this.timer = null;
    this.status = "";
  }

  async start() {
    setInterval(() => this.checkSilence(), 1000);
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.hurry());
    // Should this fail, the socket begins with the picture.
    if (!this.seq) await this.fetchMessages().catch(() => {});
    if (!this.socket && !this.isOver()) this.connect();
  }

  connect() {
    clearTimeout(this.timer);
    const address = new URL(this.options.socketPath, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    if (this.seq > 0) address.searchParams.set("after", String(this.seq));
    const socket = new WebSocket(address);
    this.socket = socket;
    this.openedAt = Date.now();
    socket.addEventListener("message", (event) => {
      if (socket !== this.socket) return;
      this.failures = 0;
      this.tell("live");
      this.take(JSON.parse(event.data));
    });
    socket.addEventListener("close", (event) => {
      if (socket === this.socket) this.lost(event.code);
    });
  }

  lost(code) {
    this.socket = null;
    if (code === SIGNED_OUT) {
      this.tell("signed-out");
      return;
    }
    if (CHANGED.has(code)) {
      location.reload();
      return;
    }
    this.failures += 1;
    if (this.failures >= FAILURES_BEFORE_POLLING) {
      this.poll(Date.now() + SOCKET_AGAIN_MS);
      return;
    }
    this.tell("reconnecting");
    const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (this.failures - 1));
    this.timer = setTimeout(() => this.connect(), pause * (0.75 + Math.random() / 2));
  }

  /** One message of the protocol; known messages are dropped, and after a gap the connection starts again. */
  take(message) {
    this.heardAt = Date.now();
    if (message.t === "snapshot") {
      this.seq = message.seq;
      this.options.onSnapshot(message);
    } else if (message.t === "events") {
      if (message.first > this.seq + 1) {
        this.reconnect();
      } else if (message.last > this.seq) {
        const fresh = message.events.filter((event) => event.seq > this.seq);
        this.seq = message.last;
        this.options.onEvents({ ...message, events: fresh });
      }
    } else if (message.t === "header") {
      this.options.onEvents({ events: [], last: this.seq, job: message.job });
    } else if (message.t === "hb") {
      if (message.seq > this.seq) this.reconnect();
      else this.options.onSignOfLife?.(message);
    }
  }

  reconnect() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.timer = setTimeout(() => this.connect(), FIRST_PAUSE_MS);
  }

  checkSilence() {
    if (this.socket && Date.now() - Math.max(this.heardAt, this.openedAt) > SILENCE_MS) {
      const socket = this.socket;
      this.lost(0);
      socket.close();
    }
  }

  hurry() {
    if (this.socket || this.isOver() || this.status === "polling") return;
    this.connect();
  }

  async poll(socketAgainAt) {
    try {
      await this.fetchMessages();
      if (this.isOver()) return;
      this.tell("polling");
    } catch {
      this.tell("reconnecting");
    }
    const again = Date.now() > socketAgainAt ? () => this.connect() : () => this.poll(socketAgainAt);
    this.timer = setTimeout(again, POLL_MS);
  }

  /** Takes what a socket would have sent since the last event. Throws if they are not available now. */
  async fetchMessages() {
    const answer = await fetch(`${this.options.streamPath}?after=${this.seq}`, { headers: { Accept: "application/json" } });
    if ([403, 404, 410].includes(answer.status) || answer.redirected) {
      this.tell(isSignIn(answer) ? "signed-out" : "closed");
      return;
    }
    if (!answer.ok) throw new Error(String(answer.status));
    for (const message of await answer.json()) this.take(message);
    this.heardAt = Date.now();
  }

  /** Whether nothing comes any more. */
  isOver() {
    return this.status === "closed" || this.status === "signed-out";
  }

  tell(status) {
    if (status === this.status) return;
    this.status = status;
    this.options.onStatus(status);
  }
}
