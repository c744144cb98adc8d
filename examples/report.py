"""Make a report of two generated people, and a picture of it.

    python examples/report.py [-o out/report] [--known] [--picture docs/images/report.png]

Matches the two and writes report.html with the truth, which is known because they share their
numbering. `--known` shows the true map with a little noise instead, without matching. The picture
is a screenshot by headless Chromium, if one is installed (tools/install_chromium.sh).
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.spatial import KDTree

from ltenet import Shape
from ltenet.correspondence import Correspondence
from ltenet.data.humans import HumanGenerator
from ltenet.viewer import view


def people() -> tuple[Shape, Shape]:
    """Two people of one numbering."""
    generator = HumanGenerator()
    source, target = (
        Shape(generator.draw(3, index).vertices, generator.template.faces, name=name)
        for name, index in (("leap", 36), ("stance", 19))
    )
    return source, target


def nearly_true_map(source: Shape, target: Shape) -> Correspondence:
    """Every vertex onto itself, give or take two centimetres."""
    shift = np.random.default_rng(0).normal(0, 0.02, target.points.shape)  # (N, 3)
    distances, indices = KDTree(target.points).query(target.points + shift)
    scores = np.exp(-distances / 0.05)
    details = {"made of": "the true map and noise"}
    return Correspondence(indices, len(target), scores=scores, details=details).attached(
        source, target
    )


def screenshot(page: Path, picture: Path, *, point: int) -> None:
    """Let headless Chromium draw the page, with one pair and some lines shown."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium found; tools/install_chromium.sh installs Debian's")
    picture.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                browser,
                *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--disable-background-networking", "--disable-component-update"),
                *("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
                f"--user-data-dir={profile}",
                *("--hide-scrollbars", "--window-size=1440,900", "--virtual-time-budget=6000"),
                f"--screenshot={picture.resolve()}",
                f"{page.resolve().as_uri()}#lines=40&point=source:{point}",
            ],
            check=True,
            capture_output=True,
        )


def main() -> None:
    """Make the report."""
    parser = argparse.ArgumentParser(description="Make a report of two generated people.")
    parser.add_argument("-o", "--output", type=Path, default=Path("out/report"))
    parser.add_argument("--known", action="store_true", help="show the known map, with noise")
    parser.add_argument("--picture", type=Path, help="PNG file for a screenshot")
    options = parser.parse_args()
    source, target = people()
    if options.known:
        correspondence = nearly_true_map(source, target)
    else:
        from ltenet.matching import match

        correspondence = match(source, target, model="human")
    options.output.mkdir(parents=True, exist_ok=True)
    page = options.output / "report.html"
    view(source, target, correspondence, save=page, truth=np.arange(len(source)), force=True)
    print(f"{page}: {page.stat().st_size / 1024:.0f} kB")
    if options.picture is not None:
        # A hand, whose way to its partner shows well.
        screenshot(page, options.picture, point=int(source.points[:, 1].argmax()))
        print(options.picture)


if __name__ == "__main__":
    main()
