// What the graphics card does: morph, colour, light. One pair of programs for meshes and clouds.

const VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelViewMatrix, projectionMatrix;
uniform mat3 normalMatrix;
uniform float morph, pointSize, pixels, swell;
in vec3 position, place, tint;
in float scalar, matched;
in vec3 normal, placeNormal;
in vec2 uv;
in float layer;
out vec3 vPlace, vTint, vEye, vNormal;
out vec2 vUv;
out float vScalar, vMatched, vLayer;
void main() {
  vec4 eye = modelViewMatrix * vec4(mix(position, place, morph), 1.0);
  vPlace = place;
  vTint = tint;
  vScalar = scalar;
  vMatched = matched;
  vUv = uv;
  vLayer = layer;
  vEye = eye.xyz;
  gl_Position = projectionMatrix * eye;
  vNormal = normalMatrix * mix(normal, placeNormal, morph);
#ifdef SHADOW
  gl_PointSize = 3.0;
#elif !defined(MESH)
  gl_PointSize = max(1.5, pointSize * swell * pixels / -eye.z);
#endif
}`;

const FRAGMENT = /* glsl */ `
precision highp float;
uniform int mode;
uniform float morph, density, depth;
uniform vec3 middle, reach, plain, missing, joint, paper;
uniform sampler2D scale;
uniform highp sampler2DArray pictures;
in vec3 vPlace, vTint, vEye, vNormal;
in vec2 vUv;
in float vScalar, vMatched, vLayer;
out vec4 color;

vec3 toLinear(vec3 c) { return mix(c / 12.92, pow((c + 0.055) / 1.055, vec3(2.4)), step(0.04045, c)); }
vec3 toDisplay(vec3 c) {
  c = clamp(c, 0.0, 1.0);
  return mix(12.92 * c, 1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, step(0.0031308, c));
}

// Oklab of a place; the same numbers as in colors.py. Linear RGB.
vec3 placeColor(vec3 p) {
  vec3 away = (p - middle) / reach;
  vec3 bent = away * inversesqrt(1.0 + away * away);
  vec3 lab = vec3(0.70 + 0.135 * bent.y + 0.03 * bent.z, 0.02 - 0.12 * bent.y + 0.05 * bent.z, 0.165 * bent.x);
  vec3 lms = vec3(
    lab.x + 0.3963377774 * lab.y + 0.2158037573 * lab.z,
    lab.x - 0.1055613458 * lab.y - 0.0638541728 * lab.z,
    lab.x - 0.0894841775 * lab.y - 1.2914855480 * lab.z);
  lms = lms * lms * lms;
  return clamp(vec3(
    4.0767416621 * lms.x - 3.3077115913 * lms.y + 0.2309699292 * lms.z,
    -1.2684380046 * lms.x + 2.6097574011 * lms.y - 0.3413193965 * lms.z,
    -0.0041960863 * lms.x - 0.7034186147 * lms.y + 1.7076147010 * lms.z), 0.0, 1.0);
}

// Cubes of two shades; the edges are as soft as a pixel.
float weave(vec3 p) {
  vec3 wave = sin(p * 34.0);
  vec3 soft = clamp(wave / max(fwidth(wave), vec3(1e-4)), -1.0, 1.0);
  return 0.5 + 0.5 * soft.x * soft.y * soft.z;
}

vec3 albedo() {
  if (mode == 0) return placeColor(vPlace);
  if (mode == 1) return mix(placeColor(vPlace) * 0.42, placeColor(vPlace) * 1.12 + 0.05, weave(vPlace));
  if (mode == 2) return toLinear(texture(scale, vec2(clamp(vScalar, 0.002, 0.998), 0.5)).rgb);
  if (mode == 3) return toLinear(vTint);
  if (mode == 6) return toLinear(joint);
  if (mode == 5) {
    // Layer 0: no place in a picture, or one whose neighbours lie beyond a seam.
    vec3 seen = texture(pictures, vec3(vUv, max(vLayer - 1.0, 0.0))).rgb;
    return toLinear(vLayer > 0.5 ? seen : vTint);
  }
  return toLinear(plain);
}

vec4 packDepth(float d) {
  vec4 e = fract(d * vec4(1.0, 255.0, 65025.0, 16581375.0));
  return e - e.yzww * vec4(vec3(1.0 / 255.0), 0.0);
}

float grain(vec2 p) { return fract(sin(dot(p, vec2(12.9898, 78.233))) * 43758.5453); }

void main() {
#ifndef MESH
  vec2 disc = 2.0 * gl_PointCoord - 1.0;
  float radius = dot(disc, disc);
  if (radius > 1.0) discard;
#endif
#if defined(PICK)
  color = packDepth(gl_FragCoord.z);
#elif defined(SHADOW)
  // What is high above the ground throws hardly any.
  if (grain(gl_FragCoord.xy) < 1.6 * morph * (1.0 - vMatched)) discard;
  color = vec4(exp(-2.2 * 2.5 * gl_FragCoord.z));
#else
  // While the source turns into the target, what has no partner dissolves.
  if (grain(gl_FragCoord.xy) < 1.6 * morph * (1.0 - vMatched)) discard;
  // The overlap has a border halfway; elsewhere a triangle with any point lost is lost.
  bool lost = mode != 4 && (vMatched < (mode == 6 ? 0.5 : 0.999) || (mode == 2 && vScalar < -0.5));
  vec3 base = lost ? toLinear(missing) : albedo();
#ifdef MESH
  if (lost && mode != 6) {
    float stripe = abs(fract((gl_FragCoord.x + gl_FragCoord.y) / (9.0 * density)) - 0.5);
    base *= mix(0.62, 1.05, smoothstep(0.2, 0.2 + 0.12 / density, stripe));
  }
#endif
  vec3 n = normalize(vNormal);
  vec3 v = normalize(-vEye);
  if (dot(n, v) < 0.0) n = -n;
#ifndef MESH
  // Points are small balls that lean on the surface they stand for.
  n = normalize(n + 0.45 * vec3(disc.x, -disc.y, sqrt(1.0 - radius)));
#endif
  vec3 key = normalize(vec3(-0.45, 0.72, 0.62));
  float wrap = 0.5 + 0.5 * dot(n, key);
  float light = 0.34 + 0.78 * wrap * wrap - 0.16 * (1.0 - dot(n, v));
  float fill = 0.12 * max(dot(n, normalize(vec3(0.8, -0.1, 0.45))), 0.0);
  float shine = 0.06 * pow(max(dot(n, normalize(key + v)), 0.0), 38.0);
  float rim = 0.10 * pow(1.0 - max(dot(n, v), 0.0), 3.0) * (0.5 + 0.5 * n.y);
#ifdef MESH
  color = vec4(toDisplay(base * (light + fill) + shine + rim), 1.0);
#else
  if (lost && mode != 6 && radius < 0.36) discard;
  vec3 shown = toDisplay(base * (light + fill + 0.06));
  // A cloud lets one see through it: what is far fades a little, so that front stays front.
  float far = clamp((-vEye.z - depth + 0.8) / 1.6, 0.0, 1.0);
  color = vec4(mix(shown, paper, 0.30 * far), 1.0);
#endif
#endif
}`;

const GROUND_VERTEX = /* glsl */ `
precision highp float;
uniform mat4 modelViewMatrix, projectionMatrix;
in vec3 position;
out vec2 at;
void main() {
  at = position.xz;
  gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
}`;

// Coarser levels of the picture from below: sharp where something stands, wide around it.
const GROUND_FRAGMENT = /* glsl */ `
precision highp float;
uniform vec3 ink;
uniform float strength;
uniform sampler2D below;
in vec2 at;
out vec4 color;
float blurred(vec2 p, float level) {
  float reach = exp2(level) / 256.0 * 0.75;
  float sum = 0.0;
  for (int i = -1; i <= 1; i++) for (int j = -1; j <= 1; j++) {
    sum += (i == 0 ? 2.0 : 1.0) * (j == 0 ? 2.0 : 1.0) * textureLod(below, p + reach * vec2(i, j), level).r;
  }
  return sum / 16.0;
}
void main() {
  vec2 p = 0.5 + 0.5 * at;
  float shade = 0.9 * blurred(p, 2.0) + 1.1 * blurred(p, 3.6) + 1.3 * blurred(p, 5.2);
  float edge = 1.0 - smoothstep(0.75, 1.0, length(at));
  shade = strength * edge * min(shade, 2.0);
  color = vec4(ink * shade, shade);
}`;

export const SHADERS = { VERTEX, FRAGMENT, GROUND_VERTEX, GROUND_FRAGMENT };

/** Numbers of the modes in the shader. */
export const MODES = { map: 0, pattern: 1, confidence: 2, error: 2, distance: 2, labels: 3, colors: 3, plain: 4, texture: 5, overlap: 6 };
