// Bundles the page into src/ltenet/viewer/assets: `npm ci && npm run build`.
import { build } from "esbuild";
import { readFile, stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const assets = fileURLToPath(new URL("../src/ltenet/viewer/assets/", import.meta.url));
const licence = (await readFile(new URL("node_modules/three/LICENSE", import.meta.url), "utf8")).trim();
const three = JSON.parse(await readFile(new URL("node_modules/three/package.json", import.meta.url)));

await build({
  entryPoints: { viewer: "src/main.js", style: "src/style.css" },
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  outdir: assets,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome109", "firefox115", "safari16.4"],
  legalComments: "none",
  // Every report is a copy of the bundle, so the notice goes with it.
  banner: { js: `/*\nltenet viewer: Apache-2.0. It contains three.js ${three.version}:\n\n${licence}\n*/` },
  logLevel: "warning",
});

let total = 0;
for (const name of ["viewer.js", "style.css"]) {
  const { size } = await stat(assets + name);
  total += size;
  console.log(`${name.padEnd(10)} ${(size / 1024).toFixed(0).padStart(5)} kB`);
}
if (total > 1_000_000) throw new Error(`the assets have ${total} bytes; at most 1,000,000 are allowed`);
