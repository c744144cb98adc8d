"""From moved points to a map: partners are the target points nearest to the moved source."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ltenet.correspondence import Correspondence
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.shape import Shape

#: Neighbours whose displacements a point between them takes over.
_CARRIERS = 4


def in_one_scale(source: Shape, target: Shape) -> tuple[FloatArray, FloatArray]:
    """(N, 3) and (M, 3) points, each centred, in the unit in which the target's radius is 1.

    One scale for both, so that a rigid motion stays one.
    """
    points, frame = (shape.normalized(radius=None).points for shape in (source, target))
    scale = 1 / max(float(np.sqrt(np.square(frame).sum(axis=1).mean())), 1e-300)
    return points * scale, frame * scale


def landed(source: Shape, target: Shape, moved: FloatArray, frame: FloatArray) -> Correspondence:
    """Map each source point to the target point nearest to its moved position.

    The soft partner is the nearest place on the triangle of the three nearest target points.

    Parameters
    ----------
    source, target
        The shapes of the map.
    moved
        (N, 3) moved source points.
    frame
        (M, 3) the target points in the same coordinates.
    """
    neighbors = nearest_neighbors(frame, moved, 3).indices  # (N, K)
    weights = triangle_weights(moved, frame[neighbors]) if len(frame) >= 3 else None  # (N, 3)
    return Correspondence(
        indices=neighbors[:, 0],
        target_size=len(target),
        neighbors=None if weights is None else neighbors,
        weights=weights,
        source=source,
        target=target,
    )


def triangle_weights(points: FloatArray, corners: FloatArray) -> FloatArray:
    """Weights (N, 3) of the place on each triangle (N, 3, 3) that is nearest to a point (N, 3).

    No weight is negative and each row sums to 1. Triangles may be as thin as a line or a point.
    """
    rows = np.arange(len(points))
    candidates = [_inside_weights(points, corners)]  # (N, 3) each
    for first, second in ((0, 1), (1, 2), (2, 0)):
        edge = corners[:, second] - corners[:, first]  # (N, 3)
        length = np.maximum(np.einsum("nd,nd->n", edge, edge), np.finfo(np.float64).tiny)  # (N,)
        along = np.einsum("nd,nd->n", points - corners[:, first], edge) / length  # (N,)
        share = np.clip(along, 0.0, 1.0)  # (N,)
        weights = np.zeros((len(points), 3))
        weights[:, first], weights[:, second] = 1.0 - share, share
        candidates.append(weights)
    stacked = np.stack(candidates)  # (4, N, 3)
    places = np.einsum("cnk,nkd->cnd", stacked, corners)  # (4, N, 3)
    distances = np.square(places - points).sum(axis=2)  # (4, N)
    distances[0, (stacked[0] < 0).any(axis=1)] = np.inf  # the foot of the plane is outside
    best: FloatArray = stacked[distances.argmin(axis=0), rows]  # (N, 3)
    return best


def _inside_weights(points: FloatArray, corners: FloatArray) -> FloatArray:
    """Barycentric coordinates (N, 3) of the foot on the triangle's plane; -1 where it has none."""
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]  # (N, 3) each
    offset = points - corners[:, 0]  # (N, 3)
    aa, ab, bb = (
        np.einsum("nd,nd->n", u, v) for u, v in ((first, first), (first, second), (second, second))
    )
    pa, pb = (np.einsum("nd,nd->n", offset, v) for v in (first, second))
    determinant = aa * bb - ab * ab  # (N,)
    flat = determinant <= 1e-12 * aa * bb  # (N,)
    safe = np.where(flat, 1.0, determinant)
    weights = np.stack([bb * pa - ab * pb, aa * pb - ab * pa], axis=1) / safe[:, None]  # (N, 2)
    full = np.concatenate([1.0 - weights.sum(axis=1, keepdims=True), weights], axis=1)  # (N, 3)
    full[flat] = (-1.0, 1.0, 1.0)
    return full


def thinned(points: FloatArray, limit: int) -> IntArray:
    """(n,) evenly spread points, at most `limit`, for methods that compare all with all."""
    if len(points) <= limit:
        return np.arange(len(points))
    return farthest_point_sample(points, limit)


def through_samples(
    source: Shape, target: Shape, limit: int, partners: Callable[[Shape, Shape], IntArray]
) -> Correspondence:
    """Match evenly spread points of large shapes; the other points follow their neighbours.

    Parameters
    ----------
    source, target
        The shapes of the map.
    limit
        Shapes with more points are thinned to this many, as clouds; smaller ones stay as they are.
    partners
        Gets the thinned shapes and returns the (n,) target point of each source point.
    """
    points, frame = (shape.normalized(radius=1.0).points for shape in (source, target))
    chosen, among = thinned(points, limit), thinned(frame, limit)  # (n,), (m,)
    small = [
        shape if len(shape) <= limit else shape.subset(rows)
        for shape, rows in ((source, chosen), (target, among))
    ]
    found = among[partners(*small)]  # (n,)
    if len(source) <= limit and len(target) <= limit:
        return Correspondence(indices=found, target_size=len(target), source=source, target=target)
    places = carried(points, points[chosen], frame[found] - points[chosen])  # (N, 3)
    return landed(source, target, places, frame)


def carried(points: FloatArray, anchors: FloatArray, displacements: FloatArray) -> FloatArray:
    """Move (N, 3) points as the (A, 3) anchors near them were displaced by (A, 3).

    Displacements are weighted by the inverse squared distance, so that anchors move exactly.
    """
    distances, nearest = nearest_neighbors(anchors, points, _CARRIERS)  # (N, K) each
    weights = 1.0 / np.maximum(distances, 1e-9 * (distances.max() + 1e-300)) ** 2  # (N, K)
    weights /= weights.sum(axis=1, keepdims=True)
    moved: FloatArray = points + np.einsum("nk,nkd->nd", weights, displacements[nearest])
    return moved
