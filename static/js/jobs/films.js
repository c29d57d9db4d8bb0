/**
 * The films beside the return chart: the newest one plays, or that of a chosen round. It stands still where motion is to
 * be reduced, and whenever the button says so.
 */
import { count, score } from "../format.js";

const LOOK_EVERY_MS = 1500;
const LOOKS_AT_MOST = 30;
const decimals = Number(document.querySelector("[data-decimals]")?.dataset.decimals ?? 1);

export class Films {
  /** @param {HTMLElement} card @param {() => void} onChange called when there is another film */
  constructor(card, onChange) {
    Object.assign(this, { card, onChange, round: null, source: "", awaited: 0, looks: 0, timer: null });
    [this.picture, this.words, this.button, this.nothing] = ["picture", "words", "play", "nothing"].map((name) => card.querySelector(`[data-film-${name}]`));
    this.all = JSON.parse(document.getElementById("job-films").textContent);
    this.playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.button.addEventListener("click", () => {
      this.playing = !this.playing;
      this.show();
    });
    this.show();
  }

  /** The newest film up to a round; null: the newest of all. */
  choose(round) {
    if (round === this.round) return;
    this.round = round;
    this.show();
  }

  show() {
    const film = this.all.findLast((one) => this.round === null || one.round <= this.round) ?? this.all[0];
    if (!film) return;
    const { card, picture, button } = this;
    if (picture.hidden) picture.src = film.still; // the film may take a moment
    this.draw(this.playing ? film.film : film.still);
    const words = `return ${score(film.return, decimals)}${film.ended ? "" : ` in ${count(film.steps)} steps`}`;
    this.words.textContent = `Round ${count(film.round)} \u00b7 ${words}`;
    picture.alt = `The policy of round ${film.round} in its environment: ${words}`;
    picture.hidden = button.hidden = false;
    this.nothing.hidden = true;
    card.classList.remove("no-film");
    card.classList.toggle("playing", this.playing);
    button.ariaLabel = this.playing ? "Stop the film" : "Play the film";
  }

  /** Until it is loaded, the one before stays. */
  async draw(source) {
    if (source === this.source) return;
    this.source = source;
    const next = new Image();
    next.src = source;
    await next.decode().catch(() => {}); // one that cannot be shown is left to the page
    if (source === this.source) this.picture.src = source;
  }

  /** The films of these rounds or later ones are on their way. */
  expect(round) {
    if (round <= this.awaited || round <= (this.all.at(-1)?.round ?? 0)) return;
    this.awaited = round;
    this.looks = LOOKS_AT_MOST;
    this.timer ??= setTimeout(() => this.look(), LOOK_EVERY_MS);
  }

  async look() {
    this.timer = null;
    if (!document.hidden) await this.fetchList();
    this.looks -= 1;
    if (this.looks > 0 && (this.all.at(-1)?.round ?? 0) < this.awaited) this.timer = setTimeout(() => this.look(), LOOK_EVERY_MS);
  }

  async fetchList() {
    try {
      const answer = await fetch(this.card.dataset.films, { headers: { Accept: "application/json" } });
      if (!answer.ok || answer.redirected) return;
      const { films, sentence } = await answer.json();
      this.nothing.textContent = sentence;
      if (films.length === this.all.length && films.at(-1)?.round === this.all.at(-1)?.round) return;
      this.all = films;
      this.show();
      this.onChange();
    } catch {
      // No network: the next look tries again.
    }
  }
}
