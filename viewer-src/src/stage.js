// The two views in one canvas: drawing, cameras, what the pointer does.

import { Color, LinearSRGBColorSpace, WebGLRenderer } from "three";
import { coverage, picture } from "./capture.js";
import { el } from "./dom.js";
import { sampleOrder } from "./geometry.js";
import { attachGestures } from "./gestures.js";
import { drawOverlay } from "./overlay.js";
import { Pace } from "./pace.js";
import { Picker } from "./picking.js";
import { View } from "./view.js";

export class Stage {
  /**
   * @param {HTMLElement} root
   * @param {object} model
   * @param {(selection: object|null, pinned: boolean) => void} onSelect
   */
  constructor(root, model, onSelect) {
    this.root = root;
    this.model = model;
    this.onSelect = onSelect;
    this.settings = {
      mode: "map", morph: 0, lines: 0, pointSize: 1, wire: false, linked: true,
      aligned: model.turned, up: "y", show: "both", animated: true,
    };
    this.hovered = null;
    this.pinned = null;
    this.marks = []; // numbered points: { side, index, text, open }
    this.choosing = false; // whether clicks choose such points
    this.onTap = null; // asked about a click before it selects; true if it has taken it
    this.canvas = el("canvas.gl", { "aria-hidden": "true" });
    this.overlay = el("canvas.overlay", { "aria-hidden": "true" });
    root.append(this.canvas, this.overlay);
    this.renderer = new WebGLRenderer({
      canvas: this.canvas, antialias: true, alpha: true, powerPreference: "high-performance",
    });
    this.renderer.outputColorSpace = LinearSRGBColorSpace;
    this.renderer.autoClear = false;
    this.renderer.setClearColor(0x000000, 0);
    this.views = { source: new View(model.source, model), target: new View(model.target, model) };
    this.order = sampleOrder(model.source);
    this.picker = new Picker(this);
    this.pace = new Pace(({ density, share }) => {
      this._applyDensity(density);
      for (const view of this.both) view.thin(share);
      this.invalidate();
    });
    attachGestures(this);
    this._place();
    this.setTheme();
    this.set({});
    this.resize();
    new ResizeObserver(() => this.resize()).observe(root);
  }

  get both() {
    return [this.views.source, this.views.target];
  }

  get shown() {
    return this.both.filter((view) => this.settings.show === "both" || this.settings.show === view.side);
  }

  /** Change some of the settings. */
  set(changes) {
    const before = this.settings;
    this.settings = { ...before, ...changes };
    const { mode, morph, pointSize, wire, linked, show } = this.settings;
    for (const view of this.both) {
      if (mode !== this._mode) view.setMode(mode, this.model.description.ranges[mode]);
      view.uniforms.morph.value = view.side === "source" ? ease(morph) : 0;
      view.uniforms.pointSize.value = view.spacing * pointSize;
      view.setWire(wire, this.wireColor);
    }
    this._mode = mode;
    if (linked && !before.linked) this.views.target.orbit.copyFrom(this.views.source.orbit);
    if ("aligned" in changes || "up" in changes) this._place();
    if (show !== before.show || "up" in changes) {
      this.resize();
      this.reset();
    }
    this.invalidate();
  }

  _place() {
    for (const view of this.both) view.place(this.settings);
  }

  setTheme() {
    const style = getComputedStyle(this.root);
    const color = (name) => {
      const hex = style.getPropertyValue(name).trim().slice(1);
      return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16) / 255);
    };
    this.wireColor = new Color(...color("--wire"));
    this.ink = style.getPropertyValue("--ink").trim();
    this.accent = style.getPropertyValue("--accent").trim();
    this.halo = style.getPropertyValue("--halo").trim();
    for (const view of this.both) {
      view.uniforms.plain.value.setRGB(...color("--plain"));
      view.uniforms.missing.value.setRGB(...color("--missing"));
      view.uniforms.joint.value.setRGB(...color("--common"));
      view.uniforms.paper.value.setRGB(...color("--paper"));
      view.shadow.uniforms.strength.value = Number(style.getPropertyValue("--shadow"));
      view.setWire(this.settings.wire, this.wireColor);
    }
    this.invalidate();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!width || !height) return;
    this.size = { width, height };
    this.zoom = Number(getComputedStyle(this.root).getPropertyValue("--zoom")) || 1;
    const sideBySide = width >= 0.95 * height;
    this.root.dataset.layout = sideBySide ? "row" : "column";
    const count = this.shown.length;
    this.shown.forEach((view, place) => {
      view.rect = sideBySide
        ? { x: (place * width) / count, y: 0, width: width / count, height }
        : { x: 0, y: (place * height) / count, width, height: height / count };
      view.camera.aspect = view.rect.width / view.rect.height;
    });
    const away = Math.max(...this.shown.map((view) => view.fittingDistance()));
    for (const { orbit } of this.both) {
      const factor = away / orbit.home.distance;
      orbit.home.distance = away;
      orbit.goal.distance *= factor;
      orbit.now.distance *= factor;
    }
    this._applyDensity(1);
    this.invalidate();
  }

  _applyDensity(share) {
    // At least one and a half: the edges of coarse screens are smoother for it.
    const density = Math.min(Math.max(window.devicePixelRatio || 1, 1.5), 2) * share;
    if (density === this.density && this._sized === `${this.size.width}x${this.size.height}`) return;
    this.density = density;
    this._sized = `${this.size.width}x${this.size.height}`;
    this.renderer.setPixelRatio(density);
    this.renderer.setSize(this.size.width, this.size.height, false);
    const fine = Math.min(window.devicePixelRatio || 1, 2);
    this.overlay.width = this.size.width * fine;
    this.overlay.height = this.size.height * fine;
    this.overlayDensity = fine;
  }

  reset() {
    for (const { orbit } of this.both) {
      orbit.reset();
      if (!this.settings.animated) orbit.jump();
    }
    this.invalidate();
  }

  /** Draw everything with the next frame. */
  invalidate() {
    this._stale = true;
    this.wake();
  }

  wake() {
    if (!this._frame) this._frame = requestAnimationFrame((time) => this._tick(time));
  }

  _tick(time) {
    this._frame = 0;
    const elapsed = this._last ? time - this._last : 16;
    this._last = time;
    let moving = false;
    if (this.settings.linked) {
      moving = this.views.source.orbit.step(Math.min(elapsed, 60) / 1000);
      this.views.target.orbit.copyFrom(this.views.source.orbit);
    } else {
      for (const { orbit } of this.both) moving = orbit.step(Math.min(elapsed, 60) / 1000) || moving;
    }
    if (this.hoverAt) {
      this.choose(this.pick(this.hoverAt), false);
      this.hoverAt = null;
    }
    const morphing = this.settings.morph !== this._drawnMorph;
    if (moving || morphing) this.pace.note(elapsed);
    // Pointing changes what lies over the shapes, not the shapes.
    if (this._stale || moving) this.draw();
    else drawOverlay(this);
    if (moving) this.invalidate();
    else if (!morphing) this._last = 0;
  }

  draw() {
    const { renderer } = this;
    this._stale = false;
    this._drawnMorph = this.settings.morph;
    for (const view of this.shown) view.shadow.update(renderer);
    renderer.setRenderTarget(null);
    renderer.setScissorTest(false);
    renderer.clear();
    renderer.setScissorTest(true);
    for (const view of this.shown) {
      const { x, y, width, height } = view.rect;
      const bottom = this.size.height - y - height;
      renderer.setViewport(x, bottom, width, height);
      renderer.setScissor(x, bottom, width, height);
      this.aim(view, this.density);
      renderer.render(view.scene, view.camera);
    }
    drawOverlay(this);
  }

  aim(view, density) {
    view.orbit.apply(view.camera);
    view.camera.updateProjectionMatrix();
    view.camera.updateMatrixWorld();
    view.uniforms.depth.value = view.orbit.now.distance;
    view.uniforms.density.value = density;
    view.uniforms.pixels.value = (view.rect.height * density) / (2 * Math.tan((view.camera.fov * Math.PI) / 360));
  }

  viewAt({ x, y }) {
    return this.shown.find(
      ({ rect }) => x >= rect.x && x < rect.x + rect.width && y >= rect.y && y < rect.y + rect.height,
    );
  }

  pick(at) {
    return this.picker.pick(at);
  }

  /** The selected point and its partner; null without one. */
  get selection() {
    return this.hovered ?? this.pinned;
  }

  select(side, index) {
    this.choose({ side, index }, true);
    this.wake();
  }

  clear() {
    this.hovered = this.pinned = null;
    this.onSelect(null, false);
    this.wake();
  }

  choose(point, pin) {
    if (pin) {
      this.pinned = point;
      this.hovered = null;
    } else {
      if (same(point, this.hovered)) return;
      this.hovered = point;
    }
    this.onSelect(this.selection, this.selection !== null && this.selection === this.pinned);
  }

  picture() {
    return picture(this);
  }

  coverage() {
    return coverage(this);
  }
}

function ease(t) {
  return t * t * (3 - 2 * t);
}

function same(a, b) {
  return a === b || (a && b && a.side === b.side && a.index === b.index);
}
