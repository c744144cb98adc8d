"""SHOT, signatures of histograms of orientations [Tombari et al. 2010].

Around a point a ball is cut into 32 cells: two shells, two halves and eight azimuths of a local
frame. Each cell holds a histogram of the cosine between its points' normals and the frame's z,
eleven bins. A point counts in neighbouring bins, azimuths, halves and shells in proportion, so that
nothing jumps when it crosses a border.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors

#: Bins of the cosine, azimuths, halves (below and above) and shells.
_COSINES, _AZIMUTHS, _HALVES, _SHELLS = 11, 8, 2, 2
#: Channels of the descriptor.
CHANNELS = _COSINES * _AZIMUTHS * _HALVES * _SHELLS
#: Neighbours that the ball holds on average, and most that are looked at.
_USUAL, _MOST = 25, 96
#: Points with fewer neighbours have no frame.
_FEWEST = 3


def shot(points: FloatArray, normals: FloatArray, *, radius: float | None = None) -> FloatArray:
    """(N, 352) descriptors of unit length; zeros where a point has fewer than three neighbours.

    Parameters
    ----------
    points, normals
        (N, 3) each.
    radius
        Of the ball; by default one that holds about 25 neighbours.
    """
    distances, near = nearest_neighbors(points, points, _MOST + 1)  # (N, K) each
    distances, near = distances[:, 1:], near[:, 1:]
    if distances.shape[1] < _FEWEST:
        return np.zeros((len(points), CHANNELS))
    if radius is None:
        radius = float(distances[:, min(_USUAL, distances.shape[1]) - 1].mean())
    inside = (distances <= radius) & (distances > 0)  # (N, K)
    offsets = points[near] - points[:, None]  # (N, K, 3)
    frames = local_frames(offsets, np.where(inside, radius - distances, 0.0))  # (N, 3, 3)
    local = np.einsum("nij,nkj->nki", frames, offsets)  # (N, K, 3)
    cosines = np.einsum("nj,nkj->nk", frames[:, 2], normals[near])  # (N, K)
    histogram = _histogram(local, distances / radius, cosines, inside)  # (N, 352)
    histogram[inside.sum(axis=1) < _FEWEST] = 0.0
    lengths = np.linalg.norm(histogram, axis=1, keepdims=True)  # (N, 1)
    descriptors: FloatArray = histogram / np.maximum(lengths, 1e-300)
    return descriptors


def local_frames(offsets: FloatArray, weights: FloatArray) -> FloatArray:
    """(N, 3, 3) rows x, y, z: main axes of (N, K, 3) offsets with (N, K) weights.

    z varies least, x most; each looks to the side with more neighbours, and y = z x x.
    """
    total = np.maximum(weights.sum(axis=1), 1e-300)[:, None, None]  # (N, 1, 1)
    spread = np.einsum("nk,nki,nkj->nij", weights, offsets, offsets) / total  # (N, 3, 3)
    axes = np.linalg.eigh(spread)[1]  # (N, 3, 3), columns rising
    x, z = (_to_the_majority(axes[:, :, k], offsets, weights) for k in (2, 0))  # (N, 3) each
    return np.stack([x, np.cross(z, x), z], axis=1)  # (N, 3, 3)


def _to_the_majority(axis: FloatArray, offsets: FloatArray, weights: FloatArray) -> FloatArray:
    """Turn (N, 3) axes to the side with more neighbours; of equally many, to the heavier one."""
    along = np.einsum("ni,nki->nk", axis, offsets)  # (N, K)
    counted = weights > 0  # (N, K)
    more = (np.sign(along) * counted).sum(axis=1)  # (N,)
    heavier = (weights * along).sum(axis=1)  # (N,)
    wrong = (more < 0) | ((more == 0) & (heavier < 0))  # (N,)
    turned: FloatArray = np.where(wrong[:, None], -axis, axis)  # (N, 3)
    return turned


def _histogram(
    local: FloatArray, reach: FloatArray, cosines: FloatArray, inside: NDArray[np.bool_]
) -> FloatArray:
    """(N, 352) counts, spread linearly over neighbouring bins in all four directions.

    Parameters
    ----------
    local
        (N, K, 3) neighbours in the frame of their point.
    reach
        (N, K) distance in units of the radius.
    cosines
        (N, K) between their normals and z.
    inside
        (N, K) which count.
    """
    count = len(local)
    rows = np.broadcast_to(np.arange(count)[:, None], inside.shape)[inside]  # (E,)
    x, y, z = (local[..., k][inside] for k in range(3))  # (E,) each
    far = reach[inside]  # (E,)
    height = z / np.maximum(np.linalg.norm(local[inside], axis=1), 1e-300)  # (E,) sine
    halves = (np.arcsin(np.clip(height, -1, 1)) / np.pi + 0.5) * _HALVES
    choices = (
        _two_bins((cosines[inside] + 1) / 2 * _COSINES, _COSINES),
        _two_bins((np.arctan2(y, x) / (2 * np.pi) + 0.5) * _AZIMUTHS, _AZIMUTHS, around=True),
        _two_bins(halves, _HALVES),
        _two_bins(far * _SHELLS, _SHELLS),
    )
    sizes = (_COSINES, _AZIMUTHS, _HALVES, _SHELLS)
    histogram = np.zeros(count * CHANNELS)
    for corner in range(16):
        place, weight = rows, np.ones(len(rows))  # (E,) each
        for axis, (size, (bins, shares)) in enumerate(zip(sizes, choices, strict=True)):
            which = corner >> axis & 1
            place = place * size + bins[which]
            weight = weight * shares[which]
        histogram += np.bincount(place, weight, len(histogram))
    counts: FloatArray = histogram.reshape(count, CHANNELS)
    return counts


def _two_bins(
    values: FloatArray, count: int, *, around: bool = False
) -> tuple[tuple[IntArray, IntArray], tuple[FloatArray, FloatArray]]:
    """Nearest two of `count` bins, whose centres are at k + 0.5, and the share of each.

    At the ends there is one bin only, unless the bins run `around` a circle.
    """
    low = np.floor(values - 0.5).astype(np.int64)  # (E,)
    share = values - 0.5 - low  # (E,) of the upper bin
    if around:
        return (low % count, (low + 1) % count), (1 - share, share)
    first, second = np.clip(low, 0, count - 1), np.clip(low + 1, 0, count - 1)
    return (first, second), (1 - share, share)
