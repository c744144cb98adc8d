"""Test pairs of which the source, or both shapes, are parts of whole shapes.

The parts are drawn on whole shapes with known correspondence (see `parts`), then points on what is
left. A source point whose partner is not left on the target has no truth, and is marked as missing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ltenet.data.augmentation import Rotate, add_noise
from ltenet.data.pairs import BenchmarkPair, Sampling, known_truth, rotated
from ltenet.data.parts import DEPTH_NOISE, BoolArray, Part, PartKind, draw_part
from ltenet.data.sampling import sample_vertices
from ltenet.data.shapeset import ShapeSet
from ltenet.errors import InputError, UsageError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.diameter import largest_distance
from ltenet.shape import Shape

#: Points that a part must have, and share of the smaller part that two parts have in common.
LEAST_POINTS, LEAST_COMMON = 100, 0.5

# Each decision has its own random stream; the first four are those of whole shapes.
_SOURCE_POINTS, _TARGET_POINTS, _ROTATION, _NOISE, _SOURCE_PART, _TARGET_PART = range(6)
_DRAWS = 30  # tries to draw a part that has enough points, and enough in common with another


def partial_pair(
    shape_set: ShapeSet,
    pair: int,
    *,
    kind: PartKind,
    both: bool = False,
    sampling: Sampling = "independent",
    points: int = 1024,
    seed: int = 0,
    noise: float = 0.0,
    rotate: Rotate = "none",
) -> BenchmarkPair:
    """Draw one test pair of parts; the same set, pair, options and seed give the same points.

    Parameters
    ----------
    shape_set, pair, seed, rotate
        As for `benchmark_pair`.
    kind
        What is left, see `draw_part`.
    both
        Whether the target is a part too. Then the parts have at least half of the smaller one in
        common, measured by vertices.
    sampling
        "independent": points drawn from the vertices of each part. "full": all of these, with the
        faces between them.
    points
        How many to draw on each part, or all of its vertices if it has fewer.
    noise
        Standard deviation of Gaussian noise on the source, in the unit of the set. What a camera
        sees has noise of 0.3 % of the diameter along its view besides.
    """
    if sampling == "shared":
        raise UsageError(
            "got shared samples of parts, expected each shape drawn by itself, or whole meshes; "
            "try sampling='independent' or 'full'"
        )
    source_index, target_index = (int(index) for index in shape_set.pairs[pair])
    truth = known_truth(shape_set, source_index, target_index)
    source, target = shape_set.shape(source_index), shape_set.shape(target_index)
    partner = np.full(len(source), -1)  # (V,)
    partner[truth.source] = truth.target
    rngs = [np.random.default_rng([seed, pair, stream]) for stream in range(6)]
    parts = _draw_parts(shape_set, pair, (source, target), partner, kind, both, rngs)
    draws = [
        _drawn(shape, part, points if sampling == "independent" else None, allowed, rng)
        for shape, part, allowed, rng in (
            # Points of unknown truth would tell nothing.
            (source, parts[0], partner >= 0, rngs[_SOURCE_POINTS]),
            (target, parts[1], None, rngs[_TARGET_POINTS]),
        )
    ]
    goals = partner[draws[0].vertices]  # (N,)
    there = parts[1].kept[goals] & (goals >= 0)  # (N,)
    positions = np.where(there[:, None], target.points[goals], np.nan)  # (N, 3)
    place = np.full(len(target), -1)  # (V,)
    place[draws[1].vertices] = np.arange(len(draws[1].vertices))
    diameter = largest_distance(target.points)
    placed = rotated((draws[0].points, draws[1].points, positions), rotate, rngs[_ROTATION])
    return BenchmarkPair(
        source=add_noise(placed.source, noise, rngs[_NOISE]),
        target=placed.target,
        truth=placed.truth,
        partner=np.where(there, place[goals], -1),
        source_vertices=draws[0].vertices,
        target_vertices=draws[1].vertices,
        source_name=shape_set.names[source_index],
        target_name=shape_set.names[target_index],
        category=shape_set.categories[source_index],
        diameter=diameter,
        source_faces=draws[0].faces,
        target_faces=draws[1].faces,
        missing=~there & (goals >= 0),
    )


class _Drawn(NamedTuple):
    """Points of a part, and where they are from."""

    points: FloatArray  # (N, 3)
    vertices: IntArray  # (N,)
    faces: IntArray | None  # (F, 3)


def _draw_parts(
    shape_set: ShapeSet,
    pair: int,
    shapes: tuple[Shape, Shape],
    partner: IntArray,
    kind: PartKind,
    both: bool,
    rngs: list[np.random.Generator],
) -> tuple[Part, Part]:
    """Draw what is left of both shapes; of the target everything, unless `both`."""
    source_index, target_index = (int(index) for index in shape_set.pairs[pair])
    source, target = shapes
    whole = Part(np.ones(len(target), dtype=bool))
    known = partner >= 0  # (V,)
    for _ in range(_DRAWS):
        part = draw_part(kind, source, rngs[_SOURCE_PART], regions=shape_set.regions(source_index))
        if int((part.kept & known).sum()) < LEAST_POINTS:
            continue
        if not both:
            return part, whole
        for _ in range(_DRAWS):
            other = draw_part(
                kind, target, rngs[_TARGET_PART], regions=shape_set.regions(target_index)
            )
            if _in_common(part.kept, other.kept, partner) >= LEAST_COMMON:
                return part, other
    raise InputError(
        f"{source.name} and {target.name}: got no parts of kind {kind} with enough points in "
        f"{_DRAWS} tries, expected at least {LEAST_POINTS}; try shapes with more points"
    )


def _in_common(source: BoolArray, target: BoolArray, partner: IntArray) -> float:
    """Share of the smaller part that is on both, by vertices with a known partner; 0 if tiny."""
    known = partner >= 0  # (V,)
    sizes = int((source & known).sum()), int(target[partner[known]].sum())
    if min(sizes) < LEAST_POINTS:
        return 0.0
    return int((source & known & target[partner]).sum()) / min(sizes)


def _drawn(
    shape: Shape,
    part: Part,
    points: int | None,
    allowed: BoolArray | None,
    rng: np.random.Generator,
) -> _Drawn:
    """Draw points on a part, or all of its vertices in random order."""
    kept = part.kept if allowed is None else part.kept & allowed  # (V,)
    if points is None:
        vertices = rng.permutation(np.flatnonzero(part.kept))  # (N,)
        faces = _renumbered(shape.faces, vertices, len(shape))
    else:
        # Vertices in the same place count once, or a shape would hold the same point twice.
        first = np.unique(shape.points, axis=0, return_index=True)[1]
        once = np.zeros(len(shape), dtype=bool)  # (V,)
        once[first] = True
        available = np.flatnonzero(kept & once if allowed is None else kept)  # (A,)
        weights = None if part.density is None else part.density[available]  # (A,)
        vertices = sample_vertices(min(points, len(available)), available, rng, weights=weights)
        faces = None
    places = shape.points[vertices]  # (N, 3)
    if part.towards is not None:
        depth = DEPTH_NOISE * largest_distance(shape.points) * rng.standard_normal(len(places))
        places = places + depth[:, None] * part.towards
    return _Drawn(places, vertices, faces)


def _renumbered(faces: IntArray | None, vertices: IntArray, count: int) -> IntArray | None:
    """(F', 3) faces among (N,) of `count` vertices, numbered by their places in that list."""
    if faces is None:
        return None
    place = np.full(count, -1)  # (V,)
    place[vertices] = np.arange(len(vertices))
    renumbered = place[faces]  # (F, 3)
    inside: IntArray = renumbered[(renumbered >= 0).all(axis=1)]
    return inside
