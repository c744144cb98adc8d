"""`evaluate`: how good one map is, where its truth is known."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ltenet.correspondence import Correspondence
from ltenet.data.diameter import largest_distance
from ltenet.errors import InputError
from ltenet.maps import read_map
from ltenet.matching import ShapeLike, as_shape
from ltenet.metrics import TOLERANCES, MapError, coverage, map_error
from ltenet.shape import FloatArray, Shape

Truth: TypeAlias = Correspondence | ArrayLike | str | os.PathLike[str]


class Evaluation(NamedTuple):
    """The figures of one map.

    Attributes
    ----------
    point
        Errors of the chosen target points.
    continuous
        Errors of the soft partners, which may lie between points; as `point` without such.
    known
        Points whose truth is known: the others do not count.
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

    def accuracy(self, tolerance: float = 0.01) -> float:
        """Share of the known points whose partner is within `tolerance` of the diameter."""
        place = int(np.abs(TOLERANCES - tolerance).argmin())
        if abs(TOLERANCES[place] - tolerance) > 1e-9:
            raise InputError(
                f"the tolerance {tolerance} came; a multiple of 0.002 up to 0.2, a share of the "
                "diameter, is needed; try 0.01 or 0.05"
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
        What is known: another `Correspondence`, a map file, (N,) indices of the true target points,
        -1 where the truth is not known, or (N, 3) true positions on the target, not a number where
        it is not known.
    target
        The target as `Shape`, path or (M, 3) points; not needed if the map still has it.
    strict
        Count distances below a tolerance only, as the paper's equation does, not those equal.

    Returns
    -------
    Evaluation
        Accuracy at all tolerances and mean errors of the chosen points and of the soft partners.
    """
    shape = correspondence.target if target is None else as_shape(target, "target")
    if shape is None:
        raise InputError(
            "a map without its target came; distances are measured on the target, so its points "
            "are needed; give target="
        )
    correspondence.check_belongs(target=shape)
    positions = _true_positions(truth, len(correspondence), shape)  # (N, 3)
    known = np.asarray(np.isfinite(positions).all(axis=1))  # (N,)
    scored = known & correspondence.matched  # (N,)
    if not scored.any():
        raise InputError(
            f"{known.sum()} points with a known truth came, none of them with a partner; at least "
            "one is needed; match with a lower threshold, or check the truth"
        )
    diameter = largest_distance(shape.points)
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
    """(N, 3) true positions on the target, not a number where they are not known."""
    if isinstance(truth, Correspondence):
        return _at(truth.indices, count, target)
    if isinstance(truth, (str, os.PathLike)):
        return _at(read_map(truth, size=len(target), count=count), count, target)
    values = np.asarray(truth)
    if values.ndim == 1 and np.issubdtype(values.dtype, np.integer):
        return _at(values, count, target)
    if values.shape != (count, 3):
        raise InputError(
            f"a truth of shape {values.shape} and type {values.dtype} came; ({count},) whole "
            f"numbers or ({count}, 3) positions are needed; give one entry per source point"
        )
    return values.astype(np.float64)


def _at(indices: ArrayLike, count: int, target: Shape) -> FloatArray:
    indices = np.asarray(indices)  # (N,)
    if len(indices) != count or indices.min() < -1 or indices.max() >= len(target):
        raise InputError(
            f"a truth of {len(indices)} entries from {indices.min()} to {indices.max()} came; "
            f"{count} entries from 0 to {len(target) - 1}, or -1, are needed; "
            "check that truth and shapes belong together, and count from 0"
        )
    positions: FloatArray = target.points[indices].astype(np.float64)  # (N, 3)
    positions[indices < 0] = np.nan
    return positions
