// Arrays from the bytes that packing.py wrote.

/** @returns {Promise<Uint8Array>} */
async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * All arrays of a scene, its pictures decoded.
 *
 * @param {object} description what scene.py described
 * @param {ArrayBuffer|Uint8Array} packed the deflated arrays
 */
export async function openScene(description, packed) {
  const arrays = unpack(description.arrays, await inflate(packed));
  if (description.texture) arrays.pictures = await decoded(arrays.texture_pictures, description.texture);
  return arrays;
}

/** Pixels of the pictures, which stand above each other in one JPEG. */
async function decoded(bytes, { side, layers }) {
  const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/jpeg" }), { colorSpaceConversion: "none" });
  const sheet = document.createElement("canvas");
  Object.assign(sheet, { width: side, height: side * layers });
  const pen = sheet.getContext("2d", { willReadFrequently: true });
  pen.drawImage(bitmap, 0, 0);
  return { data: new Uint8Array(pen.getImageData(0, 0, side, side * layers).data.buffer), side, layers };
}

const TYPES = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

/** All arrays by name, each row by row. */
function unpack(index, content) {
  const arrays = {};
  for (const [name, entry] of Object.entries(index)) arrays[name] = unpackOne(entry, content);
  return arrays;
}

function unpackOne({ bytes, rows, columns, start }, content) {
  const values = new TYPES[bytes](rows * columns);
  for (let column = 0; column < columns; column++) {
    const base = start + column * rows * bytes;
    let last = 0;
    for (let row = 0; row < rows; row++) {
      let value = 0;
      for (let byte = bytes - 1; byte >= 0; byte--) {
        value = (value << 8) | content[base + byte * rows + row];
      }
      if (bytes > 1) {
        last = (last + ((value >>> 1) ^ -(value & 1))) | 0; // undo zigzag, then the difference
        value = last;
      }
      values[row * columns + column] = value;
    }
  }
  return values;
}
