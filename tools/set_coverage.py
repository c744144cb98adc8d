"""Whether one set of shapes covers another, by the quantile functions of their measures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ltenet.data.set_statistics import wasserstein_distances
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray


class Coverage(NamedTuple):
    """How near the shapes of one set come to those of another, as Wasserstein distances.

    Attributes
    ----------
    nearest
        Median over the shapes of the first set of the distance to the nearest of the second.
    farthest
        The largest of these distances.
    own
        The same median to the nearest other shape of the first set itself, or None if it has one
        shape only. Where `nearest` is not larger, the second set covers the first as well as
        the first covers itself.
    """

    nearest: float
    farthest: float
    own: float | None


def coverage(first: Sequence[FloatArray], second: Sequence[FloatArray]) -> Coverage:
    """How well the second set covers the first, given the quantile functions of their shapes."""
    if not first or not second:
        raise InputError(
            f"got sets of {len(first)} and {len(second)} shapes, expected at least one each; "
            "try a measure that both have: clouds have no geodesics"
        )
    nearest = wasserstein_distances(first, second).min(axis=1)  # (N,)
    own = None
    if len(first) > 1:
        among = wasserstein_distances(first, first)  # (N, N)
        np.fill_diagonal(among, np.inf)
        own = float(np.median(among.min(axis=1)))
    return Coverage(float(np.median(nearest)), float(nearest.max()), own)
