"""Point sets as tensors: nearest points, even samples, areas, tangent planes, rotations."""

from __future__ import annotations

from typing import NamedTuple

import torch
from scipy.spatial import KDTree
from torch import Tensor

from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.geometry.rotations import nearest_rotations
from ltenet.method.neighbors import BLOCK_ENTRIES, knn_graph

#: Neighbours whose distances measure the area around a point, and the ratio to the mean area beyond
#: which a value counts as noise.
AREA_NEIGHBORS, _AREA_LIMIT = 10, 20.0


class NearestPoints(NamedTuple):
    """The nearest points to each of N queries, nearest first.

    Attributes
    ----------
    indices
        (N, k) int64.
    squares
        (N, k) squared distances.
    """

    indices: Tensor
    squares: Tensor


def nearest_points(
    queries: Tensor, points: Tensor, k: int, *, tree: KDTree | None = None
) -> NearestPoints:
    """Find the k nearest of (M, 3) points to each of (N, 3) queries.

    Parameters
    ----------
    queries, points
        On one device; a KD-tree answers on the CPU, blocked products elsewhere.
    k
        At most M.
    tree
        KD-tree of `points`, if there is one already.
    """
    if queries.device.type == "cpu":
        found = nearest_neighbors(points.numpy() if tree is None else tree, queries.numpy(), k)
        squares = torch.from_numpy(found.distances).to(queries.dtype).square()  # (N, k)
        return NearestPoints(torch.from_numpy(found.indices), squares)
    blocks = queries.split(max(1, BLOCK_ENTRIES // len(points)))
    best = [squared_distances(b, points).topk(k, dim=1, largest=False) for b in blocks]
    return NearestPoints(torch.cat([b.indices for b in best]), torch.cat([b.values for b in best]))


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """(n, m) from (n, 3) and (m, 3), for shapes near the origin, where cancellation is harmless."""
    squares = second.square().sum(dim=1) + first.square().sum(dim=1, keepdim=True)  # (n, m)
    return squares.addmm_(first, second.T, alpha=-2).clamp_min_(0)


def squared_edges(points: Tensor, neighbors: Tensor) -> Tensor:
    """(N, k) squared distances from (N, 3) points to their (N, k) neighbours."""
    return (points[neighbors] - points[:, None]).square().sum(dim=2)


def spread_sample(points: Tensor, count: int) -> Tensor:
    """Farthest-point sample (count,) of (N, 3) points, or all of them if there are fewer.

    It starts at the point farthest from the mean, so the order of the points does not matter, and
    every prefix of it is the sample of that size.
    """
    start = int((points - points.mean(dim=0)).square().sum(dim=1).argmax())
    coordinates = points.cpu().numpy()  # (N, 3)
    chosen = farthest_point_sample(coordinates, min(count, len(points)), start=start)  # (count,)
    return torch.from_numpy(chosen).to(points.device)


def relative_areas(points: Tensor, neighbors: Tensor | None = None) -> Tensor:
    """Area around each of (N, 3) points relative to the mean: (N,).

    The squared mean distance to the (N, k) nearest `neighbors`, averaged over these.
    """
    if neighbors is None:
        neighbors = knn_graph(points, min(AREA_NEIGHBORS, len(points)))  # (N, k)
    distance = squared_edges(points, neighbors).sqrt()  # (N, k)
    area = distance.mean(dim=1).square()[neighbors].mean(dim=1)  # (N,)
    mean = area.mean()  # ()
    if not mean > 0:  # all points coincide
        return torch.ones_like(area)
    shares: Tensor = (area / mean).clamp(1 / _AREA_LIMIT, _AREA_LIMIT)  # (N,)
    return shares


def project_onto_planes(queries: Tensor, neighbors: Tensor) -> Tensor:
    """Project (N, 3) queries onto the planes of best fit through (N, k, 3) neighbours."""
    centre = neighbors.mean(dim=1)  # (N, 3)
    if neighbors.shape[1] < 3:
        return centre
    offsets = neighbors - centre[:, None]  # (N, k, 3)
    normal = torch.linalg.eigh(offsets.transpose(1, 2) @ offsets).eigenvectors[:, :, 0]  # (N, 3)
    height = ((queries - centre) * normal).sum(dim=1, keepdim=True)  # (N, 1)
    projected: Tensor = queries - height * normal  # (N, 3)
    return projected


def rotations_near(matrices: Tensor) -> Tensor:
    """Rotations (r, 3, 3) nearest to (r, 3, 3) matrices."""
    return torch.from_numpy(nearest_rotations(matrices.cpu().numpy())).to(matrices)
