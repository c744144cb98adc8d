// The side panel: colours, what to show, the selected point, the figures, how the map was made.

import { accuracyCurve, scaleLegend } from "./charts.js";
import { el, icon, number, percent } from "./dom.js";
import { gradient, labelColor } from "./palettes.js";

export class Panel {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    const { model } = viewer;
    const { description } = model;
    this.controls = {};
    this.lost = [model.source, model.target].some(({ matched }) => matched.includes(0));
    this.element = el(
      "aside.panel",
      { "aria-label": "Controls" },
      el("button.handle", { type: "button", "aria-label": "Show or hide the controls", onclick: () => viewer.togglePanel() }),
      el(
        "div.scroll",
        {},
        this._colours(model),
        this._selection(),
        this._show(model),
        this._figures(description),
        this._details(description),
        el("p.made", { text: description.made_by }),
      ),
    );
  }

  _colours(model) {
    this.note = el("p.note");
    this.legend = el("div");
    this.modes = model.modes.map((mode, place) =>
      el(
        "button.mode",
        {
          type: "button", role: "radio", "aria-checked": "false", "data-mode": mode.id,
          title: `${mode.name} (key ${place + 1})`,
          onclick: () => this.viewer.set({ mode: mode.id }),
        },
        swatch(mode),
        el("span", { text: mode.name }),
      ),
    );
    return el("section.colours", {}, el("div.modes", { role: "radiogroup", "aria-label": "Colours" }, ...this.modes), this.legend, this.note);
  }

  _selection() {
    this.selected = el("div.selected", { "aria-live": "polite" });
    return el("section.point", {}, el("h2", { text: "Point" }), this.selected);
  }

  _show(model) {
    const { viewer } = this;
    const clouds = !model.source.faces || !model.target.faces;
    const meshes = model.source.faces || model.target.faces;
    this.play = el("button.icon-button", { type: "button", "aria-label": "Play the morph (M)", title: "Play (M)", onclick: () => viewer.play() }, icon("play"));
    return el(
      "section",
      {},
      el("h2", { text: "Show" }),
      this._slider("morph", "Morph the source into the target", { max: 1, step: 0.005 }, (v) => percent(v, 0), this.play),
      this._slider("lines", "Lines between partners", { max: Math.min(400, viewer.stage.order.length), step: 1 }, (v) => (v ? number(v) : "none")),
      clouds ? this._slider("pointSize", "Size of the points", { min: 0.3, max: 3, step: 0.05 }, (v) => `${number(v, 1)} ×`) : null,
      el(
        "div.switches",
        {},
        this._switch("linked", "One camera for both", "C"),
        this._switch("aligned", "Align the source with the target", "A"),
        meshes ? this._switch("wire", "Edges", "W") : null,
      ),
      this._choice("show", "Shapes", { both: "Both", source: "Source", target: "Target" }),
      this._choice("up", "Upright axis", { y: "Y", z: "Z" }),
    );
  }

  _slider(key, label, range, format, extra = null) {
    const value = el("output");
    const input = el("input", {
      type: "range", min: 0, ...range, "aria-label": label, "data-setting": key,
      oninput: () => this.viewer.set({ [key]: Number(input.value) }),
    });
    this.controls[key] = (v) => {
      input.value = v;
      value.textContent = format(v);
      input.style.setProperty("--share", (v - Number(input.min)) / (Number(input.max) - Number(input.min) || 1));
    };
    return el("div.slider", {}, el("label", {}, el("span", { text: label }), value), el("div.track", {}, input, extra));
  }

  _switch(key, label, hotkey) {
    const button = el(
      "button.switch",
      { type: "button", role: "switch", title: `${label} (${hotkey})`, "data-setting": key, onclick: () => this.viewer.set({ [key]: !this.viewer.stage.settings[key] }) },
      el("span", { text: label }),
      el("i"),
    );
    this.controls[key] = (v) => button.setAttribute("aria-checked", String(v));
    return button;
  }

  _choice(key, label, options) {
    const buttons = Object.entries(options).map(([value, text]) =>
      el("button", { type: "button", role: "radio", text, "data-value": value, onclick: () => this.viewer.set({ [key]: value }) }),
    );
    this.controls[key] = (v) => {
      for (const button of buttons) button.setAttribute("aria-checked", String(button.dataset.value === v));
    };
    return el("div.choice", {}, el("span", { text: label }), el("div.segments", { role: "radiogroup", "aria-label": label }, ...buttons));
  }

  _figures({ figures, curve }) {
    const rows = figures.map(({ name, value, kind }) =>
      el("div.figure", {}, el("dt", { text: name }), el("dd", { text: kind === "text" ? value : kind === "number" ? number(value, 3) : percent(value) })),
    );
    return el(
      "section.figures",
      {},
      el("h2", { text: curve ? "Accuracy" : "Figures" }),
      curve ? accuracyCurve(curve) : null,
      el("dl", {}, ...rows),
    );
  }

  _details({ details, source, target }) {
    const row = ([key, value]) => el("div.figure", {}, el("dt", { text: key }), el("dd", { text: value }));
    const shape = (side, { name, points, faces }) =>
      row([side, `${name}, ${number(points)} points${faces ? `, ${number(faces)} faces` : ""}`]);
    return el(
      "details",
      {},
      el("summary", { text: "How it was made" }),
      el("dl", {}, shape("source", source), shape("target", target), ...details.map(row)),
    );
  }

  update(settings) {
    for (const [key, show] of Object.entries(this.controls)) show(settings[key]);
    if (settings.mode === this._mode) return;
    this._mode = settings.mode;
    for (const button of this.modes) {
      button.setAttribute("aria-checked", String(button.dataset.mode === settings.mode));
      if (button.dataset.mode === settings.mode) {
        button.parentElement.scrollTo({ left: button.offsetLeft - 60, behavior: "smooth" });
      }
    }
    const { model } = this.viewer;
    const mode = model.modes.find(({ id }) => id === settings.mode);
    this.note.textContent = mode.note;
    this.legend.replaceChildren(...this._legend(mode, model));
  }

  _legend(mode, model) {
    const legend = [];
    if (mode.scalar) legend.push(scaleLegend(mode.id, model.source.scalars[mode.id], model.description.ranges[mode.id]));
    if (mode.id === "labels") {
      const names = model[model.source.labelOrigin].labelNames;
      const chips = names.slice(0, 40).map((name, i) => {
        const dot = el("i");
        dot.style.background = `rgb(${labelColor(i).join(",")})`;
        return el("span.chip", {}, dot, String(name));
      });
      if (names.length > 40) chips.push(el("span.chip", { text: `and ${names.length - 40} more` }));
      legend.push(el("div.chips", {}, ...chips));
    }
    if (mode.id === "overlap") legend.push(overlapLegend(model));
    else if (this.lost && mode.id !== "plain") legend.push(el("p.hatched", {}, el("i"), "no partner"));
    return legend;
  }

  /** What is known about a point and its partner. */
  select(selection, pinned) {
    this.element.classList.toggle("telling", selection !== null);
    if (!selection) {
      this.selected.replaceChildren(el("p.note", { text: "Hover over a shape, or touch it, to see the partner; click to keep it." }));
      return;
    }
    const { model } = this.viewer;
    const { side, index } = selection;
    const shape = model[side];
    const partner = shape.partner[index];
    const [from, to] = side === "source" ? [index, partner] : [partner, index];
    const card = (name, point) =>
      el("div.end", { "data-side": name }, el("small", { text: name }), el("b", { text: point < 0 ? "none" : number(point) }));
    const rows = [];
    const add = (name, value) => rows.push(el("div.figure", {}, el("dt", { text: name }), el("dd", { text: value })));
    if (from >= 0) {
      const { confidence, error, distance } = model.source.scalars;
      if (confidence) add("confidence", percent(confidence[from]));
      if (error && !Number.isNaN(error[from])) add("error", `${percent(error[from], 2)} of the diameter`);
      if (model.source.truth && model.source.truth[from] >= 0) add("true partner", number(model.source.truth[from]));
      if (distance && !Number.isNaN(distance[from])) add("distance", percent(distance[from], 1));
    }
    for (const each of [model.source, model.target]) {
      const point = each.side === "source" ? from : to;
      if (each.labels && point >= 0) add(`label of the ${each.side}`, String(each.labelNames[each.labels[point]]));
    }
    const story =
      partner < 0
        ? side === "source" ? "This point has no partner." : "No source point is mapped here."
        : side === "target" ? "The source point mapped nearest to here." : null;
    this.selected.replaceChildren(
      el("div.ends-of-pair", {}, card("source", from), el("span.arrow", { text: "→" }), card("target", to)),
      el("dl", {}, ...rows),
      story ? el("p.note", { text: story }) : "",
      pinned ? el("button.quiet", { type: "button", text: "Release (Esc)", onclick: () => this.viewer.stage.clear() }) : "",
    );
  }

  playing(on) {
    this.play.replaceChildren(icon(on ? "pause" : "play"));
  }
}

/** How much of either shape has a partner, and how much has none. */
function overlapLegend({ source, target }) {
  const rows = [source, target].map(({ side, matched, count }) => {
    const share = count ? matched.reduce((sum, one) => sum + one, 0) / count : 0;
    const bar = el("i.bar.overlap", { "aria-hidden": "true" }, el("i"));
    bar.firstChild.style.width = `${100 * share}%`;
    return el("div.overlap-row", { "data-side": side },
      el("small", { text: side }), bar,
      el("span", {}, el("b", { text: percent(share) }), ` in common, ${percent(1 - share)} without partner`));
  });
  return el("div.overlap-legend", {},
    el("div.chips", {}, el("span.chip", {}, el("i.common"), "in common"), el("span.chip", {}, el("i.missing"), "no partner")),
    ...rows);
}

function swatch(mode) {
  const patch = el(`i.swatch.${mode.id}`);
  if (mode.scalar) patch.style.background = gradient(mode.id);
  return patch;
}
