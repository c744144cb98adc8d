// Arrays from the bytes that packing.py wrote.

/** @returns {Promise<Uint8Array>} */
export async function inflate(bytes) {
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

const TYPES = { 1: Uint8Array, 2: Uint16Array, 4: Uint32Array };

/** All arrays by name, each row by row. */
export function unpack(index, content) {
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
