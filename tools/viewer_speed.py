"""How long the page's own code takes with two large clouds, in headless Chromium.

    python -m tools.viewer_speed --points 200000

Times are those of the main thread, in milliseconds: the median and the longest of a few. What the
graphics card does comes on top; headless Chromium draws in software, which says nothing about a
real one. "moved" is the first look after the picture has moved, which waits for that card.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np

from ltenet.viewer import view
from tools.chromium import Browser, find_chromium

_MEASURE = """
(async () => {
  const { viewer } = window.ltenet, { stage } = viewer, found = {};
  const median = (times) => {
    times.sort((a, b) => a - b);
    return [times[times.length >> 1], times.at(-1)].map((t) => Math.round(100 * t) / 100);
  };
  const time = (name, run, count = 7) => {
    const times = [];
    run(0);
    for (let k = 1; k <= count; k++) {
      const begin = performance.now();
      run(k);
      times.push(performance.now() - begin);
    }
    found[name] = median(times);
  };
  const rest = (t) => new Promise((done) => setTimeout(done, t));
  const at = (k) => ({ x: stage.views.source.rect.width / 2 + k, y: stage.size.height / 2 });
  time("frame", () => stage.draw(), 3);
  await rest(3000);
  stage.picker.seen.source = "";
  const begin = performance.now();
  stage.pick(at(0));
  stage.pick(at(1));
  found["pick, moved"] = [performance.now() - begin, performance.now() - begin].map(Math.round);
  time("pick, at rest", (k) => stage.pick(at(k)));
  let drawn = 0;
  const { draw } = stage;
  stage.draw = () => { drawn += 1; };
  await rest(500);
  drawn = 0;
  for (let k = 0; k < 10; k++) {
    stage.hoverAt = at(2 * k);
    stage.wake();
    await rest(60);
  }
  found["frames drawn by 10 hovers"] = drawn;
  await rest(500);
  drawn = 0;
  await rest(1000);
  found["frames drawn in a second of rest"] = drawn;
  for (const { id } of stage.model.modes) {
    time(`colours: ${id}`, (k) => viewer.set({ mode: k % 2 ? id : "plain" }), 3);
  }
  time("morph, one step", (k) => viewer.set({ morph: k / 10 }));
  stage.draw = draw;
  return found;
})()
"""


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=200_000)
    count: int = parser.parse_args().points
    executable = find_chromium()
    if executable is None:
        raise SystemExit("no Chromium found; tools/install_chromium.sh installs Debian's")
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(count, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    order = rng.permutation(count)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "large.html"
        view(ball, (ball * (1, 1.4, 0.8))[order], np.argsort(order), save=page)
        browser = Browser(executable, Path(folder) / "profile")
        try:
            shown = browser.open(page.as_uri(), size=(700, 360))
            shown.wait_for("window.ltenet && window.ltenet.ready", seconds=120)
            figures = {"points": count, "bytes": page.stat().st_size, **shown.run(_MEASURE)}
        finally:
            browser.close()
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
