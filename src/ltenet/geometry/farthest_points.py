"""Farthest-point sampling [Eldar et al. 1997]: a few points that cover a shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError


def farthest_point_sample(
    points: NDArray[np.floating], count: int, *, start: int = 0
) -> NDArray[np.int64]:
    """Choose points one by one, each the farthest from those already chosen.

    Parameters
    ----------
    points
        (N, 3) coordinates.
    count
        Number of points to choose, at most N.
    start
        Index of the first one.

    Returns
    -------
    ndarray
        (count,) int64 distinct indices, coarse to fine: any prefix is itself such a sample.
    """
    if not 1 <= count <= len(points):
        raise InputError(
            f"got a request for {count} farthest points, expected 1 to {len(points)} as there are "
            f"{len(points)} points; try a smaller number or a shape with more points"
        )
    if not 0 <= start < len(points):
        raise InputError(
            f"got {start} as the first of the farthest points, expected an index from 0 to "
            f"{len(points) - 1}; try 0"
        )
    # Coordinates as rows, in memory that is used again: each step is few passes over little of it.
    rows = np.ascontiguousarray(points.T, dtype=np.float64)  # (3, N)
    apart, distance = np.empty_like(rows), np.empty(len(points))  # (3, N), (N,)
    chosen = np.empty(count, dtype=np.int64)
    nearest = np.full(len(points), np.inf)  # (N,) squared distance to the chosen ones
    current = start
    for step in range(count):
        chosen[step] = current
        np.subtract(rows, rows[:, current, None], out=apart)
        np.square(apart, out=apart)
        np.add(apart[0], apart[1], out=distance)
        np.add(distance, apart[2], out=distance)
        np.minimum(nearest, distance, out=nearest)
        # Below every distance: duplicates of a chosen point come before the point itself again.
        nearest[current] = -1.0
        current = int(nearest.argmax())
    return chosen
