// Colours that everybody can tell apart.

const VIRIDIS = ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"];
// From calm to alarm: light at no error, dark red at much; lightness falls evenly.
const EMBER = ["eef2f6", "f7e3bd", "f8c985", "f3a65c", "e57f44", "cf5a3c", "b03a3a", "8a2436", "62152e", "3d0b22"];
const CIVIDIS = ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"];

export const SCALES = { confidence: VIRIDIS, error: EMBER, distance: CIVIDIS };

// Okabe and Ito's eight without black, then Tol's muted ones.
const LABELS = [
  "0072b2", "e69f00", "009e73", "cc79a7", "56b4e9", "d55e00", "f0e442", "882255",
  "44aa99", "ddcc77", "332288", "aa4499", "88ccee", "117733", "cc6677", "999933",
];

export function rgb(hex) {
  return [0, 2, 4].map((start) => parseInt(hex.slice(start, start + 2), 16));
}

export function labelColor(number) {
  const base = rgb(LABELS[number % LABELS.length]);
  const turn = Math.floor(number / LABELS.length) % 3; // further labels: lighter, then darker
  return base.map((value) => (turn === 1 ? (value + 255) >> 1 : turn === 2 ? value >> 1 : value));
}

/** (256 * 4) RGBA of a scale, for a texture. */
export function ramp(name) {
  const stops = SCALES[name].map(rgb);
  const data = new Uint8Array(256 * 4);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    for (let c = 0; c < 3; c++) {
      data[4 * i + c] = stops[low][c] + (at - low) * (stops[low + 1][c] - stops[low][c]);
    }
    data[4 * i + 3] = 255;
  }
  return data;
}

export function gradient(name) {
  return `linear-gradient(90deg, ${SCALES[name].map((hex) => `#${hex}`).join(", ")})`;
}

/** The colour of a place on the target, as in colors.py and in the shader; 0..255. */
export function positionColor(x, y, z, frame) {
  const bend = (v, i) => {
    const away = (v - frame.middle[i]) / frame.reach[i];
    return away / Math.sqrt(1 + away * away);
  };
  const [a, b, c] = [bend(x, 0), bend(y, 1), bend(z, 2)];
  const lab = [0.7 + 0.135 * b + 0.03 * c, 0.02 - 0.12 * b + 0.05 * c, 0.165 * a];
  const l = (lab[0] + 0.3963377774 * lab[1] + 0.2158037573 * lab[2]) ** 3;
  const m = (lab[0] - 0.1055613458 * lab[1] - 0.0638541728 * lab[2]) ** 3;
  const s = (lab[0] - 0.0894841775 * lab[1] - 1.291485548 * lab[2]) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((v) => {
    const clipped = Math.min(1, Math.max(0, v));
    return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
  });
}
