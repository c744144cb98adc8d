"""Match parts of generated people onto whole ones, and draw the maps.

    python -m tools.partial_picture docs/images/partial.png cut:58 view:1 holes:3
    python -m tools.partial_picture docs/images/partial_limbs.png limb:3 limb:1

Each row shows the target in colours, the part in those that the map brings it, and the part as it
should be. Points without a partner are grey. Both shapes were turned at random before the match.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

import numpy as np

from ltenet import Shape, match
from ltenet.data.partial_pairs import partial_pair
from ltenet.data.parts import PartKind
from ltenet.drawing.rendering import Image, contact_sheet, render, write_png
from ltenet.evaluation.bench.benchmarks import GeneratedBenchmark
from ltenet.evaluation.bench.pictures import position_colors
from ltenet.geometry.arrays import FloatArray, IntArray

_SIZE = (300, 300)
_GREY = 150


def row_of(shapes: GeneratedBenchmark, kind: PartKind, pair: int) -> tuple[list[Image], list[str]]:
    """Three pictures of one pair, and what stands below them."""
    upright, turned = (
        partial_pair(shapes, pair, kind=kind, sampling="full", rotate=rotate)
        for rotate in ("none", "any")
    )
    found = match(
        Shape(turned.source, faces=turned.source_faces, name="part"),
        Shape(turned.target, faces=turned.target_faces, name="whole"),
    )
    errors = np.linalg.norm(found.positions(turned.target) - turned.truth, axis=1)  # (N,)
    colors = position_colors(upright.target, upright.target)  # (M, 3)
    brought = np.where(found.matched[:, None], colors[found.indices], _GREY)  # (N, 3)
    truth = position_colors(upright.truth, upright.target)  # (N, 3)
    drawn: list[tuple[FloatArray, IntArray | None, object]] = [
        (upright.target, upright.target_faces, colors),
        (upright.source, upright.source_faces, brought.astype(np.uint8)),
        (upright.source, upright.source_faces, truth),
    ]
    within = 100 * float((errors <= 0.05 * turned.diameter).mean())
    tiles = [
        render(points, faces, colors=own, size=_SIZE, yaw=20.0, pitch=8.0)  # type: ignore[arg-type]
        for points, faces, own in drawn
    ]
    return tiles, ["whole", f"{kind}: {within:.0f}% in 5%", "as it should be"]


def main() -> None:
    """Match and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("picture", type=Path, help="PNG file")
    parser.add_argument("rows", nargs="+", help="KIND:PAIR, such as cut:58")
    options = parser.parse_args()
    shapes = GeneratedBenchmark("generated-human")
    tiles: list[Image] = []
    captions: list[str] = []
    for row in options.rows:
        kind, _, pair = row.partition(":")
        if kind not in get_args(PartKind) or not pair.isdigit():
            parser.error(f"got {row!r}, expected KIND:PAIR; try cut:58")
        own = row_of(shapes, kind, int(pair))
        tiles, captions = tiles + own[0], captions + own[1]
    write_png(options.picture, contact_sheet(tiles, columns=3, captions=captions), force=True)


if __name__ == "__main__":
    main()
