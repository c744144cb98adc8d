// One of the two shapes: its geometry, its materials, its camera.

import {
  BufferAttribute, BufferGeometry, Color, DataTexture, DoubleSide, GLSL3, Group, LinearFilter, Matrix4, Mesh,
  NoBlending, PerspectiveCamera, Points, RawShaderMaterial, Scene, Vector3,
} from "three";
import { extentOf, rotated, shuffled, typicalSpacing } from "./geometry.js";
import { partnerNormals, vertexNormals } from "./normals.js";
import { Orbit } from "./orbit.js";
import { labelColor, ramp } from "./palettes.js";
import { MODES, SHADERS } from "./shaders.js";
import { Shadow } from "./shadow.js";
import { gather, paintedGeometry } from "./texture.js";

const FIELD = 30; // degrees of the picture's height
const UPRIGHT = { y: new Matrix4(), z: new Matrix4().makeRotationX(-Math.PI / 2) };

export class View {
  constructor(shape, model) {
    this.shape = shape;
    this.model = model;
    this.side = shape.side;
    this.isMesh = shape.faces !== null;
    this.rect = { x: 0, y: 0, width: 1, height: 1 };
    this.camera = new PerspectiveCamera(FIELD, 1, 0.1, 20);
    this.scene = new Scene();
    this.body = new Group();
    this.body.matrixAutoUpdate = false;
    this.scene.add(this.body);
    this.orbit = new Orbit(4);
    this.home = shape.points; // where the points are before any morphing
    this.placed = 0; // how often they were moved
    this.ownShown = false; // whether the colours are the shape's own, partner or not
    this.spacing = this.isMesh ? 0 : typicalSpacing(shape.points);
    this._build();
    this.place({ aligned: false, up: "y" });
  }

  _build() {
    const { shape } = this;
    this.geometry = new BufferGeometry();
    const set = (name, array, width, normalized = false) => {
      this.geometry.setAttribute(name, new BufferAttribute(array, width, normalized));
    };
    set("position", shape.points.slice(), 3);
    set("place", shape.place, 3);
    set("matched", Float32Array.from(shape.matched), 1);
    set("scalar", new Float32Array(shape.count), 1);
    set("tint", new Uint8Array(3 * shape.count), 3, true);
    this.uniforms = {
      mode: { value: 0 },
      morph: { value: 0 },
      pointSize: { value: this.spacing },
      pixels: { value: 1 },
      swell: { value: 1 },
      density: { value: 1 },
      depth: { value: 4 },
      middle: { value: new Vector3(...this.model.colorFrame.middle) },
      reach: { value: new Vector3(...this.model.colorFrame.reach) },
      plain: { value: new Color() },
      missing: { value: new Color() },
      joint: { value: new Color() },
      paper: { value: new Color() },
      scale: { value: null },
      pictures: { value: this.model.pictures },
    };
    this.material = this.makeMaterial({});
    this.pickMaterial = this.makeMaterial({ PICK: 1 }, { blending: NoBlending });
    set("normal", new Float32Array(3 * shape.count), 3);
    set("placeNormal", new Float32Array(3 * shape.count), 3);
    if (this.isMesh) {
      this.geometry.setIndex(new BufferAttribute(shape.faces, 1));
      this.object = new Mesh(this.geometry, this.material);
    } else {
      // In random order, so that any beginning of it is a thinner cloud.
      this.geometry.setIndex(new BufferAttribute(shuffled(shape.count), 1));
      this.object = new Points(this.geometry, this.material);
    }
    this.object.frustumCulled = false;
    this.body.add(this.object);
    this.shadow = new Shadow(this);
    this.ground = this.shadow.ground;
    this.scene.add(this.ground);
  }

  makeMaterial(defines, more = {}) {
    return new RawShaderMaterial({
      glslVersion: GLSL3,
      vertexShader: SHADERS.VERTEX,
      fragmentShader: SHADERS.FRAGMENT,
      uniforms: this.uniforms,
      defines: this.isMesh ? { MESH: 1, ...defines } : defines,
      side: DoubleSide,
      polygonOffset: true,
      polygonOffsetFactor: 1,
      polygonOffsetUnits: 1,
      ...more,
    });
  }

  /** Turn the shape: onto the target if `aligned` (the source only), and upright. */
  place({ aligned, up }) {
    const positions = this.geometry.getAttribute("position");
    const turn = aligned && this.side === "source" ? this.model.rotation : null;
    this.home = turn ? rotated(this.shape.points, turn) : this.shape.points;
    positions.array.set(this.home);
    positions.needsUpdate = true;
    const [normals, ends] = ["normal", "placeNormal"].map((name) => this.geometry.getAttribute(name));
    if (this.isMesh) {
      normals.array.set(vertexNormals(this.home, this.shape.faces));
      ends.array.set(vertexNormals(this.shape.place, this.shape.faces));
    } else {
      const own = turn ? rotated(this.shape.normals, turn) : this.shape.normals;
      normals.array.set(own);
      ends.array.set(partnerNormals(this.shape, this.model.target, own));
    }
    normals.needsUpdate = ends.needsUpdate = true;
    this.body.matrix.copy(UPRIGHT[up]);
    this.body.matrixWorldNeedsUpdate = true;
    this.upright = UPRIGHT[up];
    this.extent = extentOf(this.home, this.upright);
    this.endExtent = this.side === "source" ? extentOf(this.shape.place, this.upright) : this.extent;
    this.placed += 1;
    this._paint();
  }

  /** Show the picture's own corners where a picture is wanted, the shape's points otherwise. */
  _paint() {
    const { painted } = this.shape;
    const wanted = this.mode === "texture" && painted;
    if (wanted) {
      this.paintedGeometry ??= paintedGeometry(painted);
      gather(this.paintedGeometry, this.geometry, painted.points);
    }
    this.object.geometry = wanted ? this.paintedGeometry : this.geometry;
  }

  /** Distance at which the whole shape is in the picture. */
  fittingDistance() {
    const { width, height } = this.rect;
    const tall = Math.tan((FIELD / 2) * (Math.PI / 180));
    const wide = tall * (width / Math.max(height, 1));
    const { half, radius } = this.extent;
    return 1.16 * Math.max(half / tall, radius / wide) + 0.35 * radius;
  }

  setMode(mode, scalarTop) {
    const { shape, geometry, uniforms } = this;
    uniforms.mode.value = MODES[mode];
    const values = shape.scalars[mode];
    if (values) {
      const scalar = geometry.getAttribute("scalar");
      for (let i = 0; i < shape.count; i++) scalar.array[i] = Number.isNaN(values[i]) ? -1 : values[i] / scalarTop;
      scalar.needsUpdate = true;
      const texture = new DataTexture(ramp(mode), 256, 1);
      texture.magFilter = texture.minFilter = LinearFilter;
      texture.needsUpdate = true;
      uniforms.scale.value?.dispose();
      uniforms.scale.value = texture;
    }
    const shown = shape[`${mode}Shown`];
    if (shown) {
      const tint = geometry.getAttribute("tint");
      if (mode === "labels") for (let i = 0; i < shape.count; i++) tint.array.set(labelColor(shown[i]), 3 * i);
      else tint.array.set(shown);
      tint.needsUpdate = true;
    }
    // What a shape brings itself needs no partner to be shown.
    const own = Boolean(shown) && !shape[`${mode}Carried`];
    if (own !== this.ownShown) {
      const matched = geometry.getAttribute("matched");
      for (let i = 0; i < shape.count; i++) matched.array[i] = own ? 1 : shape.matched[i];
      matched.needsUpdate = true;
      this.ownShown = own;
    }
    this.mode = mode;
    this._paint();
  }

  /** Draw a share of a large cloud only, with larger points; meshes are always drawn whole. */
  thin(share) {
    if (this.isMesh) return;
    const kept = Math.max(share, Math.min(1, 20000 / this.shape.count));
    this.geometry.setDrawRange(0, Math.ceil(kept * this.shape.count));
    this.uniforms.swell.value = Math.min(2.5, 1 / Math.sqrt(kept));
  }

  setWire(on, color) {
    if (!this.isMesh) return;
    if (on && !this.wire) {
      const uniforms = { ...this.uniforms, mode: { value: 4 }, plain: { value: new Color() } };
      this.wire = new Mesh(this.geometry, this.material.clone());
      this.wire.material.uniforms = uniforms;
      this.wire.material.wireframe = true;
      this.wire.material.polygonOffset = false;
      this.wire.frustumCulled = false;
      this.body.add(this.wire);
    }
    if (this.wire) {
      this.wire.visible = on;
      this.wire.material.uniforms.plain.value.copy(color);
    }
  }

  /** Where a point is now, in the scene. */
  positionOf(index, morph) {
    const { home, shape } = this;
    const at = (c) => home[3 * index + c] + morph * this.shift(index, c);
    return new Vector3(at(0), at(1), at(2)).applyMatrix4(this.upright);
  }

  shift(index, axis) {
    return this.side === "source" ? this.shape.place[3 * index + axis] - this.home[3 * index + axis] : 0;
  }

  /** CSS pixels of a place of the scene, from the stage's upper left corner. */
  project(position) {
    const { rect } = this;
    const seen = position.clone().project(this.camera);
    return {
      x: rect.x + ((seen.x + 1) / 2) * rect.width,
      y: rect.y + ((1 - seen.y) / 2) * rect.height,
      inside: Math.abs(seen.x) <= 1 && Math.abs(seen.y) <= 1 && Math.abs(seen.z) <= 1,
    };
  }

  /** Whether a point of a mesh looks at the camera; the points of a cloud always do. */
  faces(index, position) {
    if (!this.isMesh) return true;
    const normals = this.geometry.getAttribute("normal").array;
    const normal = new Vector3(normals[3 * index], normals[3 * index + 1], normals[3 * index + 2]);
    normal.applyMatrix4(this.upright);
    return normal.dot(this.camera.position.clone().sub(position)) > 0;
  }

  /** The point nearest to a place of the scene. */
  nearest(position, morph) {
    const { home, shape } = this;
    const p = position.clone().applyMatrix4(this.upright.clone().invert());
    const moving = morph > 0 && this.side === "source";
    let best = -1;
    let least = Infinity;
    for (let i = 0, k = 0; i < shape.count; i++, k += 3) {
      let [x, y, z] = [home[k], home[k + 1], home[k + 2]];
      if (moving) {
        x += morph * (shape.place[k] - x);
        y += morph * (shape.place[k + 1] - y);
        z += morph * (shape.place[k + 2] - z);
      }
      const away = (x - p.x) ** 2 + (y - p.y) ** 2 + (z - p.z) ** 2;
      if (away < least) [least, best] = [away, i];
    }
    return best;
  }
}
