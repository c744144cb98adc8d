"""Arithmetic of soft maps: rows of a few columns with weights, turned over, chained and applied.

A soft map is a pair (N, K) of columns and weights; its row i says which things point i is a mixture
of. Nothing here holds an (N, M) matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError
from ltenet.shape import FloatArray, IntArray

#: Shade of points without a partner.
_MISSING_COLOR = 128


class SoftRows(NamedTuple):
    """Rows of a few columns, strongest first.

    Attributes
    ----------
    columns
        (N, K) int64; 0 where a row has fewer than K.
    weights
        (N, K) float64; rows sum to 1, or to 0 where there is nothing in them.
    """

    columns: IntArray
    weights: FloatArray


def strongest(
    rows: IntArray, columns: IntArray, values: FloatArray, *, count: int, k: int
) -> SoftRows:
    """Gather entries by row, add up those of the same place, keep the `k` largest of each row.

    Parameters
    ----------
    rows, columns, values
        (E,) entries; those that are not positive are left out.
    count
        Number of rows.
    k
        Entries kept of each row; the others are left out and the rest is scaled to sum 1.
    """
    kept = values > 0
    rows, columns, values = rows[kept], columns[kept], values[kept]
    order = np.lexsort((columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    starts = np.flatnonzero(new)
    rows, columns = rows[starts], columns[starts]
    values = np.add.reduceat(values, starts) if len(starts) else values
    # Of equal values the one with the smaller column comes first, whatever the order of entries.
    order = np.lexsort((columns, -values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)  # rank within the row
    kept = place < k
    result = SoftRows(np.zeros((count, k), np.int64), np.zeros((count, k)))
    result.columns[rows[kept], place[kept]] = columns[kept]
    result.weights[rows[kept], place[kept]] = values[kept]
    total = result.weights.sum(axis=1, keepdims=True)  # (N, 1)
    np.divide(result.weights, total, out=result.weights, where=total > 0)
    return result


def chained(
    first: tuple[IntArray, FloatArray], second: tuple[IntArray, FloatArray], *, k: int
) -> SoftRows:
    """Follow the first map (N, A) -> M, then the second (M, B) -> P: a map (N, k) -> P.

    Negative weights (locally linear ones may have some) are left out.
    """
    columns, weights = first
    onward, shares = second
    through = onward[columns].reshape(len(columns), -1)  # (N, A B)
    values = np.maximum(weights, 0)[:, :, None] * np.maximum(shares, 0)[columns]  # (N, A, B)
    rows = np.repeat(np.arange(len(columns)), through.shape[1])  # (N A B,)
    return strongest(rows, through.reshape(-1), values.reshape(-1), count=len(columns), k=k)


def blended(values: NDArray[Any], columns: IntArray, weights: FloatArray) -> FloatArray:
    """(N, ...) mixtures of (M, ...) values."""
    mixed = np.zeros((len(columns), *values.shape[1:]))
    shape = (-1, *[1] * (values.ndim - 1))
    for place in range(columns.shape[1]):  # (N, K, ...) at once would be large for many columns
        mixed += weights[:, place].reshape(shape) * values[columns[:, place]]
    return mixed


def voted(values: NDArray[Any], columns: IntArray, weights: FloatArray) -> NDArray[Any]:
    """(N,) of the (M,) values, the one with the most weight in each row.

    Of equals wins the one that stands first in the row.
    """
    candidates = values[columns]  # (N, K)
    support = np.maximum(weights, 0)  # (N, K)
    votes = np.zeros_like(support)
    for place in range(columns.shape[1]):
        votes += (candidates == candidates[:, place, None]) * support[:, place, None]
    winner = votes.argmax(axis=1)  # (N,)
    chosen: NDArray[Any] = candidates[np.arange(len(columns)), winner]
    return chosen


def carried(
    values: NDArray[Any],
    columns: IntArray,
    weights: FloatArray,
    matched: NDArray[np.bool_],
    *,
    missing: float | None = None,
) -> NDArray[Any]:
    """(N, ...) of the (M, ...) values, mixed or voted on as their type asks.

    Colours, (M, 3) or (M, 4) uint8, are mixed with the positive weights alone, or edges between
    them would ring; whole numbers and truth values are voted on; floats are mixed. Rows that are
    not matched get `missing`: by default grey, -1, False or NaN.
    """
    if values.dtype == np.uint8 and values.ndim == 2 and values.shape[1] in (3, 4):
        positive = np.maximum(weights, 0)  # (N, K)
        positive = positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-12)
        colors = np.rint(blended(values, columns, positive)).astype(np.uint8)  # (N, 3 or 4)
        colors[~matched, :3] = _MISSING_COLOR if missing is None else int(missing)
        colors[~matched, 3:] = 255
        return colors
    if np.issubdtype(values.dtype, np.integer) or values.dtype == np.bool_:
        flat = values.reshape(len(values), -1)  # (M, C)
        result = np.stack([voted(column, columns, weights) for column in flat.T], axis=1)
        if values.dtype != np.bool_:
            result = result.astype(np.int64)  # (N, C), unsigned ones could not hold -1
            missing = -1 if missing is None else missing
        result[~matched] = missing or 0
        return result.reshape(len(columns), *values.shape[1:])
    if not np.issubdtype(values.dtype, np.floating):
        raise InputError(
            f"correspondence: values of type {values.dtype} came; numbers are needed; "
            "number your classes first"
        )
    mixed = blended(values, columns, weights)
    mixed[~matched] = np.nan if missing is None else missing
    return mixed


def turned_over(
    columns: IntArray,
    weights: FloatArray,
    trust: FloatArray,
    *,
    count: int,
    k: int,
    places: FloatArray | None = None,
) -> SoftRows:
    """Rows (count, k) of the map in the other direction, by weight times trust.

    Parameters
    ----------
    columns, weights
        (N, K) the map; negative weights are left out.
    trust
        (N,) what a row counts; 0 leaves it out.
    count
        Number of columns, so of rows of the result.
    k
        Entries of a row of the result.
    places
        (N, 3) where the rows are: then of equally strong ones the nearest to their middle is
        first, instead of the one with the lowest number.
    """
    rows = np.repeat(np.arange(len(columns)), columns.shape[1])  # (N K,)
    values = (np.maximum(weights, 0) * trust[:, None]).reshape(-1)  # (N K,)
    flat = columns.reshape(-1)  # (N K,)
    if places is not None:
        total = np.maximum(np.bincount(flat, values, count), 1e-300)  # (M,)
        sums = [np.bincount(flat, values * axis[rows], count) for axis in places.T]
        middle = np.stack(sums, axis=1) / total[:, None]  # (M, 3)
        away = np.linalg.norm(places[rows] - middle[flat], axis=1)  # (N K,)
        # Less than any difference in trust that means something.
        values = values * (1 - 1e-3 * away / max(float(away.max(initial=0)), 1e-300))
    return strongest(flat, rows, values, count=count, k=k)


def nearest_rows(places: FloatArray, wanted: FloatArray, *, k: int, limit: float) -> SoftRows:
    """Mixtures of the `k` nearest of (N, 3) places for each of the (M, 3) wanted ones.

    Weights fall with the distance; rows without any place within `limit` are empty.
    """
    from scipy.spatial import KDTree  # here, because most maps never ask for it

    distances, columns = KDTree(places).query(wanted, k=min(k, len(places)))
    distances, columns = (part.reshape(len(wanted), -1) for part in (distances, columns))
    result = SoftRows(np.zeros((len(wanted), k), np.int64), np.zeros((len(wanted), k)))
    closeness = 1 / np.maximum(distances, 1e-9 * limit)  # (M, k)
    closeness[distances > limit] = 0
    total = np.maximum(closeness.sum(axis=1, keepdims=True), 1e-300)  # (M, 1)
    result.columns[:, : columns.shape[1]] = columns
    result.weights[:, : columns.shape[1]] = closeness / total
    return result
