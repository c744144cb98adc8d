// The two shapes as the stage draws them: floats in display units, one entry per point.

import { unfolded } from "./normals.js";
import { pictureLayers } from "./texture.js";

/**
 * @typedef {object} ShapeModel
 * @property {string} side "source" or "target"
 * @property {string} name
 * @property {number} count
 * @property {Float32Array} points (3 N) in display units: the box's half diagonal is 1
 * @property {Uint32Array|null} faces (3 F)
 * @property {Float32Array} place (3 N) where each point lies on the target, in the target's units
 * @property {Uint8Array} matched (N) 1 where there is a partner
 * @property {Int32Array} partner (N) point of the other shape, -1 without one
 * @property {Object<string, Float32Array>} scalars (N) each, NaN where there is no value
 */

export function buildModel(description, arrays) {
  const frames = { source: frameOf(description.source), target: frameOf(description.target) };
  const source = baseShape("source", description, arrays, frames.source);
  const target = baseShape("target", description, arrays, frames.target);

  source.partner = minusOne(arrays.partner);
  target.partner = minusOne(arrays.back);
  source.matched = Uint8Array.from(source.partner, (i) => (i >= 0 ? 1 : 0));
  target.matched = Uint8Array.from(target.partner, (i) => (i >= 0 ? 1 : 0));
  target.place = target.points;
  source.place = placesOf(source, target, arrays, description, frames.target);
  source.truth = arrays.truth ? minusOne(arrays.truth) : null;

  for (const [name, top] of Object.entries(description.ranges)) {
    source.scalars[name] = Float32Array.from(arrays[name], (q) => (q ? ((q - 1) / 65534) * 4 * top : NaN));
    target.scalars[name] = Float32Array.from(target.partner, (i) => (i >= 0 ? source.scalars[name][i] : NaN));
  }
  carry(source, target, "colors", 3);
  carry(source, target, "labels", 1);
  for (const shape of [source, target]) paint(shape, description, arrays);

  const { middle, reach } = description.color_frame;
  return {
    description,
    source,
    target,
    rotation: description.rotation,
    turned: description.turned,
    pictures: pictureLayers(arrays.pictures),
    colorFrame: {
      middle: middle.map((v, i) => (v - frames.target.centre[i]) * frames.target.scale),
      reach: reach.map((v) => v * frames.target.scale),
    },
    modes: modesOf(description, source, target),
  };
}

/** What can be shown, in the order of the keys 1, 2, 3, ... */
function modesOf(description, source, target) {
  const modes = [
    { id: "map", name: "Map", note: "The target is coloured by position. Each source point has the colour of its partner." },
  ];
  if (description.texture) {
    const { giver } = description.texture;
    const [own, other] = giver === "source" ? ["source", "target"] : ["target", "source"];
    modes.push({ id: "texture", name: "Texture", note: `The ${own}'s own texture, carried to the ${other} by the map. Where it tears or smears, so does the map.` });
  } else {
    modes.push({ id: "pattern", name: "Checker", note: "A checker pattern on the target, carried to the source. Where it tears or smears, so does the map." });
  }
  if (description.ranges.confidence !== undefined) {
    modes.push({ id: "confidence", name: "Confidence", scalar: true, note: "How likely each partner is right." });
  }
  if (description.ranges.error !== undefined) {
    modes.push({ id: "error", name: "Error", scalar: true, note: "Distance from the partner to the true one, as a share of the target's diameter." });
  }
  modes.push({ id: "distance", name: "Distance", scalar: true, note: "Distance from each point to its partner once the shapes are aligned." });
  modes.push({ id: "overlap", name: "Overlap", note: "What the map holds both shapes to have in common. On the target: what lies near a partner." });
  if (source.labels || target.labels) {
    modes.push({ id: "labels", name: "Labels", note: "Labels of one shape, carried to the other by the map." });
  }
  if (source.colors || target.colors) {
    modes.push({ id: "colors", name: "Colours", note: "The colours of the files, carried by the map." });
  }
  modes.push({ id: "plain", name: "Plain", note: "The shapes alone." });
  return modes;
}

function frameOf({ low, size }) {
  const half = Math.hypot(...size) / 2;
  return { centre: low.map((v, i) => v + size[i] / 2), scale: half > 0 ? 1 / half : 1 };
}

function baseShape(side, description, arrays, frame) {
  const { name, points: count, low, size, labels } = description[side];
  return {
    side,
    name,
    count,
    frame,
    points: placed(arrays[`${side}_points`], low, size, frame),
    faces: arrays[`${side}_faces`] ?? null,
    normals: arrays[`${side}_normals`] ? unfolded(arrays[`${side}_normals`]) : null,
    colors: arrays[`${side}_colors`] ?? null,
    labels: arrays[`${side}_labels`] ?? null,
    labelNames: labels,
    scalars: {},
  };
}

function placed(steps, low, size, frame) {
  const points = new Float32Array(steps.length);
  for (let i = 0; i < steps.length; i++) {
    const axis = i % 3;
    points[i] = (low[axis] + (steps[i] / 65535) * size[axis] - frame.centre[axis]) * frame.scale;
  }
  return points;
}

function placesOf(source, target, arrays, description, frame) {
  if (arrays.place) {
    const place = placed(arrays.place, description.target.low, description.target.size, frame);
    return keepUnmatched(source, place);
  }
  const place = new Float32Array(3 * source.count);
  for (let i = 0; i < source.count; i++) {
    const j = source.partner[i];
    for (let c = 0; c < 3; c++) place[3 * i + c] = j < 0 ? 0 : target.points[3 * j + c];
  }
  return keepUnmatched(source, place);
}

/** Points without a partner stay where they are. */
function keepUnmatched(source, place) {
  for (let i = 0; i < source.count; i++) {
    if (!source.matched[i]) for (let c = 0; c < 3; c++) place[3 * i + c] = source.points[3 * i + c];
  }
  return place;
}

/** Colours and labels belong to one of the shapes; the other one gets them through the map. */
function carry(source, target, what, width) {
  const [from, to] = target[what] ? [target, source] : [source, target];
  const values = from[what];
  source[`${what}Shown`] = target[`${what}Shown`] = null;
  if (!values) return;
  const carried = new values.constructor(to.count * width);
  for (let i = 0; i < to.count; i++) {
    const j = to.partner[i];
    if (j >= 0) for (let c = 0; c < width; c++) carried[width * i + c] = values[width * j + c];
  }
  from[`${what}Shown`] = values;
  to[`${what}Shown`] = carried;
  to[`${what}Carried`] = true;
  if (what === "labels") source.labelOrigin = target.labelOrigin = from.side;
}

/** The picture of one shape on both: colours of points, and corners with places in the picture. */
function paint(shape, { texture }, arrays) {
  if (!texture) return;
  const { side } = shape;
  shape.textureShown = arrays[`${side}_texture_colors`];
  shape.textureCarried = side !== texture.giver;
  const points = arrays[`${side}_corner_points`];
  if (!points) return;
  const { uv_low: low, uv_size: size } = texture;
  shape.painted = {
    points,
    faces: arrays[`${side}_corner_faces`],
    // Rows of a picture count from above, v from below.
    uv: Float32Array.from(arrays[`${side}_corner_uv`], (step, i) => {
      const value = low[i % 2] + (step / 65535) * size[i % 2];
      return i % 2 ? 1 - value : value;
    }),
    layer: Float32Array.from(arrays[`${side}_corner_layer`]),
  };
}

function minusOne(values) {
  return Int32Array.from(values, (value) => value - 1);
}
