// Where the page begins: the report has its scene inside, the app fetches it.

import { startApp } from "./app.js";
import { el } from "./dom.js";
import { positionColor } from "./palettes.js";
import { fromBase64, openScene } from "./unpack.js";
import { Viewer } from "./viewer.js";

async function startReport(root) {
  const description = JSON.parse(document.getElementById("description").textContent);
  const packed = document.getElementById("arrays");
  const arrays = await openScene(description, fromBase64(packed.textContent.trim()));
  packed.remove(); // the text is no longer needed, and it may be large
  const viewer = new Viewer(root, description, arrays);
  applyAddress(viewer);
  // A handle for tests and for pages that embed the report.
  window.ltenet = { viewer, positionColor, ready: true };
}

/** What stands behind the # of the address, e.g. #mode=error&lines=40&point=source:608; modes by id or by the name on their button. */
function applyAddress(viewer) {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const numbers = { lines: 400, morph: 1, pointSize: 3 };
  for (const [key, most] of Object.entries(numbers)) {
    const value = Number(wanted.get(key));
    if (value > 0) viewer.set({ [key]: Math.min(value, most) });
  }
  const named = (wanted.get("mode") ?? "").toLowerCase();
  const mode = viewer.model.modes.find(({ id, name }) => [id, name.toLowerCase()].includes(named));
  if (mode) viewer.set({ mode: mode.id });
  const choices = { show: ["both", "source", "target"], up: ["y", "z"] };
  for (const [key, allowed] of Object.entries(choices)) {
    if (allowed.includes(wanted.get(key))) viewer.set({ [key]: wanted.get(key) });
  }
  const [side, index] = (wanted.get("point") ?? "").split(":");
  const shape = { source: viewer.model.source, target: viewer.model.target }[side];
  if (shape && Number(index) >= 0 && Number(index) < shape.count) viewer.stage.select(side, Math.floor(Number(index)));
}

const root = document.getElementById("root");
const start = root.dataset.page === "app" ? startApp : startReport;
start(root).catch((error) => {
  const webgl = /webgl/i.test(String(error));
  root.replaceChildren(
    el(
      "div.failure",
      { role: "alert" },
      el("h1", { text: webgl ? "This browser cannot draw in 3-D" : "The report could not be shown" }),
      el("p", { text: webgl ? "This needs WebGL 2. Turn on hardware acceleration, or open the file in another browser." : String(error) }),
    ),
  );
  console.error(error);
});
