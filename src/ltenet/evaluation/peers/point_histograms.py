"""Histograms of where the other points lie: shape contexts and spin images.

Shape contexts follow Belongie et al. 2002, in space and with shells of logarithmic radius; spin
images follow Johnson and Hebert 1999.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.geometry.normals import unit_vectors

#: Shells, elevations and azimuths of a shape context, and its range in mean distances.
_SHELLS, _ELEVATIONS, _AZIMUTHS = 6, 6, 12
_NEAR, _FAR = 1 / 8, 2.0
#: Bins along and across the axis of a spin image, and their size in mean spacings.
_SPIN_BINS, _SPIN_SIZE = 15, 2.0
#: Largest angle, in degrees, between the normals of a point and of one that it counts.
_SUPPORT = 60.0


def shape_context(
    points: FloatArray, normals: FloatArray, *, frame: Literal["world", "local"] = "world"
) -> FloatArray:
    """(N, T) share of the other points in each cell around a point.

    Parameters
    ----------
    points, normals
        (N, 3) each.
    frame
        "world": cells keep the axes of the coordinates, so shapes must stand alike. "local": the
        pole is the normal and azimuth 0 the main direction of the whole shape across it.
    """
    count = len(points)
    offsets = points[None, :, :] - points[:, None, :]  # (N, N, 3)
    distances = np.linalg.norm(offsets, axis=2)  # (N, N)
    mean = distances.sum() / (count * max(count - 1, 1))
    if frame == "local":
        offsets = np.einsum("nij,nmj->nmi", local_axes(points, normals), offsets)  # (N, N, 3)
    edges = np.geomspace(_NEAR, _FAR, _SHELLS) * mean  # (S,)
    shell = np.searchsorted(edges, distances)  # (N, N); what is beyond the last is left out
    safe = np.maximum(distances, 1e-300)
    # The world is y-up; of local axes the third is the normal.
    up, across = (1, (0, 2)) if frame == "world" else (2, (0, 1))
    elevation = _bin((offsets[..., up] / safe + 1) / 2, _ELEVATIONS)  # equal areas of a sphere
    angle = np.arctan2(offsets[..., across[1]], offsets[..., across[0]])  # (N, N)
    azimuth = _bin(angle / (2 * np.pi) + 0.5, _AZIMUTHS)  # (N, N)
    cell = (shell * _ELEVATIONS + elevation) * _AZIMUTHS + azimuth  # (N, N)
    size = _SHELLS * _ELEVATIONS * _AZIMUTHS
    counted = (shell < _SHELLS) & ~np.eye(count, dtype=bool)  # (N, N)
    rows = np.broadcast_to(np.arange(count)[:, None], counted.shape)[counted]
    counts = np.bincount(rows * size + cell[counted], minlength=count * size)
    shares = counts.reshape(count, size) / np.maximum(counted.sum(axis=1, keepdims=True), 1)
    histogram: FloatArray = shares.astype(np.float64)  # (N, T)
    return histogram


def local_axes(points: FloatArray, normals: FloatArray) -> FloatArray:
    """(N, 3, 3) rows: main direction across the normal, its perpendicular, the normal."""
    offsets = points[None, :, :] - points[:, None, :]  # (N, N, 3)
    flat = offsets - np.einsum("nmd,nd->nm", offsets, normals)[..., None] * normals[:, None]
    spread = np.einsum("nmi,nmj->nij", flat, flat)  # (N, 3, 3)
    first = np.linalg.eigh(spread)[1][:, :, 2]  # (N, 3)
    # The side with more weight far away; a sum of cubes keeps the sign.
    lean = np.einsum("nmd,nd->nm", offsets, first)  # (N, N)
    first = first * np.where((lean**3).sum(axis=1) < 0, -1.0, 1.0)[:, None]  # (N, 3)
    first = unit_vectors(first - np.einsum("nd,nd->n", first, normals)[:, None] * normals)
    return np.stack([first, np.cross(normals, first), normals], axis=1)  # (N, 3, 3)


def spin_image(points: FloatArray, normals: FloatArray) -> FloatArray:
    """(N, T) the other points by distance from the normal's axis and height along it."""
    count = len(points)
    spacing = float(nearest_neighbors(points, points, 2).distances[:, -1].mean())
    size = max(_SPIN_SIZE * spacing, 1e-300)
    offsets = points[None, :, :] - points[:, None, :]  # (N, N, 3)
    heights = np.einsum("nmd,nd->nm", offsets, normals)  # (N, N)
    squares = np.square(offsets).sum(axis=2) - heights**2  # (N, N)
    across = np.sqrt(np.maximum(squares, 0.0)) / size  # (N, N)
    along = heights / size + _SPIN_BINS / 2  # (N, N)
    seen = normals @ normals.T >= np.cos(np.radians(_SUPPORT))  # (N, N)
    seen &= (across < _SPIN_BINS - 1) & (along >= 0) & (along < _SPIN_BINS - 1)
    np.fill_diagonal(seen, False)
    rows = np.broadcast_to(np.arange(count)[:, None], seen.shape)[seen]  # (E,)
    i, j = np.floor(across[seen]).astype(int), np.floor(along[seen]).astype(int)  # (E,) each
    a, b = across[seen] - i, along[seen] - j  # (E,) each
    image = np.zeros(count * _SPIN_BINS**2)
    for di, dj, weight in (
        (0, 0, (1 - a) * (1 - b)), (1, 0, a * (1 - b)), (0, 1, (1 - a) * b), (1, 1, a * b),
    ):  # fmt: skip
        place = (rows * _SPIN_BINS + i + di) * _SPIN_BINS + j + dj  # (E,)
        image += np.bincount(place, weight, len(image))
    images: FloatArray = image.reshape(count, -1)  # (N, T)
    return images


def _bin(shares: FloatArray, count: int) -> IntArray:
    """Bin of values from 0 to 1, the same shape, whole numbers below `count`."""
    bins: IntArray = np.clip((shares * count).astype(np.int64), 0, count - 1)
    return bins
