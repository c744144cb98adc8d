"""The pairs that a benchmark tests: two sampled shapes, and where each source point truly belongs.

Three kinds of sampling:

- ``shared``: the protocol of the papers. Source vertices with a known partner, and on the target
  exactly those partners, shuffled. Both clouds hold the same surface points, which a network can
  exploit; use it to compare with published figures.
- ``independent``: each shape is drawn by itself, as scans are. The truth of a source point is the
  position of its partner on the target, whether or not a point was drawn there.
- ``full``: all vertices of both shapes, the target's shuffled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.data.augmentation import Rotate, add_noise, random_rotation
from ltenet.data.sampling import positions_of, sample_surface, sample_vertices
from ltenet.data.shapeset import GroundTruth, ShapeSet
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.diameter import largest_distance
from ltenet.shape import Shape

Sampling = Literal["shared", "independent", "full"]
SampledBy = Literal["vertex", "area"]

# Each decision has its own random stream: turning or disturbing a pair leaves its points alone.
_SOURCE_POINTS, _TARGET_POINTS, _ROTATION, _NOISE = range(4)


@dataclass(frozen=True, eq=False)
class BenchmarkPair:
    """Two sampled shapes with the truth between them, in the unit of their set.

    Attributes
    ----------
    source
        (N, 3) float64 points of the source.
    target
        (M, 3) float64 points of the target.
    truth
        (N, 3) true position of each source point on the target; not a number where it is unknown,
        which happens with full sampling only, and where it is missing.
    partner
        (N,) index into `target` of the true partner, -1 where it was not drawn.
    source_vertices, target_vertices
        (N,) and (M,) the vertices that were drawn, -1 for points between vertices.
    source_name, target_name
        Names of the two shapes in their set.
    category
        Class of the source.
    diameter
        Largest distance between two of the target points, ``dmax``.
    source_faces, target_faces
        With full sampling the faces of each shape, if it has any, numbered like the points here.
    missing
        Of partial shapes, (N,) True where the true partner is missing from the target; None where
        both shapes are whole.
    """

    source: FloatArray
    target: FloatArray
    truth: FloatArray
    partner: IntArray
    source_vertices: IntArray
    target_vertices: IntArray
    source_name: str
    target_name: str
    category: str
    diameter: float
    source_faces: IntArray | None = None
    target_faces: IntArray | None = None
    missing: NDArray[np.bool_] | None = None


class _Draw(NamedTuple):
    """What sampling decides: the arrays of `BenchmarkPair`, before turning and noise."""

    source: FloatArray  # (N, 3)
    target: FloatArray  # (M, 3)
    truth: FloatArray  # (N, 3)
    partner: IntArray  # (N,)
    source_vertices: IntArray  # (N,)
    target_vertices: IntArray  # (M,)
    source_faces: IntArray | None = None
    target_faces: IntArray | None = None


def benchmark_pair(
    shape_set: ShapeSet,
    pair: int,
    *,
    sampling: Sampling = "shared",
    by: SampledBy = "vertex",
    points: int = 1024,
    seed: int = 0,
    noise: float = 0.0,
    rotate: Rotate = "none",
) -> BenchmarkPair:
    """Draw one test pair; the same set, pair, options and seed give the same points.

    Parameters
    ----------
    shape_set
        Where the shapes and the truth come from.
    pair
        Row of `shape_set.pairs`.
    sampling
        "shared", "independent" or "full", see the module.
    by
        With independent sampling, "vertex" or "area". By area the target is drawn on its faces,
        or from `shape_set.surface` where it has none; the source likewise if both shapes have the
        same triangulation, else from the vertices with a known partner: only there the truth is
        exact.
    points
        How many to draw on each shape; full sampling takes all vertices instead.
    seed
        Sampling seed; report the spread over several.
    noise
        Standard deviation of Gaussian noise on the source alone, in the unit of the set.
    rotate
        Turn each shape by its own random rotation, about the y axis or about any axis, through
        the mean of its points; the truth turns with the target.
    """
    _check_options(shape_set, pair, sampling, by, rotate)
    source_index, target_index = (int(index) for index in shape_set.pairs[pair])
    truth = known_truth(shape_set, source_index, target_index)
    source, target = shape_set.shape(source_index), shape_set.shape(target_index)
    rngs = [np.random.default_rng([seed, pair, stream]) for stream in range(4)]
    if sampling == "shared":
        draw = _draw_shared(source, target, truth, points, rngs)
    elif sampling == "full":
        draw = _draw_full(source, target, truth, rngs)
    elif by == "vertex":
        draw = _draw_independent_vertices(source, target, truth, points, rngs)
    else:
        surface = shape_set.surface(target_index) if target.faces is None else None
        draw = _draw_independent_areas(source, target, truth, surface, points, rngs)
    placed = rotated((draw.source, draw.target, draw.truth), rotate, rngs[_ROTATION])
    fields = draw._asdict() | placed._asdict()
    fields["source"] = add_noise(placed.source, noise, rngs[_NOISE])
    return BenchmarkPair(
        source_name=shape_set.names[source_index],
        target_name=shape_set.names[target_index],
        category=shape_set.categories[source_index],
        diameter=largest_distance(draw.target),
        **fields,
    )


def _draw_shared(
    source: Shape,
    target: Shape,
    truth: GroundTruth,
    points: int,
    rngs: list[np.random.Generator],
) -> _Draw:
    rows = sample_vertices(points, len(truth.source), rngs[_SOURCE_POINTS])  # (N,)
    order = rngs[_TARGET_POINTS].permutation(points)  # (N,); without it ties leak the answer
    source_vertices, partners = truth.source[rows], truth.target[rows]  # (N,), (N,)
    target_vertices = partners[order]  # (N,)
    return _Draw(
        source=source.points[source_vertices],
        target=target.points[target_vertices],
        truth=target.points[partners],
        partner=np.argsort(order),
        source_vertices=source_vertices,
        target_vertices=target_vertices,
    )


def _draw_full(
    source: Shape, target: Shape, truth: GroundTruth, rngs: list[np.random.Generator]
) -> _Draw:
    order = rngs[_TARGET_POINTS].permutation(len(target))  # (M,)
    place = np.argsort(order)  # (M,); vertex v is point place[v]
    positions = np.full((len(source), 3), np.nan)  # (N, 3)
    positions[truth.source] = target.points[truth.target]
    partner = np.full(len(source), -1)  # (N,)
    partner[truth.source] = place[truth.target]
    return _Draw(
        source=source.points,
        target=target.points[order],
        truth=positions,
        partner=partner,
        source_vertices=np.arange(len(source)),
        target_vertices=order,
        source_faces=source.faces,
        target_faces=None if target.faces is None else place[target.faces],
    )


def _draw_independent_vertices(
    source: Shape,
    target: Shape,
    truth: GroundTruth,
    points: int,
    rngs: list[np.random.Generator],
) -> _Draw:
    rows = sample_vertices(points, len(truth.source), rngs[_SOURCE_POINTS])  # (N,)
    source_vertices, partners = truth.source[rows], truth.target[rows]  # (N,), (N,)
    # Vertices in the same place count once, or the target would hold the same point twice.
    _, first, same = np.unique(target.points, axis=0, return_index=True, return_inverse=True)
    representative = first[same.reshape(-1)]  # (V,)
    target_vertices = sample_vertices(points, np.sort(first), rngs[_TARGET_POINTS])  # (M,)
    place = np.full(len(target), -1)  # (V,)
    place[target_vertices] = np.arange(points)
    return _Draw(
        source=source.points[source_vertices],
        target=target.points[target_vertices],
        truth=target.points[partners],
        partner=place[representative[partners]],
        source_vertices=source_vertices,
        target_vertices=target_vertices,
    )


def _draw_independent_areas(
    source: Shape,
    target: Shape,
    truth: GroundTruth,
    surface: FloatArray | None,
    points: int,
    rngs: list[np.random.Generator],
) -> _Draw:
    rng = rngs[_TARGET_POINTS]
    if target.faces is not None:
        drawn = sample_surface(target.points, target.faces, points, rng)
        target_points = positions_of(drawn, target.points, target.faces)  # (M, 3)
    elif surface is not None:
        target_points = surface[sample_vertices(points, len(surface), rng)]  # (M, 3)
    else:
        raise InputError(
            f"{target.name}: got a cloud without faces and without surface points, expected one of "
            "them for sampling by area; try by='vertex'"
        )
    faces = _common_faces(source, target, truth)
    if faces is not None:
        sample = sample_surface(source.points, faces, points, rngs[_SOURCE_POINTS])
        source_points = positions_of(sample, source.points, faces)  # (N, 3)
        positions = positions_of(sample, target.points, faces)  # (N, 3)
        source_vertices = np.full(points, -1)  # (N,)
    else:
        rows = sample_vertices(points, len(truth.source), rngs[_SOURCE_POINTS])  # (N,)
        source_vertices = truth.source[rows]  # (N,)
        source_points = source.points[source_vertices]  # (N, 3)
        positions = target.points[truth.target[rows]]  # (N, 3)
    nowhere = np.full(points, -1)  # (N,)
    return _Draw(source_points, target_points, positions, nowhere, source_vertices, nowhere)


def _common_faces(source: Shape, target: Shape, truth: GroundTruth) -> IntArray | None:
    """(F', 3) faces of both shapes with known corners, None if they are triangulated apart."""
    if source.faces is None or target.faces is None:
        return None
    same = np.array_equal(source.faces, target.faces)
    if not (same and len(source) == len(target) and np.array_equal(truth.source, truth.target)):
        return None
    known = np.zeros(len(source), dtype=bool)  # (V,)
    known[truth.source] = True
    return source.faces[known[source.faces].all(axis=1)]  # (F', 3)


class Placed(NamedTuple):
    """Source (N, 3), target (M, 3) and truth (N, 3) of a pair."""

    source: FloatArray
    target: FloatArray
    truth: FloatArray


def rotated(
    pair: tuple[FloatArray, FloatArray, FloatArray], rotate: Rotate, rng: np.random.Generator
) -> Placed:
    """Turn source (N, 3) and target (M, 3) about their means; the truth (N, 3) goes along."""
    source, target, truth = pair
    if rotate == "none":
        return Placed(source, target, truth)
    turns = [random_rotation(rotate, rng) for _ in range(2)]  # (3, 3) each
    source_centre, target_centre = source.mean(axis=0), target.mean(axis=0)  # (3,), (3,)
    return Placed(
        source=(source - source_centre) @ turns[0].T + source_centre,
        target=(target - target_centre) @ turns[1].T + target_centre,
        truth=(truth - target_centre) @ turns[1].T + target_centre,
    )


def known_truth(shape_set: ShapeSet, source: int, target: int) -> GroundTruth:
    """Return what is known about two shapes of a set, which must not be nothing."""
    truth = shape_set.truth(source, target)
    if truth is None or len(truth.source) == 0:
        raise MissingError(
            f"{shape_set.name}: got no correspondence between {shape_set.names[source]} and "
            f"{shape_set.names[target]}, expected a pair with ground truth; try another "
            "pair, or add the map files"
        )
    return truth


def _check_options(
    shape_set: ShapeSet, pair: int, sampling: Sampling, by: SampledBy, rotate: Rotate
) -> None:
    if not 0 <= pair < len(shape_set.pairs):
        raise InputError(
            f"{shape_set.name}: got pair {pair}, expected 0 to {len(shape_set.pairs) - 1}; try "
            "counting the rows of its pairs from 0"
        )
    for name, value, choices in (
        ("sampling", sampling, ("shared", "independent", "full")),
        ("by", by, ("vertex", "area")),
        ("rotate", rotate, ("none", "yaw", "any")),
    ):
        if value not in choices:
            raise UsageError(
                f"got {name}={value!r}, expected one of {', '.join(choices)}; try {choices[0]!r}"
            )
    if by == "area" and sampling != "independent":
        raise UsageError(
            f"got sampling={sampling!r} with by='area', expected independent samples by area; try "
            "by='vertex' or sampling='independent'"
        )
