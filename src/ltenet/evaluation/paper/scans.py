"""Two real scans: the truth is unknown, so the map is shown in colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet.correspondence import Correspondence
from ltenet.data.sampling import positions_of, sample_surface, sample_vertices
from ltenet.data.shapeset import ShapeSet
from ltenet.drawing.rendering import Image, contact_sheet, render
from ltenet.errors import UsageError
from ltenet.evaluation.bench.benchmarks import open_benchmark
from ltenet.evaluation.bench.pictures import position_colors
from ltenet.evaluation.paper.plans import ltenet
from ltenet.evaluation.paper.trainings import Budget, Trained, trained
from ltenet.io import load
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher
from ltenet.metrics import coverage, cycle_error
from ltenet.shape import Shape

#: Points drawn on each scan, as in the paper.
POINTS = 1024
_TILE = 360


class Scans(NamedTuple):
    """Two scans, and maps between them.

    Attributes
    ----------
    source, target
        Points drawn on each.
    maps
        From source to target, by the name of the map.
    back
        The same from target to source.
    """

    source: Shape
    target: Shape
    maps: dict[str, Correspondence]
    back: dict[str, Correspondence]

    def rows(self) -> list[dict[str, Any]]:
        """Figures that need no truth."""
        diameter = self.source.diameter
        return [
            {
                "map": name,
                "source": self.source.name,
                "target": self.target.name,
                "coverage, %": 100 * coverage(found.indices, len(self.target)),
                "cycle, % of the diameter": cycle_error(
                    self.source.points, found.indices, self.back[name].indices, diameter
                ),
            }
            for name, found in self.maps.items()
        ]


def finished_weights(budget: Budget) -> Path | None:
    """Weights of the paper's recipe for people, if their run is finished; nothing is trained."""
    made = trained(ltenet("human"), 0, budget._replace(train=False))
    return made.weights if isinstance(made, Trained) else None


def run_scans(
    files: tuple[Path, ...], data: Path | None, *, seed: int = 0, paper: Path | None = None
) -> Scans:
    """Match two scans with the weights that ship, and with the paper's own beside.

    Parameters
    ----------
    files
        Two files; none for two shapes of SHREC'19.
    data
        Folder of the benchmarks, where no files are given.
    seed
        Of the points that are drawn.
    paper
        Folder of weights trained by the paper's recipe; they take shapes as they come, without the
        orientation step, and their nearest neighbours are not refined.
    """
    if len(files) not in (0, 2):
        raise UsageError(
            f"got {len(files)} files for --shapes, expected two; try a source and a target"
        )
    source, target = (load(file) for file in files) if files else _default(data)
    rng = np.random.default_rng(seed)
    source, target = drawn(source, rng), drawn(target, rng)
    maps, back = {}, {}
    for name, options in _ways(paper).items():
        matcher = Matcher(options)
        maps[name] = matcher.match(source, target)
        back[name] = matcher.match(target, source)
    return Scans(source, target, maps, back)


def _ways(paper: Path | None) -> dict[str, MatchConfig]:
    """How the scans are matched, by the name of the map."""
    ways = {
        "nearest neighbour": MatchConfig(refine="none", threshold=0.0),
        "refined": MatchConfig(refine="coherent", threshold=0.0),
    }
    if paper is not None:
        ways["paper's weights, nearest neighbour"] = MatchConfig(
            model=str(paper), orient="none", refine="none", threshold=0.0
        )
    return ways


def drawn(shape: Shape, rng: np.random.Generator, count: int = POINTS) -> Shape:
    """Draw points on a shape: by area where it has faces, else among its points."""
    if len(shape) <= count and shape.faces is None:
        return Shape(shape.points, name=shape.name)
    if shape.faces is not None:
        sample = sample_surface(shape.points, shape.faces, count, rng)
        return Shape(positions_of(sample, shape.points, shape.faces), name=shape.name)
    return Shape(shape.points[sample_vertices(count, len(shape), rng)], name=shape.name)


def draw_scans(scans: Scans) -> Image:
    """Target in colours, and the source coloured by each map."""
    colors = position_colors(scans.target.points, scans.target.points)  # (M, 3)
    tiles = [_tile(scans.target, colors)]
    captions = [f"target {scans.target.name}"]
    for name, found in scans.maps.items():
        tiles.append(_tile(scans.source, colors[found.indices]))
        captions.append(f"{scans.source.name}, {name}")
    return contact_sheet(tiles, columns=len(tiles), captions=captions)


def _tile(shape: Shape, colors: np.ndarray) -> Image:
    return render(shape.points, colors=colors, size=(_TILE, _TILE), yaw=20.0, pitch=8.0)


def _default(data: Path | None) -> tuple[Shape, Shape]:
    """First pair of SHREC'19: real scans of two people, from sources that are not alike."""
    shapes = open_benchmark("shrec19", data)
    source, target = (_whole_surface(shapes, int(index)) for index in shapes.pairs[0])
    return source, target


def _whole_surface(shapes: ShapeSet, index: int) -> Shape:
    """Shape with faces, or as evenly spread points: its vertices crowd in hands and face."""
    shape = shapes.shape(index)
    spread = shapes.surface(index) if shape.faces is None else None
    return shape if spread is None else Shape(spread, name=shape.name)
