"""Match two generated people, write the report, and take a picture of it.

    python -m tools.report_picture docs/images/report.png

The true partners are known, because the two share their numbering, so the report shows errors too.
The picture is a screenshot by headless Chromium (tools/install_chromium.sh).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from ltenet import Shape, match, view
from ltenet.bodies.humans import HumanGenerator
from tools.chromium import Browser, find_chromium

SIZE = 1440, 900
POSES = ("leap", 36), ("stance", 19)


def screenshot(page: Path, picture: Path, *, point: int) -> None:
    """Let Chromium draw the page, with one pair and some lines shown."""
    executable = find_chromium()
    if executable is None:
        raise SystemExit("no Chromium found; tools/install_chromium.sh installs Debian's")
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(executable, Path(profile))
        try:
            address = f"{page.resolve().as_uri()}#lines=40&point=source:{point}"
            shown = browser.open(address, size=SIZE)
            shown.wait_for("window.ltenet && window.ltenet.ready")
            shown.screenshot(picture)
        finally:
            browser.close()


def main() -> None:
    """Make report and picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("picture", type=Path, help="PNG file")
    parser.add_argument("--report", type=Path, default=Path("out/report.html"))
    options = parser.parse_args()
    generator = HumanGenerator()
    source, target = (
        Shape(
            generator.draw(3, index).vertices.astype(np.float64),
            generator.template.faces.astype(np.int64),
            name=name,
        )
        for name, index in POSES
    )
    options.report.parent.mkdir(parents=True, exist_ok=True)
    found = match(source, target, model="human")
    view(source, target, found, save=options.report, truth=np.arange(len(source)), force=True)
    # The highest point is a hand, whose way to its partner shows well.
    screenshot(options.report, options.picture, point=int(source.points[:, 1].argmax()))
    print(f"{options.report}: {options.report.stat().st_size / 1024:.0f} kB; {options.picture}")


if __name__ == "__main__":
    main()
