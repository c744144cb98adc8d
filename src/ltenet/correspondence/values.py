"""Values carried along a soft map: floats are averaged, labels voted on, colours averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltenet.correspondence.soft_rows import SoftRows
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray

#: Shade of points without a partner.
_MISSING_COLOR = 128


def pulled(
    values: NDArray[Any], rows: SoftRows, matched: NDArray[np.bool_], *, missing: float | None
) -> NDArray[Any]:
    """(N, ...) values at the rows of a soft map, of (M, ...) at its columns.

    (M, 3) and (M, 4) uint8 are colours. They are averaged with the positive weights alone, as
    negative ones overshoot at edges. Integers and booleans are voted on, floats averaged. Rows that
    are not `matched` (N,) get `missing`: by default grey, -1, False or NaN.
    """
    if values.dtype == np.uint8 and values.ndim == 2 and values.shape[1] in (3, 4):
        positive = np.maximum(rows.weights, 0)  # (N, K)
        positive = positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-12)
        mixed = _averaged(values, rows._replace(weights=positive))  # (N, 3 or 4)
        colors = np.rint(mixed).astype(np.uint8)
        colors[~matched, :3] = _MISSING_COLOR if missing is None else int(missing)
        colors[~matched, 3:] = 255
        return colors
    if np.issubdtype(values.dtype, np.integer) or values.dtype == np.bool_:
        flat = values.reshape(len(values), -1)  # (M, C)
        result = np.stack([_voted(column, rows) for column in flat.T], axis=1)  # (N, C)
        if values.dtype != np.bool_:
            result = result.astype(np.int64)  # unsigned integers cannot hold -1
            missing = -1 if missing is None else missing
        result[~matched] = missing or 0
        return result.reshape(len(matched), *values.shape[1:])
    if not np.issubdtype(values.dtype, np.floating):
        raise InputError(
            f"correspondence: got values of type {values.dtype}, expected numbers; "
            "try numbering the classes"
        )
    mixed = _averaged(values, rows)
    mixed[~matched] = np.nan if missing is None else missing
    return mixed


def _averaged(values: NDArray[Any], rows: SoftRows) -> FloatArray:
    """(N, ...) weighted means of (M, ...) values."""
    mixed = np.zeros((len(rows.columns), *values.shape[1:]))
    shape = (-1, *[1] * (values.ndim - 1))
    for place in range(rows.columns.shape[1]):  # (N, K, ...) at once can be large
        mixed += rows.weights[:, place].reshape(shape) * values[rows.columns[:, place]]
    return mixed


def _voted(values: NDArray[Any], rows: SoftRows) -> NDArray[Any]:
    """(N,) the one of (M,) values with the largest total weight in each row; ties go to the first.

    Negative weights do not vote.
    """
    candidates = values[rows.columns]  # (N, K)
    support = np.maximum(rows.weights, 0)  # (N, K)
    votes = np.zeros_like(support)
    for place in range(support.shape[1]):
        votes += (candidates == candidates[:, place, None]) * support[:, place, None]
    winner = votes.argmax(axis=1)  # (N,)
    chosen: NDArray[Any] = candidates[np.arange(len(winner)), winner]
    return chosen
