"""How well a map of parts tells what the two shapes have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ltenet.data.pairs import BenchmarkPair
from ltenet.geometry.arrays import FloatArray

BoolArray = NDArray[np.bool_]

#: A target point belongs to the overlap if a partner lies within this share of the diameter: about
#: one and a half times the spacing of 1,024 points.
REACH = 0.03


class OverlapScores(NamedTuple):
    """Intersection over union of predicted and true overlap, from 0 to 1.

    Attributes
    ----------
    source
        Of the source points: those that have a partner in the map, and those that truly have one.
    target
        Of the target points: those near the partners in the map, and those near the true ones.
    """

    source: float
    target: float

    @property
    def lower(self) -> float:
        """The lower of the two: all of a part has partners on the whole, which is no merit."""
        return min(self.source, self.target)


def score_overlap(
    drawn: BenchmarkPair, matched: BoolArray, places: FloatArray
) -> OverlapScores | None:
    """Compare the overlap that a map predicts with the true one; None for whole shapes.

    Parameters
    ----------
    drawn
        The pair.
    matched
        (N,) whether the map has a partner for a source point.
    places
        (N, 3) positions of the partners.
    """
    if drawn.missing is None:
        return None
    partnered = np.asarray(np.isfinite(drawn.truth).all(axis=1))  # (N,)
    told = partnered | drawn.missing  # (N,)
    reach = REACH * drawn.diameter
    covered = _near(drawn.target, places[matched], reach)  # (M,)
    common = _near(drawn.target, drawn.truth[partnered], reach)  # (M,)
    return OverlapScores(_iou(matched[told], partnered[told]), _iou(covered, common))


def _near(points: FloatArray, places: FloatArray, reach: float) -> BoolArray:
    """(M,) which of (M, 3) points are within reach of some of (P, 3) places."""
    if len(places) == 0:
        return np.zeros(len(points), dtype=bool)
    near: BoolArray = np.isfinite(KDTree(places).query(points, distance_upper_bound=reach)[0])
    return near


def _iou(predicted: BoolArray, true: BoolArray) -> float:
    union = int((predicted | true).sum())
    return int((predicted & true).sum()) / union if union else 1.0
