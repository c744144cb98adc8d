"""How unlike two descriptors are: each returns (N, M) for (N, T) and (M, T)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.spatial.distance import cdist

from ltenet.geometry.arrays import FloatArray

#: Bins that both images must fill, more or less, to be compared: the price of a small overlap.
_OVERLAP_PRICE = 3.0


def euclidean(first: FloatArray, second: FloatArray) -> FloatArray:
    """Euclidean distances."""
    distances: FloatArray = cdist(first, second)  # (N, M)
    return distances


def standardized(first: FloatArray, second: FloatArray) -> FloatArray:
    """Euclidean distances in units of each channel's spread over the second shape."""
    scale = np.maximum(second.std(axis=0), 1e-12)  # (T,)
    return euclidean(first / scale, second / scale)


def absolute(first: FloatArray, second: FloatArray) -> FloatArray:
    """Sum absolute differences."""
    distances: FloatArray = cdist(first, second, "cityblock")  # (N, M)
    return distances


def chi_squared(first: FloatArray, second: FloatArray) -> FloatArray:
    """``sum_t (a_t - b_t)^2 / (a_t + b_t) / 2``; empty cells count nothing.

    As ``sum (a + b) / 2 - 2 sum a b / (a + b)``, whose last term runs over cells that both fill.
    """
    totals = 0.5 * (first.sum(axis=1)[:, None] + second.sum(axis=1))  # (N, M)
    common = np.zeros_like(totals)  # (N, M)
    for cell in range(first.shape[1]):
        rows, columns = np.flatnonzero(first[:, cell]), np.flatnonzero(second[:, cell])
        if len(rows) and len(columns):
            a, b = first[rows, cell][:, None], second[columns, cell]  # (n, 1), (m,)
            common[np.ix_(rows, columns)] += a * b / (a + b)
    distances: FloatArray = np.maximum(totals - 2 * common, 0.0)  # (N, M)
    return distances


def image_correlation(first: FloatArray, second: FloatArray) -> FloatArray:
    """Johnson and Hebert's similarity of spin images, with the opposite sign.

    ``atanh(R)^2 - 3 / (n - 3)`` with R the correlation over the n bins that both images fill; a
    negative correlation counts as none.
    """
    ours, theirs = (first > 0).astype(np.float64), (second > 0).astype(np.float64)  # (N, T), (M, T)
    n = ours @ theirs.T  # (N, M)
    x, y = first @ theirs.T, ours @ second.T  # (N, M) sums over the common bins
    xx, yy, xy = first**2 @ theirs.T, ours @ (second**2).T, first @ second.T  # (N, M) each
    spread = np.maximum(n * xx - x**2, 0.0) * np.maximum(n * yy - y**2, 0.0)  # (N, M)
    correlation = (n * xy - x * y) / np.sqrt(np.maximum(spread, 1e-300))  # (N, M)
    correlation = np.where(spread > 1e-12, np.clip(correlation, 0.0, 1 - 1e-9), 0.0)
    price = np.where(n > 4, _OVERLAP_PRICE / np.maximum(n - 3, 1.0), _OVERLAP_PRICE)
    distances: FloatArray = price - np.arctanh(correlation) ** 2  # (N, M)
    return distances


DistanceKind = Literal["euclidean", "standardized", "absolute", "chi-squared", "correlation"]

#: Distances by name.
DISTANCES: dict[DistanceKind, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "euclidean": euclidean,
    "standardized": standardized,
    "absolute": absolute,
    "chi-squared": chi_squared,
    "correlation": image_correlation,
}
