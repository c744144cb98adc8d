// Small loops over the coordinates of a shape: (3 N) floats, point after point.

import { Vector3 } from "three";

/** 0 to count - 1 in an order that is random, and the same every time. */
export function shuffled(count) {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  let state = 1;
  for (let i = count - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 4294967296) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

export function rotated(points, r) {
  const turned = new Float32Array(points.length);
  for (let i = 0; i < points.length; i += 3) {
    for (let c = 0; c < 3; c++) {
      turned[i + c] = r[c][0] * points[i] + r[c][1] * points[i + 1] + r[c][2] * points[i + 2];
    }
  }
  return turned;
}

/** How far points reach once they stand upright: lowest place, half height, radius about the axis. */
export function extentOf(points, matrix) {
  const p = new Vector3();
  let low = Infinity, high = -Infinity, radius = 0;
  for (let i = 0; i < points.length; i += 3) {
    p.set(points[i], points[i + 1], points[i + 2]).applyMatrix4(matrix);
    low = Math.min(low, p.y);
    high = Math.max(high, p.y);
    radius = Math.max(radius, Math.hypot(p.x, p.z));
  }
  return { low, half: Math.max(-low, high, 0.05), radius: Math.max(radius, 0.05) };
}

/** Diameter of a cloud's points at which they close to a surface, from a sample of distances. */
export function typicalSpacing(points) {
  const count = points.length / 3;
  const found = [];
  const tries = Math.min(count, 60);
  for (let t = 0; t < tries; t++) {
    const k = 3 * Math.floor((t * count) / tries);
    let least = Infinity;
    for (let i = 0; i < points.length; i += 3) {
      const away = (points[i] - points[k]) ** 2 + (points[i + 1] - points[k + 1]) ** 2 + (points[i + 2] - points[k + 2]) ** 2;
      if (away < least && i !== k && away > 0) least = away;
    }
    if (Number.isFinite(least)) found.push(Math.sqrt(least));
  }
  found.sort((a, b) => a - b);
  const middle = found.length ? found[found.length >> 1] : 0.05;
  // Points thrown at random need 3.6 times the distance of neighbours to leave few holes; the
  // limits: a cloud shall turn neither to dust nor to balloons.
  return Math.min(0.045, Math.max(0.006, 3.6 * middle));
}

/** Matched source points in an order in which every beginning is spread over the shape. */
export function sampleOrder(source) {
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
