"""What the page says in numbers about a map: how much is matched, and how well where one knows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.correspondence import UNMATCHED, Correspondence
from ltenet.data.pairs import largest_distance
from ltenet.errors import InputError
from ltenet.metrics import TOLERANCES, accuracy
from ltenet.shape import FloatArray, IntArray, Shape

#: Target points farther than this share of the diameter from every partner count as not reached.
REACH = 0.03

#: Above this number of points the diameter is taken from the outermost ones, by direction.
_MANY = 10_000
_DIRECTIONS = 1024


class Truth(NamedTuple):
    """A map measured against the truth.

    Attributes
    ----------
    indices
        (N,) true target point of each source point, -1 where it is not known.
    errors
        (N,) distance from partner to truth as a share of the diameter, NaN where there is none.
    curve
        (100,) share of the points with a known truth that lie within each of `TOLERANCES`. Points
        without a partner never do.
    mean
        Mean of the errors; NaN if there is none.
    """

    indices: IntArray
    errors: FloatArray
    curve: FloatArray
    mean: float

    @property
    def auc(self) -> float:
        """Mean of the curve, up to 1."""
        return float(self.curve.mean())

    def within(self, tolerance: float) -> float:
        """Share of the points within a tolerance, one of `TOLERANCES`."""
        return float(self.curve[int(np.argmin(np.abs(TOLERANCES - tolerance)))])


def diameter(target: Shape) -> float:
    """Largest distance between two target points; 1 if all are one.

    Of many points only those count that are outermost in one of 1024 directions, evenly spread
    over the sphere: the hull of a ball has all points for corners, too many to compare. What is
    lost is at most 0.3 %.
    """
    points = target.points
    if len(points) > _MANY:
        turns = np.arange(_DIRECTIONS) + 0.5
        height, angle = 1 - 2 * turns / _DIRECTIONS, np.pi * (1 + np.sqrt(5)) * turns
        around = np.sqrt(1 - np.square(height))
        directions = np.stack([around * np.cos(angle), height, around * np.sin(angle)])  # (3, D)
        along = (points @ directions[:, d] for d in range(_DIRECTIONS))  # (N,) each
        outermost = [(place.argmin(), place.argmax()) for place in along]
        points = points[np.unique(outermost)]
    return largest_distance(points) or 1.0


def measure(
    correspondence: Correspondence, truth: IntArray, target: Shape, unit: float | None = None
) -> Truth:
    """Compare a map with the (N,) true indices; `unit` is the diameter where it is known."""
    known = truth != UNMATCHED  # (N,)
    if truth.shape != correspondence.indices.shape or not known.any():
        raise InputError(
            f"a truth of shape {truth.shape} with {int(known.sum())} known points came for a map "
            f"of {len(correspondence)} points; one entry per source point, some of them known, "
            "are needed; check that both belong to the same source"
        )
    apart = correspondence.positions(target) - target.points[truth]  # (N, 3)
    errors: FloatArray = np.linalg.norm(apart, axis=1) / (unit or diameter(target))  # (N,)
    errors[~known] = np.nan
    # A point that found no partner is as wrong as one can be, so that silence does not pay.
    judged = np.nan_to_num(errors[known], nan=np.inf)  # (K,)
    found = errors[np.isfinite(errors)]
    mean = float(found.mean()) if len(found) else np.nan
    return Truth(truth, errors, accuracy(judged, 1.0, TOLERANCES), mean)


def sources_of(positions: FloatArray, target: Shape) -> IntArray:
    """(M,) for each target point the source point whose partner is nearest; -1 beyond `REACH`.

    Parameters
    ----------
    positions
        (N, 3) partners of the source points, NaN where there is none.
    """
    from scipy.spatial import KDTree

    matched = np.flatnonzero(np.isfinite(positions).all(axis=1))
    if not len(matched):
        return np.full(len(target), UNMATCHED, np.int64)
    limit = REACH * max(target.diameter, 1e-12)
    _, nearest = KDTree(positions[matched]).query(target.points, distance_upper_bound=limit)
    sources: IntArray = np.append(matched, UNMATCHED)[nearest]  # (M,)
    return sources


def aligning_rotation(source: FloatArray, partners: FloatArray) -> FloatArray:
    """(3, 3) rotation that best turns (N, 3) points onto their (N, 3) partners, about the means."""
    if len(source) < 3:
        return np.eye(3)
    left, right = source - source.mean(axis=0), partners - partners.mean(axis=0)
    u, _, vt = np.linalg.svd(left.T @ right)
    handed = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt)) or 1.0])
    rotation: FloatArray = (u @ handed @ vt).T
    return rotation


def displacements(
    source: Shape, positions: FloatArray, matched: NDArray[np.bool_], unit: float
) -> tuple[FloatArray, FloatArray]:
    """How far each source point moves when the shapes are laid upon each other.

    Parameters
    ----------
    source
        N points.
    positions
        (N, 3) their partners.
    matched
        (N,) where there is one.
    unit
        The target's diameter.

    Returns
    -------
    (N,) distances as shares of the target's diameter, NaN without partner, and the (3, 3) rotation
    of the source that made them small.
    """
    moved = np.full(len(source), np.nan)
    points, partners = source.points[matched], positions[matched]  # (K, 3), (K, 3)
    rotation = aligning_rotation(points, partners)
    if len(points):
        centred = (points - points.mean(axis=0)) @ rotation.T  # (K, 3)
        goal = partners - partners.mean(axis=0)  # (K, 3)
        spread = float(np.square(centred).sum())
        scale = np.sqrt(float(np.square(goal).sum()) / spread) if spread else 1.0
        apart = np.linalg.norm(scale * centred - goal, axis=1)  # (K,)
        moved[matched] = apart / unit
    return moved, rotation
