"""Fast point feature histograms [Rusu et al. 2009]: angles between the normals of neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.geometry.normals import unit_vectors

#: Bins of each of the three angles.
_BINS = 11
#: Radius of a neighbourhood in mean spacings, and most neighbours in it.
_RADIUS, _MOST = 5.0, 64


def fast_point_feature_histogram(points: FloatArray, normals: FloatArray) -> FloatArray:
    """(N, 33) own histogram of three angles plus those of the neighbours over their distance.

    Parameters
    ----------
    points, normals
        (N, 3) each.
    """
    distances, near = nearest_neighbors(points, points, _MOST)  # (N, K) each
    radius = _RADIUS * float(distances[:, min(1, distances.shape[1] - 1)].mean())
    inside = (distances <= radius) & (distances > 0)  # (N, K)
    inside[:, 1 : min(4, distances.shape[1])] |= distances[:, 1:4] > 0  # isolated points see three
    own = _simple_histogram(points, normals, near, inside)  # (N, 33)
    weights = np.where(inside, 1.0 / np.maximum(distances, 1e-300), 0.0)  # (N, K)
    count = np.maximum(inside.sum(axis=1, keepdims=True), 1)  # (N, 1)
    # In units of the radius, so that the weights do not depend on the unit of length.
    around = radius * np.einsum("nk,nkt->nt", weights, own[near]) / count  # (N, 33)
    blocks = (own + around).reshape(len(points), 3, _BINS)  # (N, 3, 11)
    totals = np.maximum(blocks.sum(axis=2, keepdims=True), 1e-300)
    histogram: FloatArray = (blocks / totals).reshape(len(points), -1)  # (N, 33)
    return histogram


def darboux_angles(
    points: FloatArray, normals: FloatArray, others: FloatArray, other_normals: FloatArray
) -> FloatArray:
    """(..., 3) alpha = v . n', phi = u . d and theta = atan2(w . n', u . n'), all from -1 to 1.

    With u the normal, d the direction to the other point, v = d x u and w = u x v; theta is
    divided by pi.
    """
    direction = unit_vectors(others - points)  # (..., 3)
    side = unit_vectors(np.cross(direction, normals))  # (..., 3)
    third = np.cross(normals, side)  # (..., 3)
    alpha = (side * other_normals).sum(axis=-1)
    phi = (normals * direction).sum(axis=-1)
    theta = np.arctan2((third * other_normals).sum(axis=-1), (normals * other_normals).sum(axis=-1))
    angles: FloatArray = np.stack([alpha, phi, theta / np.pi], axis=-1)  # (..., 3)
    return angles


def _simple_histogram(
    points: FloatArray, normals: FloatArray, near: IntArray, inside: NDArray[np.bool_]
) -> FloatArray:
    """(N, 33) shares of the neighbours (N, K) inside, by angle."""
    count = len(points)
    angles = darboux_angles(points[:, None], normals[:, None], points[near], normals[near])
    bins = np.clip(((angles + 1) / 2 * _BINS).astype(np.int64), 0, _BINS - 1)  # (N, K, 3)
    cells = bins + _BINS * np.arange(3)  # (N, K, 3)
    rows = np.broadcast_to(np.arange(count)[:, None, None], cells.shape)
    flat = (rows * 3 * _BINS + cells)[inside]  # (E, 3)
    counts = np.bincount(flat.reshape(-1), minlength=count * 3 * _BINS).reshape(count, -1)
    histogram: FloatArray = counts / np.maximum(inside.sum(axis=1, keepdims=True), 1)  # (N, 33)
    return histogram
