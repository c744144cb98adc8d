"""Figures of a map for the page: errors against the truth, reached points, displacements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.correspondence import UNMATCHED, Correspondence
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.rotations import kabsch
from ltenet.metrics import TOLERANCES, accuracy
from ltenet.shape import Shape

#: Target points farther than this share of the diameter from every partner are not reached.
REACH = 0.03


class Truth(NamedTuple):
    """A map measured against the truth.

    Attributes
    ----------
    indices
        (N,) true target point of each source point, -1 if unknown.
    errors
        (N,) distance from partner to truth as a share of the diameter, NaN if undefined.
    curve
        (100,) share of the points with a known truth that lie within each of `TOLERANCES`. Points
        without a partner never do.
    mean
        Mean of the errors; NaN without any.
    """

    indices: IntArray
    errors: FloatArray
    curve: FloatArray
    mean: float

    @property
    def auc(self) -> float:
        """Area under the curve: its mean, at most 1."""
        return float(self.curve.mean())

    def within(self, tolerance: float) -> float:
        """Share of the points within a tolerance, one of `TOLERANCES`."""
        return float(self.curve[int(np.argmin(np.abs(TOLERANCES - tolerance)))])


def unit_length(target: Shape) -> float:
    """Diameter of the target, the unit of all errors; 1 if its points coincide."""
    return target.diameter or 1.0


def measure(correspondence: Correspondence, truth: IntArray, target: Shape) -> Truth:
    """Compare a map with the (N,) true indices, -1 where unknown."""
    known = truth != UNMATCHED  # (N,)
    if truth.shape != correspondence.indices.shape or not known.any():
        raise InputError(
            f"got a truth of shape {truth.shape} with {int(known.sum())} known points for a map of "
            f"{len(correspondence)} points, expected one entry per source point, some of them "
            "known; try the truth of this source"
        )
    apart = correspondence.positions(target) - target.points[truth]  # (N, 3)
    errors: FloatArray = np.linalg.norm(apart, axis=1) / unit_length(target)  # (N,)
    errors[~known] = np.nan
    # Unmatched points count as wrong; otherwise leaving points out would pay.
    judged = np.nan_to_num(errors[known], nan=np.inf)  # (K,)
    found = errors[np.isfinite(errors)]
    mean = float(found.mean()) if len(found) else np.nan
    return Truth(truth, errors, accuracy(judged, 1.0, TOLERANCES), mean)


def sources_of(positions: FloatArray, target: Shape) -> IntArray:
    """(M,) for each target point the source point whose partner is nearest; -1 beyond `REACH`.

    Parameters
    ----------
    positions
        (N, 3) partners of the source points, NaN for unmatched.
    """
    from scipy.spatial import KDTree

    matched = np.flatnonzero(np.isfinite(positions).all(axis=1))
    if not len(matched):
        return np.full(len(target), UNMATCHED, np.int64)
    limit = REACH * unit_length(target)
    _, nearest = KDTree(positions[matched]).query(target.points, distance_upper_bound=limit)
    sources: IntArray = np.append(matched, UNMATCHED)[nearest]  # (M,)
    return sources


def displacements(
    source: Shape, positions: FloatArray, matched: NDArray[np.bool_], unit: float
) -> tuple[FloatArray, FloatArray]:
    """Distance of each source point from its partner once the shapes are aligned.

    Parameters
    ----------
    source
        N points.
    positions
        (N, 3) their partners.
    matched
        (N,) True where there is one.
    unit
        The target's diameter.

    Returns
    -------
    (N,) distances as shares of the target's diameter, NaN without partner, and the (3, 3) rotation
    that aligns the source.
    """
    moved = np.full(len(source), np.nan)
    points, partners = source.points[matched], positions[matched]  # (K, 3), (K, 3)
    rotation = kabsch(points, partners).rotation if len(points) >= 3 else np.eye(3)
    if len(points):
        centred = (points - points.mean(axis=0)) @ rotation.T  # (K, 3)
        goal = partners - partners.mean(axis=0)  # (K, 3)
        spread = float(np.square(centred).sum())
        scale = np.sqrt(float(np.square(goal).sum()) / spread) if spread else 1.0
        apart = np.linalg.norm(scale * centred - goal, axis=1)  # (K,)
        moved[matched] = apart / unit
    return moved, rotation
