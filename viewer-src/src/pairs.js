// Pairs that the user knows: clicked on both shapes, listed, and matched with again.

import { el, icon, number } from "./dom.js";

export class Pairs {
  /**
   * @param {object} options `most`: how many at most; `given`: [[source, target], ...] to begin with;
   *   `again(pairs)`: matches with them, or null if the files are gone
   */
  constructor({ most, given, again }) {
    this.most = most;
    this.list = given.map(([source, target]) => ({ source, target }));
    this.again = again;
    this.pending = {};
    this.choosing = false;
    this.stage = null;
    this.toggle = el("button.quiet.choose", { type: "button", "aria-pressed": "false", onclick: () => this.choose(!this.choosing) });
    this.note = el("p.note", { role: "status" });
    this.rows = el("ol.pairs");
    this.message = el("p.message", { role: "alert" });
    this.go = el("button.primary.again", { type: "button", text: "Match again with these pairs", onclick: () => this.submit() });
    this.element = el("section.known", {}, el("h2", { text: "Known pairs" }), this.note, this.rows, this.toggle, this.go, this.message);
  }

  attach(stage) {
    this.stage = stage;
    stage.onTap = (point) => this.tap(point);
    this.update();
  }

  choose(on) {
    this.choosing = on;
    this.pending = {};
    if (on) this.stage.clear();
    this.update();
  }

  /** A click on the stage; true if it was meant for a pair. */
  tap(point) {
    if (!this.choosing) return false;
    if (point) {
      this.pending[point.side] = point.index;
      const { source, target } = this.pending;
      if (source !== undefined && target !== undefined) this.add(source, target);
      this.update();
    }
    return true;
  }

  /** A source point has one partner: the last one it was given. */
  add(source, target) {
    this.list = [...this.list.filter((pair) => pair.source !== source), { source, target }];
    this.pending = {};
    if (this.list.length >= this.most) this.choosing = false;
  }

  remove(pair) {
    this.list = this.list.filter((other) => other !== pair);
    this.update();
  }

  /** Escape drops the half of a pair first, then ends choosing; false if there was neither. */
  escape() {
    if (!this.choosing) return false;
    if (Object.keys(this.pending).length) this.pending = {};
    else this.choosing = false;
    this.update();
    return true;
  }

  async submit() {
    this.go.disabled = true;
    this.message.textContent = "";
    try {
      await this.again(this.list.map(({ source, target }) => [source, target]));
    } catch (error) {
      this.message.textContent = error.message;
      this.update();
    }
  }

  update() {
    const full = this.list.length >= this.most;
    const { source, target } = this.pending;
    this.toggle.textContent = this.choosing ? "Done (Esc)" : this.list.length ? "Add another pair" : "Add a pair";
    this.toggle.setAttribute("aria-pressed", String(this.choosing));
    this.toggle.disabled = full && !this.choosing;
    this.note.textContent = !this.choosing
      ? full ? `${this.most} pairs are the most that can be used.` : this.list.length ? "" : "A few partners that you know steer the match: ends of limbs tell most."
      : source !== undefined ? "Now click on its partner on the target."
      : target !== undefined ? "Now click on its partner on the source."
      : "Click on a point of the source, then on its partner on the target.";
    this.note.hidden = !this.note.textContent;
    this.rows.replaceChildren(...this.list.map((pair, place) => this._row(pair, place)));
    this.go.disabled = !this.list.length || !this.again;
    this.go.hidden = !this.list.length;
    if (!this.again && this.list.length) this.message.textContent = "To match again, drop both files once more: this page was loaded anew.";
    this.stage.choosing = this.choosing;
    this.stage.root.classList.toggle("choosing", this.choosing);
    this.stage.marks = [
      ...this.list.flatMap((pair, place) => ["source", "target"].map((side) => ({ side, index: pair[side], text: String(place + 1) }))),
      ...Object.entries(this.pending).map(([side, index]) => ({ side, index, text: String(this.list.length + 1), open: true })),
    ];
    this.stage.invalidate();
  }

  _row(pair, place) {
    const name = `pair ${place + 1}`;
    return el("li", {},
      el("b", { text: String(place + 1) }),
      el("span", { text: `${number(pair.source)} → ${number(pair.target)}` }),
      el("button.icon-button.remove", { type: "button", "aria-label": `Remove ${name}`, title: `Remove ${name}`, onclick: () => this.remove(pair) }, icon("close")));
  }
}
