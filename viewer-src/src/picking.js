// Which point is under the pointer: the depth of the picture says where, the nearest point is meant.
//
// While something moves, only the pixels around the pointer are drawn for it. Once the picture rests,
// its depth is drawn and read back as a whole, and from then on pointing is a look into an array: a
// hover over 200,000 points costs a millisecond, however slow the graphics card is.

import { Vector3, WebGLRenderTarget } from "three";

const REACH = 9; // pixels around the pointer in which a point is looked for
const SIDE = 2 * REACH + 1;

export class Picker {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.around = new WebGLRenderTarget(SIDE, SIDE);
    this.whole = { source: null, target: null };
    this.seen = { source: "", target: "" };
  }

  /** The point under a place of the stage, {x, y} in CSS pixels, as {side, index}; or null. */
  pick(at) {
    const view = this.stage.viewAt(at);
    if (!view) return null;
    const { rect, camera } = view;
    const place = { column: Math.floor(at.x - rect.x), row: Math.floor(at.y - rect.y) };
    const hit = this._resting(view) ? this._lookUp(view, place) : this._drawAround(view, place);
    if (!hit) return null;
    const x = (2 * (hit.column + 0.5)) / rect.width - 1;
    const y = 1 - (2 * (hit.row + 0.5)) / rect.height;
    const position = new Vector3(x, y, 2 * hit.depth - 1).unproject(camera);
    return { side: view.side, index: view.nearest(position, view.uniforms.morph.value) };
  }

  /** Whether the picture is the same as when somebody pointed at it before. */
  _resting(view) {
    const { rect, uniforms, orbit } = view;
    const { aligned, up } = this.stage.settings;
    const state = JSON.stringify([rect, orbit.now, uniforms.morph.value, uniforms.pointSize.value, uniforms.swell.value, aligned, up]);
    const same = this.seen[view.side] === state;
    if (!same) this.whole[view.side] = null;
    this.seen[view.side] = state;
    return same;
  }

  _drawAround(view, { column, row }) {
    const { camera, rect } = view;
    camera.setViewOffset(rect.width, rect.height, column - REACH, row - REACH, SIDE, SIDE);
    const pixels = this._depths(view, this.around, SIDE, SIDE);
    camera.clearViewOffset();
    this.stage.aim(view, this.stage.density);
    const hit = nearestHit(pixels, SIDE, SIDE, REACH, REACH);
    return hit && { ...hit, column: column - REACH + hit.column, row: row - REACH + hit.row };
  }

  _lookUp(view, { column, row }) {
    const [width, height] = [Math.ceil(view.rect.width), Math.ceil(view.rect.height)];
    if (!this.whole[view.side]) {
      const target = new WebGLRenderTarget(width, height);
      this.whole[view.side] = this._depths(view, target, width, height);
      target.dispose();
      this.stage.aim(view, this.stage.density);
    }
    return nearestHit(this.whole[view.side], width, height, column, row);
  }

  /** The depth of a view, four bytes for each pixel; zeros where there is nothing. */
  _depths(view, target, width, height) {
    const { renderer, settings } = this.stage;
    this.stage.aim(view, 1);
    view.ground.visible = false;
    if (view.wire) view.wire.visible = false;
    view.object.material = view.pickMaterial;
    renderer.setRenderTarget(target);
    renderer.setScissorTest(false);
    renderer.clear();
    renderer.render(view.scene, view.camera);
    const pixels = new Uint8Array(4 * width * height);
    renderer.readRenderTargetPixels(target, 0, 0, width, height, pixels);
    renderer.setRenderTarget(null);
    view.object.material = view.material;
    view.ground.visible = true;
    if (view.wire) view.wire.visible = settings.wire;
    return pixels;
  }
}

/** The drawn pixel nearest to a place, counted from the upper left; null beyond the reach. */
function nearestHit(pixels, width, height, column, row) {
  let best = null;
  for (let r = Math.max(0, row - REACH); r <= Math.min(height - 1, row + REACH); r++) {
    for (let c = Math.max(0, column - REACH); c <= Math.min(width - 1, column + REACH); c++) {
      const away = (r - row) ** 2 + (c - column) ** 2;
      if (away > REACH * REACH || (best && away >= best.away)) continue;
      const k = 4 * ((height - 1 - r) * width + c); // rows of a target count from below
      const depth = (pixels[k] + pixels[k + 1] / 255 + pixels[k + 2] / 65025 + pixels[k + 3] / 16581375) / 255;
      if (depth > 0) best = { away, depth, row: r, column: c };
    }
  }
  return best;
}
