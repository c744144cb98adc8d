// The stage as pixels: a picture to save, and how much of it is drawn.

import { el } from "./dom.js";

/** The picture as it is now, with its background, as a PNG. */
export function picture(stage) {
  stage.draw();
  const sheet = el("canvas", { width: stage.canvas.width, height: stage.canvas.height });
  const pen = sheet.getContext("2d");
  pen.fillStyle = getComputedStyle(stage.root).getPropertyValue("--paper");
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.drawImage(stage.canvas, 0, 0);
  pen.drawImage(stage.overlay, 0, 0, sheet.width, sheet.height);
  return new Promise((done) => sheet.toBlob(done, "image/png"));
}

/** Share of the pixels of each view that the shape covers; for tests. */
export function coverage(stage) {
  stage.draw();
  const gl = stage.renderer.getContext();
  const shares = {};
  for (const { side, rect } of stage.shown) {
    const [w, h] = [Math.floor(rect.width * stage.density), Math.floor(rect.height * stage.density)];
    const pixels = new Uint8Array(4 * w * h);
    const bottom = stage.size.height - rect.y - rect.height;
    gl.readPixels(rect.x * stage.density, bottom * stage.density, w, h, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    let covered = 0;
    for (let i = 3; i < pixels.length; i += 4) covered += pixels[i] === 255;
    shares[side] = covered / (w * h);
  }
  return shares;
}
