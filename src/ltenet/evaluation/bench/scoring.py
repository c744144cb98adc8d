"""From a prediction and its pair to the figures of that pair."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ltenet.correspondence import Correspondence
from ltenet.data.pairs import BenchmarkPair
from ltenet.data.shapeset import ShapeSet
from ltenet.errors import InputError
from ltenet.evaluation.bench.benchmarks import GeneratedBenchmark
from ltenet.evaluation.bench.geodesics import geodesic_error
from ltenet.evaluation.bench.mesh_scoring import LandmarkScores, ListedScores
from ltenet.evaluation.bench.overlap import OverlapScores, score_overlap
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.diameter import largest_distance
from ltenet.geometry.rotations import kabsch
from ltenet.matching.confidence import RIGHT
from ltenet.metrics import (
    MapError,
    coverage,
    cycle_error,
    distances_to_truth,
    flipped,
    map_error,
    reliability,
)

BoolArray = NDArray[np.bool_]


class PairScores(NamedTuple):
    """The figures of one pair; shares are in per cent.

    Attributes
    ----------
    seed, pair
        Which draw of which pair.
    source, target, category
        Names of the shapes, and class of the source.
    point
        Errors of the chosen target points.
    continuous
        Errors of the soft partners, where the method has them; else equal to `point`.
    oracle
        Errors of the drawn target points nearest to the truth: no choice of points is better.
    coverage
        Share of the target's points that are chosen.
    cycle
        Error after mapping there and back, % of the source's diameter; None if left out.
    flips
        Share of points taken for their mirror image; None without a mirror map.
    geodesic
        Error along the surface (heat method), of the square root of the area; None if left out.
    reliability
        (3, 10) counts behind the calibration error of the confidence; None without one.
    seconds
        Wall time of the prediction.
    memory
        Its most megabytes on top of those before; None if not known.
    listed
        Figures at listed points, of sets that are tested that way.
    landmarks
        Figures at landmarks, of sets that are tested that way.
    overlap
        Predicted and true overlap of parts; None for whole shapes.
    probability
        Mean probability of the matched points; None without a confidence.
    """

    seed: int
    pair: int
    source: str
    target: str
    category: str
    point: MapError
    continuous: MapError
    oracle: MapError
    coverage: float
    cycle: float | None
    flips: float | None
    geodesic: float | None
    reliability: FloatArray | None
    seconds: float
    memory: float | None = None
    listed: ListedScores | None = None
    landmarks: LandmarkScores | None = None
    overlap: OverlapScores | None = None
    probability: float | None = None


def score_pair(
    shapes: ShapeSet,
    drawn: BenchmarkPair,
    forth: Correspondence,
    back: Correspondence | None,
    *,
    seed: int,
    pair: int,
    seconds: float,
    memory: float | None = None,
    strict: bool = False,
    geodesic: int = 0,
    matched: BoolArray | None = None,
) -> PairScores:
    """Score a map against the truth, at every point whose truth is known.

    Parameters
    ----------
    shapes, drawn
        The set and the pair.
    forth, back
        Map from source to target; for the cycle error also from target to source.
    seed, pair, seconds, memory
        Recorded beside the figures.
    strict
        Count only distances below a tolerance, not equal ones.
    geodesic
        At how many points the error along the surface is measured; 0 for none.
    matched
        (N,) whether the method has a partner for a point; all by default.
    """
    if matched is None:
        matched = np.ones(len(forth), dtype=bool)  # (N,)
    known = np.asarray(np.isfinite(drawn.truth).all(axis=1))  # (N,)
    truth = drawn.truth[known]  # (P, 3)

    def errors(positions: FloatArray) -> MapError:
        return map_error(
            positions, truth, drawn.diameter, strict=strict, divisor=shapes.error_divisor
        )

    chosen = drawn.target[forth.indices[known]]  # (P, 3)
    places = forth.positions(drawn.target)  # (N, 3)
    between = places[known]  # (P, 3)
    nearest = drawn.target[KDTree(drawn.target).query(truth)[1]]  # (P, 3)
    cycle = None
    if back is not None:
        cycle = cycle_error(
            drawn.source, forth.indices, back.indices, largest_distance(drawn.source)
        )
    return PairScores(
        seed=seed,
        pair=pair,
        source=drawn.source_name,
        target=drawn.target_name,
        category=drawn.category,
        point=errors(chosen),
        continuous=errors(between),
        oracle=errors(nearest),
        coverage=100 * coverage(forth.indices, len(drawn.target)),
        cycle=cycle,
        flips=_flips(shapes, drawn, pair, chosen, known),
        geodesic=_geodesic(shapes, drawn, pair, forth, geodesic, seed) if geodesic else None,
        reliability=_reliability(drawn, forth, places, known),
        seconds=seconds,
        memory=memory,
        overlap=score_overlap(drawn, matched, places),
        probability=_probability(forth, matched),
    )


def _probability(forth: Correspondence, matched: BoolArray) -> float | None:
    """Mean probability of the (N,) matched points; 0 if there are none."""
    if forth.scores is None:
        return None
    return float(forth.scores[matched].mean()) if matched.any() else 0.0


def _flips(
    shapes: ShapeSet, drawn: BenchmarkPair, pair: int, chosen: FloatArray, known: BoolArray
) -> float | None:
    """Share (%) of points taken for their mirror image, where there is a mirror map."""
    if not isinstance(shapes, GeneratedBenchmark) or (drawn.source_vertices < 0).any():
        return None
    target = int(shapes.pairs[pair, 1])
    vertices, own = shapes.shape(target).points, drawn.source_vertices[known]  # (V, 3), (P,)
    # The drawn target may be rotated; the positions of its vertices tell how.
    motion = kabsch(vertices[own], drawn.truth[known])
    mirrored = motion(vertices[shapes.mirror(target)[own]])  # (P, 3)
    return 100 * float(flipped(chosen, drawn.truth[known], mirrored, drawn.diameter).mean())


def _reliability(
    drawn: BenchmarkPair, forth: Correspondence, places: FloatArray, known: BoolArray
) -> FloatArray | None:
    """Count what the calibration error needs, for methods with a confidence.

    Where the true partner is missing from the target, no match is right.
    """
    if forth.scores is None:
        return None
    right = np.zeros(len(known), dtype=bool)  # (N,)
    distances = distances_to_truth(places[known], drawn.truth[known])  # (P,)
    right[known] = distances <= RIGHT * drawn.diameter
    told = known if drawn.missing is None else known | drawn.missing  # (N,)
    return reliability(forth.scores[told], right[told])


def _geodesic(
    shapes: ShapeSet, drawn: BenchmarkPair, pair: int, forth: Correspondence, count: int, seed: int
) -> float:
    """Geodesic error (%) at `count` of the points, between vertices of the whole target."""
    source, target = (int(index) for index in shapes.pairs[pair])
    truth = shapes.truth(source, target)
    if truth is None or min(drawn.source_vertices.min(), drawn.target_vertices.min()) < 0:
        raise InputError(
            f"{drawn.source_name} and {drawn.target_name}: got points between vertices, expected "
            "vertices for the geodesic error; try drawing by vertex, or leave it out"
        )
    partner = np.full(len(shapes.shape(source)), -1)  # (V,)
    partner[truth.source] = truth.target
    true_vertex = partner[drawn.source_vertices]  # (N,)
    known = np.asarray(np.isfinite(drawn.truth).all(axis=1))  # (N,)
    rows = np.flatnonzero((true_vertex >= 0) & known)
    rng = np.random.default_rng([seed, pair])
    rows = rng.permutation(rows)[:count]  # (P,)
    predicted = drawn.target_vertices[forth.indices[rows]]  # (P,)
    return geodesic_error(shapes.shape(target), predicted, true_vertex[rows])
