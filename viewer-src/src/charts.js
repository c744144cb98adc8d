// Small drawings of the side panel: the accuracy curve, the colour scale with its histogram.

import { el, number, percent, svg } from "./dom.js";
import { gradient } from "./palettes.js";

const WIDTH = 288, HEIGHT = 168, LEFT = 34, BOTTOM = 26, TOP = 8, RIGHT = 8;

/** Share of the points (up) within each tolerance (right). */
export function accuracyCurve({ tolerances, accuracy }) {
  const last = tolerances[tolerances.length - 1];
  const x = (t) => LEFT + (t / last) * (WIDTH - LEFT - RIGHT);
  const y = (a) => TOP + (1 - a) * (HEIGHT - TOP - BOTTOM);
  const line = tolerances.map((t, i) => `${x(t).toFixed(1)},${y(accuracy[i]).toFixed(1)}`).join(" ");
  const drawing = svg("svg.curve", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    "aria-label": `Accuracy curve: ${percent(accuracy[24] ?? accuracy.at(-1))} of the points within 5 %`,
  });
  for (const share of [0, 0.5, 1]) {
    drawing.append(
      svg("line.grid", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(share), y2: y(share) }),
      svg("text", { x: LEFT - 6, y: y(share) + 4, "text-anchor": "end", text: number(100 * share) }),
    );
  }
  for (const tolerance of [0, 0.05, 0.1, 0.15, 0.2].filter((t) => t <= last + 1e-9)) {
    drawing.append(
      svg("line.grid", { x1: x(tolerance), x2: x(tolerance), y1: y(0), y2: y(0) + 4 }),
      svg("text", { x: x(tolerance), y: HEIGHT - 9, "text-anchor": "middle", text: number(100 * tolerance) }),
    );
  }
  drawing.append(
    svg("polygon.area", { points: `${x(0)},${y(0)} ${line} ${x(last)},${y(0)}` }),
    svg("polyline.line", { points: line }),
  );
  const cursor = svg("g.cursor", { visibility: "hidden" }, svg("line", { y1: TOP, y2: y(0) }), svg("circle", { r: 4 }));
  drawing.append(cursor);
  const caption = el("p.caption");
  const say = (i) => {
    caption.textContent = `${percent(accuracy[i])} of the points within ${number(100 * tolerances[i], 1)} % of the diameter`;
  };
  const point = (event) => {
    const box = drawing.getBoundingClientRect();
    const at = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT);
    const i = Math.max(0, Math.min(tolerances.length - 1, Math.round(at * tolerances.length) - 1));
    cursor.setAttribute("visibility", "visible");
    cursor.children[0].setAttribute("x1", x(tolerances[i]));
    cursor.children[0].setAttribute("x2", x(tolerances[i]));
    cursor.children[1].setAttribute("cx", x(tolerances[i]));
    cursor.children[1].setAttribute("cy", y(accuracy[i]));
    say(i);
  };
  const five = tolerances.reduce((b, t, i) => (Math.abs(t - 0.05) < Math.abs(tolerances[b] - 0.05) ? i : b), 0);
  say(five);
  drawing.addEventListener("pointermove", point);
  drawing.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    say(five);
  });
  return el("div", {}, drawing, caption);
}

/** A colour scale with how many points have which value. */
export function scaleLegend(mode, values, top) {
  const bins = new Array(36).fill(0);
  for (const value of values) {
    if (!Number.isNaN(value)) bins[Math.min(bins.length - 1, Math.floor((value / top) * bins.length))] += 1;
  }
  const most = Math.sqrt(Math.max(...bins, 1)); // roots, so that one large bin leaves the others visible
  const bars = bins.map((count, i) =>
    svg("rect", { x: i * 8, width: 7, y: 34 - (32 * Math.sqrt(count)) / most, height: count ? Math.max(1.5, (32 * Math.sqrt(count)) / most) : 0, rx: 1 }),
  );
  const bar = el("div.scale");
  bar.style.background = gradient(mode);
  const digits = mode === "confidence" || top > 0.1 ? 0 : top > 0.01 ? 1 : 2;
  const beyond = mode === "confidence" ? "" : "≥ ";
  return el(
    "div.legend",
    {},
    svg("svg.histogram", { viewBox: "0 0 288 34", preserveAspectRatio: "none", "aria-hidden": "true" }, ...bars),
    bar,
    el(
      "div.ends",
      {},
      el("span", { text: percent(0, 0) }),
      el("span", { text: percent(top / 2, digits || (top < 0.2 ? 1 : 0)) }),
      el("span", { text: beyond + percent(top, digits) }),
    ),
  );
}
