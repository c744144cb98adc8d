"""Descriptors of the surface around a point: variation at many scales, geodesic distances."""

from __future__ import annotations

import numpy as np

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.geometry.surface_graph import distances_along, surface_graph

#: Smallest and largest neighbourhood of the surface variation, and how many in all.
_SMALLEST, _LARGEST, _SCALES = 15, 200, 20
#: Bins of a geodesic histogram.
_BINS = 48


def surface_variation(points: FloatArray) -> FloatArray:
    """(N, 20) least share of variance among the nearest 15 to 200 points [Pauly et al. 2003].

    ``l0 / (l0 + l1 + l2)`` of the covariance's eigenvalues: 0 in a plane, 1/3 where the points
    vary alike in all directions.
    """
    most = min(_LARGEST, len(points))
    sizes = np.unique(np.linspace(min(_SMALLEST, most), most, _SCALES).astype(int))  # (S,)
    near = nearest_neighbors(points, points, most).indices  # (N, K)
    offsets = points[near] - points[:, None]  # (N, K, 3)
    sums = np.cumsum(offsets, axis=1)[:, sizes - 1]  # (N, S, 3)
    products = np.cumsum(offsets[..., :, None] * offsets[..., None, :], axis=1)[:, sizes - 1]
    mean = sums / sizes[:, None]  # (N, S, 3)
    spread = products / sizes[:, None, None] - mean[..., :, None] * mean[..., None, :]
    values = np.maximum(np.linalg.eigvalsh(spread), 0.0)  # (N, S, 3)
    variation: FloatArray = values[..., 0] / np.maximum(values.sum(axis=2), 1e-300)  # (N, S)
    return variation


def all_geodesics(points: FloatArray, faces: IntArray | None) -> FloatArray:
    """(N, N) lengths of shortest paths along the surface graph, symmetric.

    Parts that no path joins are as far apart as the largest distance within a part.
    """
    graph = surface_graph(points, faces)
    lengths = distances_along(graph, points, np.arange(len(points)))  # (N, N)
    finite = np.isfinite(lengths)
    lengths[~finite] = lengths[finite].max()
    distances: FloatArray = np.minimum(lengths, lengths.T)  # (N, N)
    return distances


def geodesic_histogram(points: FloatArray, faces: IntArray | None) -> FloatArray:
    """(N, 48) density of the geodesic distances to all points [Ben Hamza and Krim 2006].

    Distances are shares of the diameter; each counts in its two nearest bins in proportion.
    """
    distances = all_geodesics(points, faces)  # (N, N)
    place = distances / max(float(distances.max()), 1e-300) * (_BINS - 1)  # (N, N)
    low = np.minimum(place.astype(np.int64), _BINS - 2)  # (N, N)
    share = place - low  # (N, N)
    count = len(points)
    rows = np.arange(count)[:, None] * _BINS  # (N, 1)
    lower, upper = (rows + low).reshape(-1), (rows + low + 1).reshape(-1)
    size = count * _BINS
    counts = np.bincount(lower, (1 - share).reshape(-1), size)
    counts = counts + np.bincount(upper, share.reshape(-1), size)
    histogram: FloatArray = counts.reshape(count, _BINS) / count  # (N, 48)
    return histogram
