"""Metrics of a map: accuracy curve, mean error, flips, coverage, cycle and calibration error.

Errors are distances between predicted and true positions on the target, relative to its diameter:
the largest distance between its sampled points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray

#: Bins of equal width that compare predicted and observed shares.
RELIABILITY_BINS = 10

#: Tolerances of the accuracy curve, as shares of the diameter: 0.2 % to 20 %.
TOLERANCES: FloatArray = np.arange(1, 101, dtype=np.float64) * 0.002


class MapError(NamedTuple):
    """The errors of one pair.

    Attributes
    ----------
    accuracy
        (100,) share of points within each of `TOLERANCES`.
    err
        Mean Euclidean distance, in the unit of the shapes: the paper's equation.
    err_percent
        The same as a percentage of the diameter.
    err_dpc
        100 times the mean *squared* distance: the `err` of DPC and its successors, for some
        benchmarks divided further, see `ShapeSet.error_divisor`.
    """

    accuracy: FloatArray
    err: float
    err_percent: float
    err_dpc: float

    @property
    def auc(self) -> float:
        """Area under the accuracy curve: its mean over the tolerances, at most 1."""
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
        Count distances below the tolerance, as the paper's equation does, not those equal to it.
    divisor
        Extra divisor of `err_dpc`, see `ShapeSet.error_divisor`.
    """
    distances = distances_to_truth(predicted, truth)  # (N,)
    return MapError(
        accuracy=accuracy(distances, diameter, TOLERANCES, strict=strict),
        err=float(distances.mean()),
        err_percent=float(100 * distances.mean() / diameter),
        err_dpc=float(100 * np.square(distances).mean() / divisor),
    )


def distances_to_truth(predicted: ArrayLike, truth: ArrayLike) -> FloatArray:
    """(N,) distances between (N, 3) predicted and (N, 3) true positions."""
    predicted, truth = np.asarray(predicted, np.float64), np.asarray(truth, np.float64)
    if predicted.shape != truth.shape or predicted.ndim != 2 or len(predicted) == 0:
        raise InputError(
            f"got positions of shapes {predicted.shape} and {truth.shape}, expected two of the "
            "same shape (N, 3) with N >= 1; try leaving out points without a known truth on both "
            "sides"
        )
    distances: FloatArray = np.linalg.norm(predicted - truth, axis=1)  # (N,)
    return distances


def accuracy(
    distances: FloatArray, diameter: float, tolerances: ArrayLike, *, strict: bool = False
) -> FloatArray:
    """(T,) shares of (N,) distances within each of (T,) tolerances times the diameter."""
    if not diameter > 0:
        raise InputError(
            f"got a diameter of {diameter}, expected a positive length; try a target whose points "
            "are not all the same"
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
    """(N,) True for points confused with their alias, such as their mirror image.

    A point is flipped if its prediction is nearer to the alias than to the truth. Points whose
    truth and alias are closer than `least` of the diameter are ambiguous and never flipped.

    Parameters
    ----------
    predicted, truth, alias
        (N, 3) positions on the target.
    """
    to_truth = distances_to_truth(predicted, truth)  # (N,)
    to_alias = distances_to_truth(predicted, alias)  # (N,)
    return (to_alias < to_truth) & (distances_to_truth(truth, alias) > least * diameter)


def coverage(indices: ArrayLike, target_size: int) -> float:
    """Share of the target points that are partner of a source point; -1 is no partner."""
    indices = np.asarray(indices)
    if target_size < 1:
        raise InputError(
            f"got a target of {target_size} points, expected at least 1; try another target"
        )
    return len(np.unique(indices[indices >= 0])) / target_size


def cycle_error(points: ArrayLike, forth: ArrayLike, back: ArrayLike, diameter: float) -> float:
    """Mean distance between a point and its image under both maps, in % of the diameter.

    Needs no truth: zero means that the two maps agree, not that they are right.

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
                f"got a map {name} that leads outside 0 to {size - 1} or is empty, expected a "
                "partner for every point; try matching both ways with a threshold of 0"
            )
    if not diameter > 0:
        raise InputError(
            f"got a diameter of {diameter}, expected a positive length; try a source whose points "
            "are not all the same"
        )
    return float(100 * distances_to_truth(points[back[forth]], points).mean() / diameter)


def reliability(promised: ArrayLike, right: ArrayLike) -> FloatArray:
    """Count what `calibration_error` needs; counts add up over pairs.

    Parameters
    ----------
    promised
        (N,) predicted probabilities that a match is right.
    right
        (N,) True where it is.

    Returns
    -------
    (3, 10) for each bin: number of points, sum of their probabilities, number of right matches
    """
    promised, right = np.asarray(promised, np.float64), np.asarray(right, np.float64)
    if promised.shape != right.shape or promised.ndim != 1:
        raise InputError(
            f"got probabilities of shape {promised.shape} and outcomes of shape {right.shape}, "
            "expected the same shape (N,); try leaving out points without a known truth"
        )
    if not ((promised >= 0) & (promised <= 1)).all():
        raise InputError(
            "got probabilities outside 0 to 1, expected the scores of a map; try clipping them"
        )
    bins = np.minimum((RELIABILITY_BINS * promised).astype(int), RELIABILITY_BINS - 1)  # (N,)
    weights = (None, promised, right)
    return np.stack([np.bincount(bins, w, RELIABILITY_BINS) for w in weights]).astype(np.float64)


def calibration_error(counts: ArrayLike) -> float:
    """Compute the expected calibration error [Naeini et al. 2015], weighted by points.

    Parameters
    ----------
    counts
        (3, 10) sum of `reliability` over all pairs.
    """
    points, promised, right = np.asarray(counts, np.float64)  # (10,) each
    if not points.sum() > 0:
        raise InputError("got no points, expected at least one; try other pairs")
    return float(np.abs(promised - right).sum() / points.sum())
