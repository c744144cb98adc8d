// What lies over the shapes: lines between partners, markers, numbers.

import { number } from "./dom.js";
import { positionColor } from "./palettes.js";

export function drawOverlay(stage) {
  const { overlay, overlayDensity: density, settings } = stage;
  const pen = overlay.getContext("2d");
  pen.setTransform(density, 0, 0, density, 0, 0);
  pen.clearRect(0, 0, stage.size.width, stage.size.height);
  pen.lineCap = "round";
  if (settings.show === "both" && settings.lines) drawSample(stage, pen);
  if (stage.pinned) drawPair(stage, pen, stage.pinned, true);
  if (stage.hovered) drawPair(stage, pen, stage.hovered, false);
  for (const mark of stage.marks) drawMark(stage, pen, mark);
}

/** Both ends of a pair on the screen. */
export function endsOf(stage, { side, index }) {
  const { source, target } = stage.views;
  const morph = source.uniforms.morph.value;
  const partner = stage.views[side].shape.partner[index];
  const [from, to] = side === "source" ? [index, partner] : [partner, index];
  const end = (view, position, point) => ({
    ...view.project(position),
    point,
    faces: view.faces(point, position),
    side: view.side,
  });
  const ends = {};
  if (from >= 0) ends.source = end(source, source.positionOf(from, morph), from);
  if (to >= 0) {
    // The partner of a source point may lie between the target's points.
    const position = side === "source" ? placeOnTarget(stage, from) : target.positionOf(to, 0);
    ends.target = end(target, position, to);
  }
  return ends;
}

function placeOnTarget(stage, index) {
  const { source, target } = stage.views;
  const { place } = source.shape;
  const at = target.positionOf(0, 0);
  return at.set(place[3 * index], place[3 * index + 1], place[3 * index + 2]).applyMatrix4(target.upright);
}

function drawSample(stage, pen) {
  const { settings, model, order } = stage;
  const { source, target } = stage.views;
  pen.lineWidth = 1.25 * stage.zoom;
  for (const index of order.slice(0, settings.lines)) {
    const from = source.positionOf(index, source.uniforms.morph.value);
    const to = placeOnTarget(stage, index);
    if (!source.faces(index, from) || !target.faces(source.shape.partner[index], to)) continue;
    const [a, b] = [source.project(from), target.project(to)];
    if (!a.inside || !b.inside) continue;
    const { place } = source.shape;
    const [x, y, z] = place.subarray(3 * index, 3 * index + 3);
    const color = positionColor(x, y, z, model.colorFrame).join(",");
    pen.strokeStyle = `rgba(${color},0.75)`;
    curve(pen, a, b);
    pen.stroke();
    pen.fillStyle = `rgb(${color})`;
    pen.strokeStyle = stage.halo;
    for (const end of [a, b]) {
      pen.beginPath();
      pen.arc(end.x, end.y, 2.6 * stage.zoom, 0, 2 * Math.PI);
      pen.fill();
    }
  }
}

function drawPair(stage, pen, selected, pinned) {
  const ends = endsOf(stage, selected);
  // Who chooses a partner shall not be led by the map.
  const shown = stage.shown.map((view) => ends[view.side]).filter((end) => end && (!stage.choosing || end.side === selected.side));
  if (shown.length === 2) {
    curve(pen, ends.source, ends.target);
    pen.strokeStyle = stage.halo;
    pen.lineWidth = 5 * stage.zoom;
    pen.stroke();
    pen.strokeStyle = stage.accent;
    pen.lineWidth = 2.25 * stage.zoom;
    pen.stroke();
  }
  for (const end of shown) {
    pen.beginPath();
    pen.arc(end.x, end.y, (pinned ? 7 : 6) * stage.zoom, 0, 2 * Math.PI);
    pen.lineWidth = 5.5;
    pen.strokeStyle = stage.halo;
    pen.fillStyle = stage.halo;
    pen.fill();
    pen.stroke();
    // A dashed ring: the point is on the far side.
    pen.setLineDash(end.faces ? [] : [3, 4]);
    pen.lineWidth = 2.5;
    pen.strokeStyle = stage.accent;
    pen.stroke();
    pen.setLineDash([]);
    const known = ends.source && !stage.choosing;
    label(stage, pen, end, known ? stage.model.source.scalars.confidence?.[ends.source.point] : undefined);
  }
}

/** A numbered point; one that waits for its partner is hollow. */
function drawMark(stage, pen, { side, index, text, open }) {
  const view = stage.views[side];
  if (!stage.shown.includes(view)) return;
  const position = view.positionOf(index, view.uniforms.morph.value);
  const at = view.project(position);
  if (!at.inside) return;
  const size = stage.zoom;
  pen.globalAlpha = view.faces(index, position) ? 1 : 0.45; // on the far side
  pen.beginPath();
  pen.arc(at.x, at.y, 10 * size, 0, 2 * Math.PI);
  pen.fillStyle = open ? stage.halo : stage.accent;
  pen.fill();
  pen.lineWidth = 2.25 * size;
  pen.strokeStyle = open ? stage.accent : stage.halo;
  pen.stroke();
  pen.fillStyle = open ? stage.accent : stage.halo;
  pen.font = `700 ${11.5 * size}px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(text, at.x, at.y + 0.5 * size);
  pen.textAlign = "start";
  pen.globalAlpha = 1;
}

/** The number of a point; beside the target's, how sure the match is. */
function label(stage, pen, end, confidence) {
  const sure = end.side === "target" && confidence !== undefined ? `  ${Math.round(100 * confidence)} %` : "";
  const text = number(end.point) + sure;
  const size = stage.zoom;
  pen.font = `600 ${13 * size}px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif`;
  const width = pen.measureText(text).width + 16 * size;
  const outward = stage.root.dataset.layout === "row" && end.side === "source" ? -1 : 1;
  let left = outward < 0 ? end.x - 14 * size - width : end.x + 14 * size;
  left = Math.max(6, Math.min(stage.size.width - width - 6, left));
  const top = Math.max(6, end.y - 26 * size);
  pen.beginPath();
  pen.roundRect(left, top, width, 22 * size, 11 * size);
  pen.fillStyle = stage.accent;
  pen.fill();
  pen.fillStyle = stage.halo;
  pen.textBaseline = "middle";
  pen.fillText(text, left + 8 * size, top + 11.5 * size);
}

/** A gentle arc, along the longer of the two directions. */
function curve(pen, a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  pen.beginPath();
  pen.moveTo(a.x, a.y);
  if (Math.abs(dx) >= Math.abs(dy)) {
    pen.bezierCurveTo(a.x + 0.4 * dx, a.y, b.x - 0.4 * dx, b.y, b.x, b.y);
  } else {
    pen.bezierCurveTo(a.x, a.y + 0.4 * dy, b.x, b.y - 0.4 * dy, b.x, b.y);
  }
}
