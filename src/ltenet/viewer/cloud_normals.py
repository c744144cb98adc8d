"""Normals of a cloud for shading, by PCA of neighbourhoods [Hoppe et al. 1992]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray

#: Neighbours that span the tangent plane, and points per batch.
_NEIGHBORS = 9
_CHUNK = 50_000


def cloud_normals(points: FloatArray) -> FloatArray:
    """(N, 3) unit normals of (N, 3) points, of arbitrary sign."""
    from scipy.spatial import KDTree

    count = min(_NEIGHBORS, len(points))
    if count < 3:
        return np.tile([0.0, 0.0, 1.0], (len(points), 1))
    tree = KDTree(points)
    normals = np.empty_like(points)
    for first in range(0, len(points), _CHUNK):
        _, neighbors = tree.query(points[first : first + _CHUNK], k=count, workers=-1)  # (C, K)
        around = points[neighbors]  # (C, K, 3)
        around = around - around.mean(axis=1, keepdims=True)
        # Columns are principal axes by ascending variance; the first is the normal.
        axes = np.linalg.eigh(np.einsum("nki,nkj->nij", around, around))[1]  # (C, 3, 3)
        normals[first : first + _CHUNK] = axes[:, :, 0]
    return normals


def folded(normals: FloatArray) -> NDArray[np.uint8]:
    """(N, 2) bytes of (N, 3) unit vectors: octahedral encoding [Meyer et al. 2010]."""
    flat = normals / np.abs(normals).sum(axis=1, keepdims=True)  # (N, 3)
    x, y, z = flat.T
    sign_x, sign_y = np.where(x < 0, -1.0, 1.0), np.where(y < 0, -1.0, 1.0)
    below = z < 0
    x, y = (
        np.where(below, (1 - np.abs(y)) * sign_x, x),
        np.where(below, (1 - np.abs(x)) * sign_y, y),
    )
    bytes_: NDArray[np.uint8] = np.round((np.stack([x, y], axis=1) + 1) * 127.5).astype(np.uint8)
    return bytes_
