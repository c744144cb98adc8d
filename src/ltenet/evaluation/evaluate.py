"""`evaluate`: how accurate one map is, given the truth."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.io.maps import read_map
from ltenet.matching.matcher import ShapeLike, as_shape
from ltenet.metrics import TOLERANCES, MapError, coverage, map_error
from ltenet.shape import Shape

Truth: TypeAlias = Correspondence | ArrayLike | str | os.PathLike[str]


class Evaluation(NamedTuple):
    """The figures of one map.

    Attributes
    ----------
    point
        Errors of the chosen target points.
    continuous
        Errors of the soft partners, which may lie between points; equal to `point` without them.
    known
        Number of points whose truth is known; the others do not count.
    matched
        Share of these that have a partner. Points without one count as wrong in every accuracy
        and are left out of the mean errors.
    coverage
        Share of the target's points that are the partner of some point.
    diameter
        Largest distance among the target's points, ``dmax``.
    """

    point: MapError
    continuous: MapError
    known: int
    matched: float
    coverage: float
    diameter: float

    def __repr__(self) -> str:
        return (
            f"Evaluation({self.known} points: {self.accuracy(0.01):.1%} within 1 %, "
            f"{self.accuracy(0.05):.1%} within 5 %, mean error {self.point.err_percent:.2f} % of "
            f"the diameter, {self.matched:.1%} matched, coverage {self.coverage:.1%})"
        )

    def accuracy(self, tolerance: float = 0.01) -> float:
        """Share of the known points whose partner is within `tolerance` of the diameter."""
        place = int(np.abs(TOLERANCES - tolerance).argmin())
        if abs(TOLERANCES[place] - tolerance) > 1e-9:
            raise InputError(
                f"got the tolerance {tolerance}, expected a multiple of 0.002 up to 0.2, a share "
                "of the diameter; try 0.01 or 0.05"
            )
        return float(self.point.accuracy[place])

    def as_dict(self) -> dict[str, Any]:
        """Plain values, named and measured as in the results of `ltenet bench`."""
        figures: dict[str, Any] = {
            "known": self.known,
            "matched": 100 * self.matched,
            "coverage": 100 * self.coverage,
            "diameter": self.diameter,
        }
        for name, error in (("point", self.point), ("continuous", self.continuous)):
            figures[name] = {
                "acc": {
                    f"{tolerance:g}": 100 * float(share)
                    for tolerance, share in zip(TOLERANCES.round(3), error.accuracy, strict=True)
                },
                "err": error.err,
                "err_percent": error.err_percent,
                "err_dpc": error.err_dpc,
                "auc": 100 * error.auc,
            }
        return figures


def evaluate(
    correspondence: Correspondence,
    truth: Truth,
    *,
    target: ShapeLike | None = None,
    strict: bool = False,
) -> Evaluation:
    """Compare a map with the truth.

    Parameters
    ----------
    correspondence
        From source to target.
    truth
        Another `Correspondence`, a map file, (N,) indices of the true target points, -1 where the
        truth is unknown, or (N, 3) true positions on the target, NaN where it is unknown.
    target
        The target as `Shape`, path or (M, 3) points; not needed if the map still has it.
    strict
        Count only distances below a tolerance, as the paper's equation does, not equal ones.

    Returns
    -------
    Evaluation
        Accuracy at all tolerances and mean errors of the chosen points and of the soft partners.
    """
    shape = correspondence.target if target is None else as_shape(target, "target")
    if shape is None:
        raise InputError(
            "got a map without its target, expected its points, on which distances are measured; "
            "try target="
        )
    correspondence.check_belongs(target=shape)
    positions = _true_positions(truth, len(correspondence), shape)  # (N, 3)
    known = np.asarray(np.isfinite(positions).all(axis=1))  # (N,)
    scored = known & correspondence.matched  # (N,)
    if not scored.any():
        raise InputError(
            f"got {known.sum()} points with a known truth, none of them matched, expected at least "
            "one; try a lower threshold, or check the truth"
        )
    diameter = shape.diameter
    share = float(scored.sum() / known.sum())

    def errors(places: FloatArray) -> MapError:
        error = map_error(places[scored], positions[scored], diameter, strict=strict)
        return error._replace(accuracy=error.accuracy * share)

    chosen = shape.points[correspondence.indices]  # (N, 3); those of -1 are not scored
    return Evaluation(
        point=errors(chosen),
        continuous=errors(correspondence.positions(shape)),
        known=int(known.sum()),
        matched=share,
        coverage=coverage(correspondence.indices, len(shape)),
        diameter=diameter,
    )


def _true_positions(truth: Truth, count: int, target: Shape) -> FloatArray:
    """(N, 3) true positions on the target, NaN where they are unknown."""
    if isinstance(truth, Correspondence):
        return _at(truth.indices, count, target)
    if isinstance(truth, (str, os.PathLike)):
        return _at(read_map(truth, size=len(target), count=count), count, target)
    values = np.asarray(truth)
    if values.ndim == 1 and np.issubdtype(values.dtype, np.integer):
        return _at(values, count, target)
    if values.shape != (count, 3):
        raise InputError(
            f"got a truth of shape {values.shape} and type {values.dtype}, expected ({count},) "
            f"whole numbers or ({count}, 3) positions; try one entry per source point"
        )
    return values.astype(np.float64)


def _at(indices: ArrayLike, count: int, target: Shape) -> FloatArray:
    indices = np.asarray(indices)  # (N,)
    if len(indices) != count or indices.min() < -1 or indices.max() >= len(target):
        raise InputError(
            f"got a truth of {len(indices)} entries from {indices.min()} to {indices.max()}, "
            f"expected {count} entries from 0 to {len(target) - 1}, or -1; "
            "try counting from 0, and check that truth and shapes belong together"
        )
    positions: FloatArray = target.points[indices].astype(np.float64)  # (N, 3)
    positions[indices < 0] = np.nan
    return positions
