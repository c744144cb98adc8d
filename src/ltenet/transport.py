"""Soft plans between two point sets: scores in, mean places and doubts out.

Both kinds leave room for points without a partner, and neither asks for a strict bijection: two
shapes that were sampled apart do not have one. `balanced_plan` looks at all pairs and gives every
piece of the target about its share; `shortlist_plan` looks at a few targets of each point and is
linear in the number of points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from scipy.spatial import KDTree
from torch import Tensor

from ltenet.graph import NeighborGraph
from ltenet.neighbors import BLOCK_ENTRIES, farthest_point_sample, knn_graph

#: Exponents this far below the largest add nothing; left as they are they underflow, which is
#: thirty times slower than the exponential itself.
_NEGLIGIBLE = -60.0
#: Neighbours whose distance tells how much surface a point stands for, and the ratio to the mean
#: beyond which that is noise.
_AREA_NEIGHBORS, _AREA_LIMIT = 10, 20.0
#: Surface points that make the plane onto which a query is projected.
_PLANE_NEIGHBORS = 5


class Plan(NamedTuple):
    """Where each of n points should go.

    Attributes
    ----------
    places
        (n, 3) mean place.
    mass
        (n,) from 0, no partner, to 1.
    variance
        (n,) mean squared distance of the plan from the mean place.
    """

    places: Tensor
    mass: Tensor
    variance: Tensor


def balanced_plan(
    scores: Tensor,
    floor: Tensor,
    target: Tensor,
    *,
    areas: tuple[Tensor, Tensor],
    factors: Tensor,
    balance: float,
    sweeps: int,
) -> Plan:
    """Relaxed transport over all pairs.

    Rows of ``a_i q_j exp(score_ij) b_j`` and ``a_i exp(floor_i)`` sum to one, where q_j is the
    surface at column j. The factor b_j is the column's share of the surface over what would reach
    it with b_j = 1, to the power of `balance`: the fixed point of entropic transport whose columns
    are bound by a Kullback-Leibler penalty, balance = penalty / (penalty + 1).

    Parameters
    ----------
    scores
        (n, m), overwritten.
    floor
        (n,) score of having no partner.
    target
        (m, 3) places.
    areas
        (n,) and (m,) surface that each point stands for.
    factors
        (m,) b_j to start from, overwritten; carried from step to step they need few sweeps.
    balance
        From 0, columns are free, to below 1.
    sweeps
        Corrections of b_j.
    """
    source_area, target_area = areas
    scores += target_area.log()
    kernel, outside = _exponential(scores, floor)  # (n, m), (n,)
    share = target_area / target_area.sum() * source_area.sum()  # (m,)
    tiny = math.exp(_NEGLIGIBLE)
    for _ in range(sweeps):
        reaching = (source_area / (kernel @ factors + outside)) @ kernel  # (m,)
        factors.copy_((share / (reaching + tiny)).pow(balance).clamp(1e-6, 1e6))
    kernel *= factors
    moments = kernel @ _moments(target)  # (n, 4)
    return _plan_of(moments, kernel.sum(dim=1), outside)


def shortlist_plan(
    scores: Tensor, floor: Tensor, target: Tensor, indices: Tensor, *, area: Tensor
) -> Plan:
    """Plan in which each point decides alone, among the targets at `indices` (n, k).

    Parameters
    ----------
    scores
        (n, k), overwritten.
    floor
        (n,) score of having no partner.
    target
        (m, 3) places.
    area
        (m,) surface that each target point stands for.
    """
    scores += area.log()[indices]
    kernel, outside = _exponential(scores, floor)  # (n, k), (n,)
    moments = NeighborGraph(indices, len(target)).sum(_moments(target), kernel)  # (n, 4)
    return _plan_of(moments, kernel.sum(dim=1), outside)


def _exponential(scores: Tensor, floor: Tensor) -> tuple[Tensor, Tensor]:
    """Exponentials of (n, m) scores, in place, and of the (n,) floor, both over the largest."""
    peak = torch.maximum(scores.amax(dim=1), floor)  # (n,)
    kernel = scores.sub_(peak[:, None]).clamp_min_(_NEGLIGIBLE).exp_()  # (n, m)
    return kernel, (floor - peak).clamp_min(_NEGLIGIBLE).exp()


def _moments(target: Tensor) -> Tensor:
    """(m, 4) places and their squared norms."""
    return torch.cat([target, target.square().sum(dim=1, keepdim=True)], dim=1)


def _plan_of(moments: Tensor, total: Tensor, outside: Tensor) -> Plan:
    """Plan from (n, 4) weighted sums of moments, their (n,) weights and the (n,) weight of none."""
    moments = moments / total[:, None]  # (n, 4)
    places = moments[:, :3]  # (n, 3)
    variance = (moments[:, 3] - places.square().sum(dim=1)).clamp_min(0)  # (n,)
    return Plan(places, total / (total + outside), variance)


def spread_sample(points: Tensor, count: int) -> Tensor:
    """Choose (count,) points spread evenly over (N, 3), or all of them if there are fewer.

    Starts at the point farthest from the mean, so that the order of the points does not matter.
    """
    start = int((points - points.mean(dim=0)).square().sum(dim=1).argmax())
    coordinates = points.cpu().numpy()  # (N, 3)
    chosen = farthest_point_sample(coordinates, min(count, len(points)), start=start)  # (count,)
    return torch.from_numpy(chosen).to(points.device)


def surface_shares(points: Tensor) -> Tensor:
    """How much surface each of (N, 3) points stands for, relative to the mean: (N,).

    The squared mean distance to the neighbours, averaged over these.
    """
    k = min(_AREA_NEIGHBORS, len(points))
    neighbors = knn_graph(points, k)  # (N, k)
    distance = (points[neighbors] - points[:, None]).norm(dim=2)  # (N, k)
    area = distance.mean(dim=1).square()[neighbors].mean(dim=1)  # (N,)
    mean = area.mean()  # ()
    if not mean > 0:  # all points coincide
        return torch.ones_like(area)
    shares: Tensor = (area / mean).clamp(1 / _AREA_LIMIT, _AREA_LIMIT)  # (N,)
    return shares


def project_onto(surface: Tensor, queries: Tensor) -> Tensor:
    """Move (N, 3) queries onto the planes through their nearest (M, 3) points of a surface."""
    k = min(_PLANE_NEIGHBORS, len(surface))
    neighbors = surface[nearest_points(queries, surface, k).indices]  # (N, k, 3)
    centre = neighbors.mean(dim=1)  # (N, 3)
    if k < 3:
        return centre
    offsets = neighbors - centre[:, None]  # (N, k, 3)
    normal = torch.linalg.eigh(offsets.transpose(1, 2) @ offsets).eigenvectors[:, :, 0]  # (N, 3)
    height = ((queries - centre) * normal).sum(dim=1, keepdim=True)  # (N, 1)
    projected: Tensor = queries - height * normal  # (N, 3)
    return projected


class Nearest(NamedTuple):
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


def nearest_points(queries: Tensor, points: Tensor, k: int) -> Nearest:
    """Find the k nearest of (M, 3) points to each of (N, 3) queries."""
    if queries.device.type == "cpu":
        distance, indices = KDTree(points.numpy()).query(queries.numpy(), k=k)
        shape = (len(queries), k)  # also for k = 1
        squares = torch.from_numpy(distance).to(queries.dtype).view(shape).square()  # (N, k)
        return Nearest(torch.from_numpy(indices).view(shape), squares)
    blocks = queries.split(max(1, BLOCK_ENTRIES // len(points)))
    best = [squared_distances(b, points).topk(k, dim=1, largest=False) for b in blocks]
    return Nearest(torch.cat([b.indices for b in best]), torch.cat([b.values for b in best]))


def squared_distances(first: Tensor, second: Tensor) -> Tensor:
    """(n, m) from (n, 3) and (m, 3); for shapes near the origin, where nothing cancels."""
    squares = second.square().sum(dim=1) + first.square().sum(dim=1, keepdim=True)  # (n, m)
    return squares.addmm_(first, second.T, alpha=-2).clamp_min_(0)
