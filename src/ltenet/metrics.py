"""How good a map is, measured against the truth.

Everything follows from the distances between predicted and true positions on the target, and from
the target's diameter: the largest distance among the points that were drawn on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.errors import InputError
from ltenet.shape import FloatArray

#: Bins of equal width in which promised and observed shares are compared.
RELIABILITY_BINS = 10

#: Tolerances of the accuracy curve, as shares of the diameter: 0.2 % to 20 %.
TOLERANCES: FloatArray = np.arange(1, 101, dtype=np.float64) * 0.002


class MapError(NamedTuple):
    """The figures of one pair.

    Attributes
    ----------
    accuracy
        (100,) share of points within each of `TOLERANCES`.
    err
        Mean Euclidean distance, in the unit of the shapes: the paper's equation.
    err_percent
        The same as a percentage of the diameter.
    err_dpc
        100 times the mean *squared* distance: the `err` that the papers publish, for some
        benchmarks further divided, see `ShapeSet.error_divisor`.
    """

    accuracy: FloatArray
    err: float
    err_percent: float
    err_dpc: float

    @property
    def auc(self) -> float:
        """Mean accuracy over the tolerances: the area under the curve, up to 1."""
        return float(self.accuracy.mean())


def map_error(
    predicted: ArrayLike,
    truth: ArrayLike,
    diameter: float,
    *,
    strict: bool = False,
    divisor: float = 1.0,
) -> MapError:
    """Compare predicted with true positions.

    Parameters
    ----------
    predicted, truth
        (N, 3) positions on the target.
    diameter
        Largest distance among the target's points.
    strict
        Count distances below the tolerance only, as the paper's equation does, not those equal.
    divisor
        What the published `err_dpc` of a benchmark is divided by beyond its definition.
    """
    distances = distances_to_truth(predicted, truth)  # (N,)
    return MapError(
        accuracy=accuracy(distances, diameter, TOLERANCES, strict=strict),
        err=float(distances.mean()),
        err_percent=float(100 * distances.mean() / diameter),
        err_dpc=float(100 * np.square(distances).mean() / divisor),
    )


def distances_to_truth(predicted: ArrayLike, truth: ArrayLike) -> FloatArray:
    """Distance (N,) of each (N, 3) predicted from its (N, 3) true position."""
    predicted, truth = np.asarray(predicted, np.float64), np.asarray(truth, np.float64)
    if predicted.shape != truth.shape or predicted.ndim != 2 or len(predicted) == 0:
        raise InputError(
            f"positions of shapes {predicted.shape} and {truth.shape} came; two of one shape "
            "(N, 3), N >= 1, are needed; leave out points whose truth is not known on both sides"
        )
    distances: FloatArray = np.linalg.norm(predicted - truth, axis=1)  # (N,)
    return distances


def accuracy(
    distances: FloatArray, diameter: float, tolerances: ArrayLike, *, strict: bool = False
) -> FloatArray:
    """Share of the (N,) distances within each of the (T,) tolerances times the diameter."""
    if not diameter > 0:
        raise InputError(
            f"a diameter of {diameter} came; a positive length is needed; "
            "check that the target's points are not all the same"
        )
    ordered = np.sort(distances)  # (N,)
    limits = np.asarray(tolerances, dtype=np.float64) * diameter  # (T,)
    counts = np.searchsorted(ordered, limits, side="left" if strict else "right")  # (T,)
    shares: FloatArray = counts / len(ordered)
    return shares


def flipped(
    predicted: ArrayLike,
    truth: ArrayLike,
    alias: ArrayLike,
    diameter: float,
    *,
    least: float = 0.05,
) -> NDArray[np.bool_]:
    """Which points (N,) were taken for their alias, e.g. for their mirror image.

    A point is flipped if its prediction is nearer to the alias than to the truth. Points whose
    truth and alias are closer than `least` of the diameter cannot be told apart and do not count.

    Parameters
    ----------
    predicted, truth, alias
        (N, 3) positions on the target.
    """
    to_truth = distances_to_truth(predicted, truth)  # (N,)
    to_alias = distances_to_truth(predicted, alias)  # (N,)
    return (to_alias < to_truth) & (distances_to_truth(truth, alias) > least * diameter)


def coverage(indices: ArrayLike, target_size: int) -> float:
    """Share of the target's points that are the partner of some point; -1 is no partner."""
    indices = np.asarray(indices)
    if target_size < 1:
        raise InputError(
            f"a target of {target_size} points came; at least 1 is needed; check the target"
        )
    return len(np.unique(indices[indices >= 0])) / target_size


def cycle_error(points: ArrayLike, forth: ArrayLike, back: ArrayLike, diameter: float) -> float:
    """Mean distance from a point to where the map and the map back lead it, as % of the diameter.

    It needs no truth: zero says that the two maps agree, not that they are right.

    Parameters
    ----------
    points
        (N, 3) source points.
    forth
        (N,) target point of each source point.
    back
        (M,) source point of each target point.
    diameter
        Largest distance among the source points.
    """
    points, forth, back = np.asarray(points, np.float64), np.asarray(forth), np.asarray(back)
    for name, indices, size in (("forth", forth, len(back)), ("back", back, len(points))):
        if len(indices) == 0 or indices.min() < 0 or indices.max() >= size:
            raise InputError(
                f"the map {name} leads outside 0 to {size - 1}, or holds nothing; a partner for "
                "every point is needed; match both ways with a threshold of 0"
            )
    if not diameter > 0:
        raise InputError(
            f"a diameter of {diameter} came; a positive length is needed; "
            "check that the source's points are not all the same"
        )
    return float(100 * distances_to_truth(points[back[forth]], points).mean() / diameter)


def reliability(promised: ArrayLike, right: ArrayLike) -> FloatArray:
    """Count what is needed for a calibration error; counts of several pairs may be added up.

    Parameters
    ----------
    promised
        (N,) probabilities that a match is right.
    right
        (N,) whether it is.

    Returns
    -------
    (3, 10) number of points in each bin of the promise, sum of their promises, number of right ones
    """
    promised, right = np.asarray(promised, np.float64), np.asarray(right, np.float64)
    if promised.shape != right.shape or promised.ndim != 1:
        raise InputError(
            f"probabilities of shape {promised.shape} and outcomes of shape {right.shape} came; "
            "two of one shape (N,) are needed; leave out points whose truth is not known"
        )
    if not ((promised >= 0) & (promised <= 1)).all():
        raise InputError("probabilities outside 0 to 1 came; check the confidence of the map")
    bins = np.minimum((RELIABILITY_BINS * promised).astype(int), RELIABILITY_BINS - 1)  # (N,)
    weights = (None, promised, right)
    return np.stack([np.bincount(bins, w, RELIABILITY_BINS) for w in weights]).astype(np.float64)


def calibration_error(counts: ArrayLike) -> float:
    """Mean gap between promised and observed share of right matches, weighted by points.

    Parameters
    ----------
    counts
        (3, 10) sums over all pairs of what `reliability` returned.
    """
    points, promised, right = np.asarray(counts, np.float64)  # (10,) each
    if not points.sum() > 0:
        raise InputError("no points came; at least one is needed; check the pairs")
    return float(np.abs(promised - right).sum() / points.sum())
