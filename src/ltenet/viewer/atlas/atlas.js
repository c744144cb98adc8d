"use strict";
(() => {
  const data = JSON.parse(document.getElementById("description").textContent);
  const floats = (text) => new Float32Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const mean = floats(data.mean);
  // Colour shows the standard deviation: variance would leave all but the hands blue.
  const deviation = floats(data.variance).map(Math.sqrt);
  const modes = data.modes.map((mode) => ({ ...mode, moves: floats(mode.moves) }));
  const specimens = data.specimens.map((one) => ({ ...one, points: floats(one.points) }));
  const faces = data.faces;
  const weights = modes.map(() => 0);
  let yaw = 0.5, pitch = 0.2;
  const largest = deviation.reduce((a, b) => Math.max(a, b), 1e-12);
  let radius = 1e-9;
  for (let i = 0; i < mean.length; i += 3) radius = Math.max(radius, Math.hypot(mean[i], mean[i + 1], mean[i + 2]));
  // From blue for little variance over white to red for much.
  const color = (share, light) => {
    const warm = Math.min(1, 2 * share), cold = Math.min(1, 2 - 2 * share);
    return `rgb(${Math.round(255 * light * (0.35 + 0.65 * warm))},${Math.round(235 * light * Math.min(cold, 0.5 + warm / 2))},${Math.round(255 * light * (0.2 + 0.8 * cold))})`;
  };
  function shape() {
    const points = mean.slice();
    modes.forEach((mode, k) => { for (let i = 0; i < points.length; i++) points[i] += weights[k] * mode.moves[i]; });
    return points;
  }
  function draw(canvas, points, triangles, colored) {
    const context = canvas.getContext("2d"), size = canvas.width, zoom = size / (2.4 * radius);
    const [cy, sy, cp, sp] = [Math.cos(yaw), Math.sin(yaw), Math.cos(pitch), Math.sin(pitch)];
    const count = points.length / 3, seen = new Float32Array(points.length);
    for (let i = 0; i < count; i++) {
      const [x, y, z] = [points[3 * i], points[3 * i + 1], points[3 * i + 2]];
      const turned = cy * x + sy * z, depth = cy * z - sy * x;
      seen.set([size / 2 + zoom * turned, size / 2 - zoom * (cp * y - sp * depth), sp * y + cp * depth], 3 * i);
    }
    context.clearRect(0, 0, size, size);
    const at = (i) => seen.subarray(3 * i, 3 * i + 3);
    if (triangles.length) {
      const order = triangles.map((t) => [at(t[0])[2] + at(t[1])[2] + at(t[2])[2], t]).sort((a, b) => a[0] - b[0]);
      for (const [, t] of order) {
        const [a, b, c] = t.map(at);
        const u = [b[0] - a[0], b[1] - a[1], zoom * (b[2] - a[2])], v = [c[0] - a[0], c[1] - a[1], zoom * (c[2] - a[2])];
        const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
        const light = 0.35 + 0.65 * Math.abs(n[2]) / (Math.hypot(...n) || 1);
        const share = colored ? (deviation[t[0]] + deviation[t[1]] + deviation[t[2]]) / (3 * largest) : 0.5;
        context.fillStyle = context.strokeStyle = color(share, light);
        context.beginPath(); context.moveTo(a[0], a[1]); context.lineTo(b[0], b[1]); context.lineTo(c[0], c[1]); context.closePath();
        context.fill(); context.stroke();
      }
    } else {
      const dot = Math.max(2, size / (colored ? 180 : 80));
      const order = [...Array(count).keys()].sort((a, b) => seen[3 * a + 2] - seen[3 * b + 2]);
      for (const i of order) {
        context.fillStyle = colored ? color(deviation[i] / largest, 0.6 + 0.4 * Math.min(1, Math.max(0, 0.5 + seen[3 * i + 2] / radius))) : "#57a";
        context.fillRect(seen[3 * i] - dot / 2, seen[3 * i + 1] - dot / 2, dot, dot);
      }
    }
  }
  document.getElementById("title").textContent = data.title;
  document.getElementById("facts").textContent = data.facts;
  const view = document.getElementById("view"), controls = document.getElementById("controls");
  const redraw = () => draw(view, shape(), faces, true);
  const shows = modes.map((mode, k) => {
    const label = document.createElement("label"), input = document.createElement("input");
    const value = document.createElement("output");
    label.textContent = `mode ${k + 1}: ${(100 * mode.explained).toFixed(1)} % of the variance, at `;
    const show = (score) => { weights[k] = Number(score); input.value = score; value.textContent = `${Number(score).toFixed(2)} standard deviations`; };
    Object.assign(input, { type: "range", min: -3, max: 3, step: 0.05, value: 0 });
    input.addEventListener("input", () => { show(input.value); redraw(); });
    label.append(value, input); controls.append(label); show(0);
    return show;
  });
  const reset = document.createElement("button");
  reset.textContent = "mean";
  reset.addEventListener("click", () => { shows.forEach((show) => show(0)); redraw(); });
  controls.append(reset);
  const thumbnails = specimens.map((one) => {
    const figure = document.createElement("figure"), canvas = document.createElement("canvas"), caption = document.createElement("figcaption");
    canvas.width = canvas.height = 240;
    caption.textContent = one.outlier ? `${one.name} (outlier)` : one.name;
    figure.className = one.outlier ? "outlier" : "";
    figure.append(canvas, caption); document.getElementById("specimens").append(figure);
    figure.addEventListener("click", () => { shows.forEach((show, k) => show(one.scores[k])); redraw(); });
    return () => draw(canvas, one.points, [], false);
  });
  let last = null;
  view.addEventListener("pointerdown", (event) => { last = event; view.setPointerCapture(event.pointerId); });
  view.addEventListener("pointerup", () => { last = null; thumbnails.forEach((paint) => paint()); });
  view.addEventListener("pointermove", (event) => {
    if (!last) return;
    yaw -= (event.clientX - last.clientX) / 150; pitch += (event.clientY - last.clientY) / 150; last = event; redraw();
  });
  redraw(); thumbnails.forEach((paint) => paint());
  document.body.dataset.ready = "true";
})();
