"""Sparse rows of weights, a few columns each: sorted, multiplied, transposed.

A soft map from N points to M is an (N, M) matrix of weights with at most K entries in a row. It is
stored as (N, K) columns and weights; no function builds the full matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray


class SoftRows(NamedTuple):
    """Rows of a few columns.

    Attributes
    ----------
    columns
        (N, K) int64; 0 where a row has fewer than K entries.
    weights
        (N, K) float64; rows sum to 1, or to 0 if they are empty.
    """

    columns: IntArray
    weights: FloatArray

    @property
    def empty(self) -> NDArray[np.bool_]:
        """(N, 1) True for rows without weight."""
        empty: NDArray[np.bool_] = self.weights.sum(axis=1, keepdims=True) == 0
        return empty


def strongest(
    rows: IntArray, columns: IntArray, values: FloatArray, *, count: int, k: int
) -> SoftRows:
    """Sum the entries of each row and column, and keep the `k` largest of each row, in order.

    Parameters
    ----------
    rows, columns, values
        (E,) entries; only positive values count.
    count
        Number of rows.
    k
        Entries kept of each row, scaled to sum to 1.
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
    # Ties go to the smaller column, independent of the order of the entries.
    order = np.lexsort((columns, -values, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)  # within the row
    kept = rank < k
    result = SoftRows(np.zeros((count, k), np.int64), np.zeros((count, k)))
    result.columns[rows[kept], rank[kept]] = columns[kept]
    result.weights[rows[kept], rank[kept]] = values[kept]
    total = result.weights.sum(axis=1, keepdims=True)  # (N, 1)
    np.divide(result.weights, total, out=result.weights, where=total > 0)
    return result


def product(first: SoftRows, second: SoftRows, *, k: int) -> SoftRows:
    """Product of (N, A) rows onto M points and (M, B) rows onto P: (N, k) rows onto P.

    Negative weights, which locally linear ones may be, are left out.
    """
    through = second.columns[first.columns].reshape(len(first.columns), -1)  # (N, A B)
    weights = np.maximum(first.weights, 0)[:, :, None]  # (N, A, 1)
    values = weights * np.maximum(second.weights, 0)[first.columns]  # (N, A, B)
    rows = np.repeat(np.arange(len(through)), through.shape[1])  # (N A B,)
    return strongest(rows, through.reshape(-1), values.reshape(-1), count=len(through), k=k)


def transposed(
    soft: SoftRows, trust: FloatArray, *, count: int, k: int, places: FloatArray | None = None
) -> SoftRows:
    """Rows (count, k) of the transposed weights, each times the trust of its row.

    Parameters
    ----------
    soft
        N rows; negative weights are left out.
    trust
        (N,) factors of the rows; 0 leaves one out.
    count
        Number of columns: the rows of the result.
    k
        Entries of a row of the result.
    places
        (N, 3) points of the rows. They break ties: the point nearest to the mean of its rivals
        comes first. Otherwise the lowest index does.
    """
    columns = soft.columns.reshape(-1)  # (N K,)
    rows = np.repeat(np.arange(len(trust)), soft.columns.shape[1])  # (N K,)
    values = (np.maximum(soft.weights, 0) * trust[:, None]).reshape(-1)  # (N K,)
    if places is not None:
        total = np.maximum(np.bincount(columns, values, count), 1e-300)  # (M,)
        sums = [np.bincount(columns, values * axis[rows], count) for axis in places.T]
        means = np.stack(sums, axis=1) / total[:, None]  # (M, 3)
        away = np.linalg.norm(places[rows] - means[columns], axis=1)  # (N K,)
        # Small against any difference in trust that matters.
        values = values * (1 - 1e-3 * away / max(float(away.max(initial=0)), 1e-300))
    return strongest(columns, rows, values, count=count, k=k)


def inverse_distance_rows(
    points: FloatArray, queries: FloatArray, *, k: int, reach: float
) -> SoftRows:
    """Rows (Q, k) of the (N, 3) points nearest to (Q, 3) queries, weighted by inverse distance.

    Points farther than `reach` get no weight.
    """
    from ltenet.geometry.neighbors import nearest_neighbors  # imports scipy, which most maps spare

    distances, columns = nearest_neighbors(points, queries, k)  # (Q, n), n <= k
    result = SoftRows(np.zeros((len(queries), k), np.int64), np.zeros((len(queries), k)))
    closeness = 1 / np.maximum(distances, 1e-9 * reach)  # (Q, n)
    closeness[distances > reach] = 0
    total = np.maximum(closeness.sum(axis=1, keepdims=True), 1e-300)  # (Q, 1)
    result.columns[:, : columns.shape[1]] = columns
    result.weights[:, : columns.shape[1]] = closeness / total
    return result
