"""Match shapes of SHREC'07, and draw the best and the worst map of each class.

    python -m tools.any_class_picture docs/images/any_class.png --data DIR

DIR holds the set, as for `ltenet bench shrec07`; the pairs, the maps and their errors are those of
this benchmark. Each row is a class: the target in colours and the source in those that the map
brings it, for the best and for the worst of the first few pairs. Target and source are drawn in
corresponding positions, found from their landmarks, so a colour in a wrong place is an error.
Errors are up to symmetry: a map marked as swapped has the colours of the two sides exchanged.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltenet.data.mesh_set import LandmarkSet
from ltenet.drawing.rendering import Image, contact_sheet, render, write_png
from ltenet.errors import PartialFailure
from ltenet.evaluation.bench.benchmarks import open_benchmark
from ltenet.evaluation.bench.config import BenchConfig
from ltenet.evaluation.bench.mesh_scoring import LandmarkScores
from ltenet.evaluation.bench.pictures import position_colors
from ltenet.evaluation.bench.predictions import PredictionCache, default_cache
from ltenet.evaluation.bench.provenance import method_record
from ltenet.evaluation.bench.run import Failure, Job, Predictor, method_options
from ltenet.evaluation.peers.table import find_peer
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.rotations import kabsch

_SIZE = (288, 230)
#: Levels of each channel: with all 256 the file is three times as large and looks the same.
_LEVELS = 32


class View(NamedTuple):
    """From where a class is drawn.

    Attributes
    ----------
    shape
        Name of a shape of the class; the others are turned to lie as it does.
    yaw, pitch
        See `render`.
    """

    shape: str
    yaw: float
    pitch: float


#: Views in which a class can be recognised.
VIEWS = {
    "airplane": View("62", 20.0, 55.0),
    "hand": View("181", 180.0, 90.0),
    "plier": View("201", 0.0, 90.0),
    "fish": View("221", 180.0, 75.0),
    "bird": View("242", 20.0, 50.0),
    "bust": View("302", 20.0, 8.0),
}


class Scored(NamedTuple):
    """A map and its errors.

    Attributes
    ----------
    pair
        Row of the set's pairs.
    errors
        At the landmarks, % of the target's diameter.
    partners
        (N,) target vertex of each source vertex.
    """

    pair: int
    errors: LandmarkScores
    partners: IntArray


def first_pairs(categories: Sequence[str], pairs: IntArray, count: int) -> dict[str, list[int]]:
    """Return the first `count` rows of (T, 2) pairs of each category, by the category's name."""
    found: dict[str, list[int]] = {}
    for row, source in enumerate(pairs[:, 0].tolist()):
        own = found.setdefault(categories[source], [])
        if len(own) < count:
            own.append(row)
    return found


def extremes(scored: Sequence[Scored]) -> tuple[Scored, Scored]:
    """Return the maps with the least and the largest error up to symmetry, the first of ties."""
    return (
        min(scored, key=lambda one: one.errors.symmetric),
        max(scored, key=lambda one: one.errors.symmetric),
    )


def captions_of(category: str, best: Scored, worst: Scored, count: int) -> list[str]:
    """Caption target and source of the best, then of the worst of `count` maps."""
    return [
        text
        for which, one in (("best", best), ("worst", worst))
        for text in (
            f"{which} of {count}",
            f"{category} {one.errors.symmetric:.1f} %" + " swapped" * swapped(one.errors),
        )
    ]


def swapped(errors: LandmarkScores) -> bool:
    """Whether the two sides are exchanged; a bad map fits neither way clearly better."""
    return 2 * errors.symmetric < errors.plain


def match_pairs(data: Path, rows: Sequence[int]) -> list[Scored]:
    """Match pairs as the benchmark does; maps that it filed before are read."""
    config = BenchConfig(benchmark="shrec07", data=data, sampling="full", seeds=(0,), cycle=False)
    options = method_options(config, open_benchmark(config.benchmark, data))
    record = method_record(config.method, find_peer(config.method).module, options)
    jobs = tuple(Job(row, 0) for row in rows)
    predictor = Predictor(config, PredictionCache(default_cache()), jobs, record, options)
    found = []
    for place, job in enumerate(jobs):
        scores = predictor.draw(place)
        if isinstance(scores, Failure):
            raise PartialFailure(
                f"got no map of pair {job.pair}, expected one of every pair; try it alone: "
                f"{scores.reason}"
            )
        assert scores.landmarks is not None
        drawn, source, target = predictor.shapes_of(job)
        partners = drawn.target_vertices[predictor.predicted(source, target).map.indices]  # (N,)
        found.append(Scored(job.pair, scores.landmarks, partners))
        tell(f"{drawn.category} {source.name} onto {target.name}: {scores.landmarks.symmetric:.1f}")
    return found


def tiles_of(shapes: LandmarkSet, scored: Scored, view: View) -> list[Image]:
    """Draw the target in colours, and the source in those of its partners."""
    first, second = (int(index) for index in shapes.pairs[scored.pair])
    source, target = shapes.shape(first), shapes.shape(second)
    upright = rotation_onto(shapes, second, shapes.names.index(view.shape))  # (3, 3)
    turned = target.points @ upright.T  # (M, 3)
    alike = source.points @ (upright @ rotation_onto(shapes, first, second)).T  # (N, 3)
    colors = position_colors(turned, turned)  # (M, 3)
    return [
        render(points, faces, colors=own, size=_SIZE, yaw=view.yaw, pitch=view.pitch)
        for points, faces, own in (
            (turned, target.faces, colors),
            (alike, source.faces, colors[scored.partners]),
        )
    ]


def rotation_onto(shapes: LandmarkSet, moved: int, goal: int) -> FloatArray:
    """(3, 3) rotation that best takes the landmarks of one shape to those of another."""
    marks, goals = shapes.landmarks(moved), shapes.landmarks(goal)  # (L,), (L,)
    known = (marks >= 0) & (goals >= 0)  # (L,)
    points = shapes.shape(moved).points[marks[known]]
    return kabsch(points, shapes.shape(goal).points[goals[known]]).rotation


def fewer_colors(image: Image, levels: int) -> Image:
    """Round each channel to `levels` values from 0 to 255, which compress better."""
    step = 255 / (levels - 1)
    rounded: Image = np.round(np.round(image / step) * step).astype(np.uint8)
    return rounded


def tell(message: str) -> None:
    """Say on stderr how far it is."""
    print(message, file=sys.stderr)


def main() -> None:
    """Match and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("picture", type=Path, help="PNG file")
    parser.add_argument("--data", type=Path, default=os.environ.get("LTENET_DATA"))
    parser.add_argument("--pairs", type=int, default=5, help="pairs of each class")
    options = parser.parse_args()
    if options.data is None:
        parser.error("got no folder of the benchmarks; give --data or set LTENET_DATA")
    if options.pairs < 2:
        parser.error(f"got {options.pairs} pairs, expected at least 2, a best and a worst; try 5")
    shapes = open_benchmark("shrec07", Path(options.data))
    assert isinstance(shapes, LandmarkSet)
    tiles: list[Image] = []
    captions: list[str] = []
    for category, rows in first_pairs(shapes.categories, shapes.pairs, options.pairs).items():
        best, worst = extremes(match_pairs(Path(options.data), rows))
        for scored in (best, worst):
            tiles += tiles_of(shapes, scored, VIEWS[category])
        captions += captions_of(category, best, worst, len(rows))
    sheet = contact_sheet(tiles, columns=4, captions=captions)
    write_png(options.picture, fewer_colors(sheet, _LEVELS), force=True)


if __name__ == "__main__":
    main()
