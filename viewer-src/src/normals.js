// Which way surfaces face.

/** Unit vectors (3 N) from the two bytes of scene.py: an octahedron, unfolded to a square. */
export function unfolded(bytes) {
  const normals = new Float32Array((bytes.length / 2) * 3);
  for (let i = 0, k = 0; k < bytes.length; i += 3, k += 2) {
    let [x, y] = [bytes[k] / 127.5 - 1, bytes[k + 1] / 127.5 - 1];
    const z = 1 - Math.abs(x) - Math.abs(y);
    if (z < 0) [x, y] = [(1 - Math.abs(y)) * (x < 0 ? -1 : 1), (1 - Math.abs(x)) * (y < 0 ? -1 : 1)];
    const length = Math.hypot(x, y, z) || 1;
    normals.set([x / length, y / length, z / length], i);
  }
  return normals;
}

/** Normals (3 N) that the points take with them to the other end of the morph. */
export function partnerNormals(shape, other, normals) {
  const carried = normals.slice();
  if (shape.side !== "source" || !other.normals) return carried;
  for (let i = 0; i < shape.count; i++) {
    const j = 3 * shape.partner[i];
    if (j < 0) continue;
    const k = 3 * i;
    const along = normals[k] * other.normals[j] + normals[k + 1] * other.normals[j + 1] + normals[k + 2] * other.normals[j + 2];
    // Normals of a cloud have no sign of their own.
    for (let c = 0; c < 3; c++) carried[k + c] = other.normals[j + c] * (along < 0 ? -1 : 1);
  }
  return carried;
}

/** Smooth normals (3 N) of a mesh; the larger a face, the more it counts. */
export function vertexNormals(points, faces) {
  const normals = new Float32Array(points.length);
  for (let f = 0; f < faces.length; f += 3) {
    const [a, b, c] = [3 * faces[f], 3 * faces[f + 1], 3 * faces[f + 2]];
    const ux = points[b] - points[a], uy = points[b + 1] - points[a + 1], uz = points[b + 2] - points[a + 2];
    const vx = points[c] - points[a], vy = points[c + 1] - points[a + 1], vz = points[c + 2] - points[a + 2];
    const nx = uy * vz - uz * vy, ny = uz * vx - ux * vz, nz = ux * vy - uy * vx;
    for (const at of [a, b, c]) {
      normals[at] += nx;
      normals[at + 1] += ny;
      normals[at + 2] += nz;
    }
  }
  for (let i = 0; i < normals.length; i += 3) {
    const length = Math.hypot(normals[i], normals[i + 1], normals[i + 2]) || 1;
    for (let c = 0; c < 3; c++) normals[i + c] /= length;
  }
  return normals;
}
