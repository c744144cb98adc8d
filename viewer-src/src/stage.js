// The two views in one canvas: drawing, picking, cameras.

import { Color, LinearSRGBColorSpace, Vector3, WebGLRenderer, WebGLRenderTarget } from "three";
import { el } from "./dom.js";
import { listen } from "./orbit.js";
import { drawOverlay } from "./overlay.js";
import { View } from "./view.js";

const PICK = 9; // pixels around the pointer in which a point is looked for
const SLOW = 40; // milliseconds of a frame at which the picture gets coarser while it moves
const LEVELS = [{ density: 1, share: 1 }, { density: 0.6, share: 0.35 }, { density: 0.45, share: 0.12 }];

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
    this.canvas = el("canvas.gl", { "aria-hidden": "true" });
    this.overlay = el("canvas.overlay", { "aria-hidden": "true" });
    root.append(this.canvas, this.overlay);
    this.renderer = new WebGLRenderer({
      canvas: this.canvas, antialias: true, alpha: true, powerPreference: "high-performance",
    });
    this.renderer.outputColorSpace = LinearSRGBColorSpace;
    this.renderer.autoClear = false;
    this.renderer.setClearColor(0x000000, 0);
    this.pickTarget = new WebGLRenderTarget(2 * PICK + 1, 2 * PICK + 1);
    this.views = { source: new View(model.source, model), target: new View(model.target, model) };
    this.order = sampleOrder(model.source);
    this.frames = [];
    this._listen();
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
      view.uniforms.paper.value.setRGB(...color("--paper"));
      view.groundUniforms.strength.value = Number(style.getPropertyValue("--shadow"));
      view.setWire(this.settings.wire, this.wireColor);
    }
    this.invalidate();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.root;
    if (!width || !height) return;
    this.size = { width, height };
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

  invalidate() {
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
    if (this._hoverAt) {
      this._select(this.pick(this._hoverAt), false);
      this._hoverAt = null;
    }
    this._adapt(elapsed, moving);
    this.draw();
    this.onFrame?.();
    if (moving) this.invalidate();
    else this._last = 0;
  }

  /** Fewer pixels and points while a slow machine moves the picture, all of them when it rests. */
  _adapt(elapsed, moving) {
    if (!moving) return;
    this.frames.push(elapsed);
    const mean = this.frames.reduce((a, b) => a + b, 0) / this.frames.length;
    // Very slow frames are not waited for.
    if (mean > SLOW && (this.frames.length > 4 || mean * this.frames.length > 250)) {
      this._setLevel(Math.min((this.level ?? 0) + 1, LEVELS.length - 1));
    } else if (this.frames.length > 4) {
      this.frames.shift();
    }
    clearTimeout(this._rest);
    this._rest = setTimeout(() => {
      this._setLevel(0);
      this.invalidate();
    }, 220);
  }

  _setLevel(level) {
    this.level = level;
    this.frames = [];
    this._applyDensity(LEVELS[level].density);
    for (const view of this.both) view.thin(LEVELS[level].share);
  }

  draw() {
    const { renderer } = this;
    renderer.setRenderTarget(null);
    renderer.setScissorTest(false);
    renderer.clear();
    renderer.setScissorTest(true);
    for (const view of this.shown) {
      const { x, y, width, height } = view.rect;
      const bottom = this.size.height - y - height;
      renderer.setViewport(x, bottom, width, height);
      renderer.setScissor(x, bottom, width, height);
      this._aim(view, this.density);
      renderer.render(view.scene, view.camera);
    }
    drawOverlay(this);
  }

  _aim(view, density) {
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

  /** The point under a pixel of the stage, or null: draws the depth around it and reads it back. */
  pick(at) {
    const view = this.viewAt(at);
    if (!view) return null;
    const { rect, camera } = view;
    const side = 2 * PICK + 1;
    const [px, py] = [Math.floor(at.x - rect.x), Math.floor(at.y - rect.y)];
    this._aim(view, 1);
    camera.setViewOffset(rect.width, rect.height, px - PICK, py - PICK, side, side);
    view.ground.visible = false;
    if (view.wire) view.wire.visible = false;
    view.object.material = view.pickMaterial;
    const { renderer } = this;
    renderer.setRenderTarget(this.pickTarget);
    renderer.setScissorTest(false);
    renderer.clear();
    renderer.render(view.scene, camera);
    const pixels = new Uint8Array(4 * side * side);
    renderer.readRenderTargetPixels(this.pickTarget, 0, 0, side, side, pixels);
    renderer.setRenderTarget(null);
    view.object.material = view.material;
    view.ground.visible = true;
    if (view.wire) view.wire.visible = this.settings.wire;
    camera.clearViewOffset();
    this._aim(view, this.density);

    let best = null;
    for (let row = 0; row < side; row++) {
      for (let column = 0; column < side; column++) {
        const k = 4 * (row * side + column);
        const depth = (pixels[k] + pixels[k + 1] / 255 + pixels[k + 2] / 65025 + pixels[k + 3] / 16581375) / 255;
        const away = (row - PICK) ** 2 + (column - PICK) ** 2;
        if (depth > 0 && (!best || away < best.away)) best = { away, depth, row, column };
      }
    }
    if (!best || best.away > PICK * PICK) return null;
    const x = px - PICK + best.column + 0.5;
    const y = py + PICK - best.row + 0.5; // rows of a target count from below
    const place = new Vector3((2 * x) / rect.width - 1, 1 - (2 * y) / rect.height, 2 * best.depth - 1);
    const index = view.nearest(place.unproject(camera), view.uniforms.morph.value);
    return { side: view.side, index };
  }

  /** The selected point and its partner; null without one. */
  get selection() {
    return this.hovered ?? this.pinned;
  }

  select(side, index) {
    this._select({ side, index }, true);
    this.invalidate();
  }

  clear() {
    this.hovered = this.pinned = null;
    this.onSelect(null, false);
    this.invalidate();
  }

  _select(point, pin) {
    if (pin) {
      this.pinned = point;
      this.hovered = null;
    } else {
      if (same(point, this.hovered)) return;
      this.hovered = point;
    }
    this.onSelect(this.selection, this.selection !== null && this.selection === this.pinned);
  }

  _listen() {
    const orbitAt = (at) => {
      const view = this.viewAt(at) ?? this.shown[0];
      return this.settings.linked ? this.views.source.orbit : view.orbit;
    };
    const unit = (at) => {
      const view = this.viewAt(at) ?? this.shown[0];
      const height = 2 * view.orbit.goal.distance * Math.tan((view.camera.fov * Math.PI) / 360);
      return height / view.rect.height;
    };
    // Gestures stay with the view in which they began.
    let grabbed = null;
    this.overlay.addEventListener("pointerdown", (event) => {
      const box = this.overlay.getBoundingClientRect();
      grabbed = { x: event.clientX - box.left, y: event.clientY - box.top };
    });
    listen(this.overlay, {
      turn: (at, dx, dy) => {
        orbitAt(grabbed ?? at).turn(dx * 0.0075, dy * 0.0075);
        this.invalidate();
      },
      pan: (at, dx, dy) => {
        const scale = unit(grabbed ?? at);
        orbitAt(grabbed ?? at).pan(dx * scale, dy * scale);
        this.invalidate();
      },
      zoom: (at, factor) => {
        orbitAt(at).zoom(factor);
        this.invalidate();
      },
      hover: (at) => {
        this._hoverAt = at;
        this.invalidate();
      },
      leave: () => {
        this._hoverAt = null;
        this._select(null, false);
        this.invalidate();
      },
      tap: (at) => {
        const point = this.pick(at);
        if (point) this.select(point.side, point.index);
        else this.clear();
      },
      focus: (at) => {
        const point = this.pick(at);
        if (!point) return this.reset();
        const view = this.views[point.side];
        const p = view.positionOf(point.index, view.uniforms.morph.value);
        const orbit = orbitAt(at);
        orbit.lookAt(p.x, p.y, p.z);
        orbit.zoom(0.6);
        this.invalidate();
      },
    });
  }

  /** The picture as it is now, with its background, as a PNG. */
  picture() {
    this.draw();
    const sheet = el("canvas", { width: this.canvas.width, height: this.canvas.height });
    const pen = sheet.getContext("2d");
    pen.fillStyle = getComputedStyle(this.root).getPropertyValue("--paper");
    pen.fillRect(0, 0, sheet.width, sheet.height);
    pen.drawImage(this.canvas, 0, 0);
    pen.drawImage(this.overlay, 0, 0, sheet.width, sheet.height);
    return new Promise((done) => sheet.toBlob(done, "image/png"));
  }

  /** Share of the pixels of each view that the shape covers; for tests. */
  coverage() {
    this.draw();
    const gl = this.renderer.getContext();
    const shares = {};
    for (const { side, rect } of this.shown) {
      const [w, h] = [Math.floor(rect.width * this.density), Math.floor(rect.height * this.density)];
      const pixels = new Uint8Array(4 * w * h);
      const bottom = this.size.height - rect.y - rect.height;
      gl.readPixels(rect.x * this.density, bottom * this.density, w, h, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
      let covered = 0;
      for (let i = 3; i < pixels.length; i += 4) covered += pixels[i] === 255;
      shares[side] = covered / (w * h);
    }
    return shares;
  }
}

function ease(t) {
  return t * t * (3 - 2 * t);
}

function same(a, b) {
  return a === b || (a && b && a.side === b.side && a.index === b.index);
}

/** Matched source points in an order in which every beginning is spread over the shape. */
function sampleOrder(source) {
  const matched = [];
  for (let i = 0; i < source.count; i++) if (source.matched[i]) matched.push(i);
  if (!matched.length) return matched;
  // Farthest-point sampling of the first few, among at most 4000 candidates.
  const step = Math.max(1, Math.floor(matched.length / 4000));
  const candidates = matched.filter((_, k) => k % step === 0);
  const away = new Float32Array(candidates.length).fill(Infinity);
  const order = [];
  let next = 0;
  for (let k = 0; k < Math.min(400, candidates.length); k++) {
    order.push(candidates[next]);
    const c = 3 * candidates[next];
    let best = 0;
    for (let j = 0; j < candidates.length; j++) {
      const d = 3 * candidates[j];
      const p = source.points;
      away[j] = Math.min(away[j], (p[c] - p[d]) ** 2 + (p[c + 1] - p[d + 1]) ** 2 + (p[c + 2] - p[d + 2]) ** 2);
      if (away[j] > away[best]) best = j;
    }
    next = best;
  }
  return order;
}
