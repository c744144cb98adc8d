// Pictures on meshes: points split where the picture has seams, one layer for each picture.

import { BufferAttribute, BufferGeometry, DataArrayTexture, LinearFilter, LinearMipmapLinearFilter, RepeatWrapping } from "three";

/** Layers (side x side) of the pictures of a scene for the graphics card; one grey pixel without any. */
export function pictureLayers(texture) {
  const { data, side, layers } = texture ?? { data: new Uint8Array([128, 128, 128, 255]), side: 1, layers: 1 };
  const array = new DataArrayTexture(data, side, side, layers);
  array.wrapS = array.wrapT = RepeatWrapping;
  array.magFilter = LinearFilter;
  array.minFilter = LinearMipmapLinearFilter;
  array.generateMipmaps = true;
  array.anisotropy = 8;
  array.needsUpdate = true;
  return array;
}

/**
 * Geometry with a place in the picture at each corner.
 *
 * @param {object} painted of model.js: points (U) that each corner stands for, faces, uv, layer
 */
export function paintedGeometry(painted) {
  const geometry = new BufferGeometry();
  geometry.setIndex(new BufferAttribute(painted.faces, 1));
  geometry.setAttribute("uv", new BufferAttribute(painted.uv, 2));
  geometry.setAttribute("layer", new BufferAttribute(painted.layer, 1));
  return geometry;
}

/** Copy what the shape's own points have to the corners that stand for them. */
export function gather(geometry, from, points) {
  for (const name of ["position", "place", "normal", "placeNormal", "matched", "tint"]) {
    const { array, itemSize, normalized } = from.getAttribute(name);
    let own = geometry.getAttribute(name);
    if (!own) {
      own = new BufferAttribute(new array.constructor(points.length * itemSize), itemSize, normalized);
      geometry.setAttribute(name, own);
    }
    for (let i = 0; i < points.length; i++) {
      for (let c = 0; c < itemSize; c++) own.array[itemSize * i + c] = array[itemSize * points[i] + c];
    }
    own.needsUpdate = true;
  }
}
