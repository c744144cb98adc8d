// The whole page: head, stage, panel, keys.

import { download, el, icon, number } from "./dom.js";
import { Panel } from "./panel.js";
import { Stage } from "./stage.js";
import { buildModel } from "./model.js";
import { cycleTheme, onTheme, themeIcon, themeName } from "./theme.js";

const KEYS = [
  ["drag", "turn"], ["shift + drag, two fingers", "move"], ["wheel, pinch", "nearer, farther"],
  ["click", "keep a point"], ["double click", "look at a point"], ["1 … 9", "colours"],
  ["← → ↑ ↓", "turn"], ["+ −", "nearer, farther"], ["R", "back to the first view"],
  ["N B", "next, previous sample point"], ["M", "play the morph"], ["L", "lines between partners"],
  ["C", "one camera for both"], ["A", "turn the source onto the target"], ["W", "edges"],
  ["[ ]", "size of the points"], ["V", "both shapes, source, target"], ["S", "save a picture"],
  ["T", "light, dark, as the system"], ["P", "panel"], ["F", "full screen"], ["?", "this help"],
];

export class Viewer {
  /**
   * @param {HTMLElement} root
   * @param {object} description what scene.py described
   * @param {Object<string, ArrayLike<number>>} arrays the unpacked arrays
   * @param {object} [extras] `head`: buttons for the head; `section`: a section for the panel; `pairs`: known pairs
   */
  constructor(root, description, arrays, extras = {}) {
    this.root = root;
    this.model = buildModel(description, arrays);
    const stageBox = el("div.stage", { tabindex: "0", role: "application", "aria-label": "Two linked 3-D views. Press ? for the keys." });
    this.frame = el("div.viewer");
    root.replaceChildren(this.frame);
    this.frame.append(this._head(extras.head ?? []), stageBox);
    this.stage = new Stage(stageBox, this.model, (selection, pinned) => this.panel?.select(selection, pinned));
    this.labels = Object.fromEntries(["source", "target"].map((side) => [side, this._label(side)]));
    stageBox.append(this.labels.source, this.labels.target, el("div.seam"));
    this.panel = new Panel(this);
    if (extras.section) this.panel.element.querySelector(".colours").after(extras.section);
    this.pairs = extras.pairs ?? null;
    if (this.pairs) {
      // Above what changes its height while the pointer moves.
      this.panel.element.querySelector(".colours").after(this.pairs.element);
      this.pairs.attach(this.stage);
    }
    this.frame.append(this.panel.element);
    this.help = this._help();
    this.frame.append(this.help);
    this.panel.select(null, false);
    this.set({});
    this.off = [onTheme(() => this._themed())];
    this._onKey = (event) => this._key(event);
    document.addEventListener("keydown", this._onKey);
    this._themed();
  }

  destroy() {
    document.removeEventListener("keydown", this._onKey);
    for (const off of this.off) off();
    this.stop();
    this.stage.renderer.dispose();
    this.stage.renderer.forceContextLoss();
    this.root.replaceChildren();
  }

  set(changes) {
    this.stage.set(changes);
    const { settings } = this.stage;
    this.panel.update(settings);
    this.frame.dataset.show = settings.show;
  }

  _head(extra) {
    const button = (name, label, onclick) =>
      el("button.icon-button", { type: "button", "aria-label": label, title: label, onclick }, icon(name));
    this.themeButton = button(themeIcon(), "Light or dark (T)", () => cycleTheme());
    return el(
      "header.head",
      {},
      el("span.brand", { text: "ltenet" }),
      el("h1", { text: this.model.description.title, title: this.model.description.title }),
      el(
        "nav",
        {},
        ...extra,
        button("home", "Reset the view (R)", () => this.stage.reset()),
        button("camera", "Save a picture (S)", () => this.save()),
        document.fullscreenEnabled ? button("full", "Full screen (F)", () => this.fullscreen()) : null,
        this.themeButton,
        button("help", "Help (?)", () => this.toggleHelp()),
        button("panel", "Panel (P)", () => this.togglePanel()),
      ),
    );
  }

  _label(side) {
    const { name, count, faces } = this.model[side];
    return el(
      `div.label.${side}`,
      {},
      el("small", { text: side }),
      el("b", { text: name, title: name }),
      el("span", { text: faces ? `${number(count)} points, ${number(faces.length / 3)} faces` : `${number(count)} points` }),
    );
  }

  _help() {
    const close = () => this.toggleHelp(false);
    return el(
      "div.help",
      { hidden: true, role: "dialog", "aria-modal": "true", "aria-label": "Keys and gestures", onclick: (e) => e.target === this.help && close() },
      el(
        "div.sheet",
        {},
        el("button.icon-button.close", { type: "button", "aria-label": "Close", onclick: close }, icon("close")),
        el("h2", { text: "Keys and gestures" }),
        el("dl", {}, ...KEYS.map(([key, what]) => el("div", {}, el("dt", {}, el("kbd", { text: key })), el("dd", { text: what })))),
      ),
    );
  }

  _themed() {
    this.themeButton.replaceChildren(icon(themeIcon()));
    this.themeButton.title = `${themeName()} (T)`;
    this.stage.setTheme();
  }

  toggleHelp(on = this.help.hidden) {
    this.help.hidden = !on;
    if (on) this.help.querySelector("button").focus();
  }

  togglePanel() {
    const narrow = window.matchMedia("(max-width: 760px)").matches;
    this.frame.classList.toggle(narrow ? "panel-open" : "panel-closed");
  }

  fullscreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else document.documentElement.requestFullscreen();
  }

  async save() {
    download(await this.stage.picture(), "ltenet.png");
  }

  /** There and back, with a rest at both ends. */
  play() {
    if (this._playing) return this.stop();
    const begin = performance.now() - (this.stage.settings.morph >= 1 ? 3000 : this.stage.settings.morph * 2200);
    const step = (time) => {
      const t = (((time - begin) % 6000) + 6000) % 6000;
      const morph = t < 2200 ? t / 2200 : t < 3000 ? 1 : t < 5200 ? 1 - (t - 3000) / 2200 : 0;
      this.set({ morph });
      this._playing = requestAnimationFrame(step);
    };
    this._playing = requestAnimationFrame(step);
    this.panel.playing(true);
  }

  stop() {
    cancelAnimationFrame(this._playing);
    this._playing = 0;
    this.panel.playing(false);
  }

  /** Go through the sample of matches. */
  next(by) {
    const { order } = this.stage;
    if (!order.length) return;
    this._at = (((this._at ?? (by > 0 ? -1 : 0)) + by) % order.length + order.length) % order.length;
    this.stage.select("source", order[this._at]);
  }

  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    const arrows = event.key.startsWith("Arrow");
    if (inside && (arrows || event.target.type !== "range")) return;
    const { stage } = this;
    const { settings } = stage;
    const turn = (dx, dy) => {
      for (const { orbit } of stage.both) orbit.turn(dx, dy);
      stage.invalidate();
    };
    const zoom = (factor) => {
      for (const { orbit } of stage.both) orbit.zoom(factor);
      stage.invalidate();
    };
    const size = (factor) => this.set({ pointSize: Math.min(3, Math.max(0.3, settings.pointSize * factor)) });
    const shows = ["both", "source", "target"];
    const actions = {
      ArrowLeft: () => turn(0.12, 0), ArrowRight: () => turn(-0.12, 0),
      ArrowUp: () => turn(0, -0.12), ArrowDown: () => turn(0, 0.12),
      "+": () => zoom(0.85), "=": () => zoom(0.85), "-": () => zoom(1.18), "−": () => zoom(1.18),
      r: () => stage.reset(), n: () => this.next(1), b: () => this.next(-1), m: () => this.play(),
      l: () => this.set({ lines: settings.lines ? 0 : Math.min(80, stage.order.length) }),
      c: () => this.set({ linked: !settings.linked }), a: () => this.set({ aligned: !settings.aligned }),
      w: () => this.set({ wire: !settings.wire }), "[": () => size(0.87), "]": () => size(1.15),
      v: () => this.set({ show: shows[(shows.indexOf(settings.show) + 1) % 3] }),
      s: () => this.save(), t: () => cycleTheme(), p: () => this.togglePanel(), f: () => this.fullscreen(),
      "?": () => this.toggleHelp(),
      Escape: () => (this.help.hidden ? this.pairs?.escape() || stage.clear() : this.toggleHelp(false)),
    };
    const mode = this.model.modes[Number(event.key) - 1];
    const action = mode ? () => this.set({ mode: mode.id }) : actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }
}
