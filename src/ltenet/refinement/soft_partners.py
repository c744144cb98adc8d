"""Soft partners: a few target points whose weighted mean is where a source point belongs."""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.method.graph import NeighborGraph
from ltenet.method.neighbors import TopK
from ltenet.method.transforms import simplex_projection
from ltenet.refinement.threads import by_blocks

#: Divisor of the cosines in the softmax over the nearest features.
TEMPERATURE = 0.02
#: Steps of FISTA, and the price of a distant neighbour relative to that of a wrong mean.
_STEPS, _FAR = 100, 1e-3
#: Points that are computed at a time: they stay in cache.
_BLOCK = 1024


def weighted_mean(points: Tensor, soft: TopK) -> Tensor:
    """(N, 3) mean positions of soft partners among (M, 3) points."""
    return NeighborGraph(soft.indices, len(points)).sum(points, soft.scores.to(points.dtype))


def by_similarity(nearest: TopK, temperature: float = TEMPERATURE) -> TopK:
    """Weights (N, K) of the nearest features: softmax of their cosines over a temperature.

    On shapes sampled independently this comes closer to the truth than the locally linear weights
    of training; docs/refinement.md has the figures.
    """
    return TopK(nearest.indices, (nearest.scores / temperature).softmax(dim=1))  # (N, K) each


def around(places: Tensor, points: Tensor, indices: Tensor) -> TopK:
    """Weights (N, K) of the points at `indices` (N, K) whose mean is nearest to (N, 3) places."""
    return TopK(indices, convex_weights(points[indices] - places[:, None]))


def convex_weights(offsets: Tensor) -> Tensor:
    """Weights (N, K) that sum to 1 and bring the mean of (N, K, 3) offsets nearest to zero.

    None is negative, so a colour or label mixed with them exists on the target. Minimises
    ``|sum_k w_k d_k|^2 + 0.001 sum_k w_k |d_k|^2`` over the simplex by FISTA [Beck & Teboulle
    2009], starting at the first point; the second term prefers near points among equal mixtures.
    """
    blocks = by_blocks(lambda block: _convex_weights(offsets[block]), len(offsets), _BLOCK)
    return torch.cat(blocks) if blocks else offsets.new_empty(offsets.shape[:2])


def _convex_weights(offsets: Tensor) -> Tensor:
    gram = offsets @ offsets.transpose(1, 2)  # (N, K, K)
    squares = gram.diagonal(dim1=1, dim2=2)  # (N, K)
    trace = squares.sum(dim=1)[:, None]  # (N, 1), bounds the eigenvalues
    scale = 1 / trace.clamp_min(torch.finfo(trace.dtype).tiny)  # (N, 1)
    gram, cost = gram * scale[..., None], 0.5 * _FAR * squares * scale  # (N, K, K), (N, K)
    weights = torch.zeros_like(cost)  # (N, K)
    weights[:, 0] = 1.0
    ahead, pace = weights, 1.0
    for _ in range(_STEPS):
        slope = (gram @ ahead[..., None])[..., 0] + cost  # (N, K)
        moved = simplex_projection(ahead - slope)  # (N, K)
        quicker = 0.5 * (1 + (1 + 4 * pace * pace) ** 0.5)
        ahead = moved + ((pace - 1) / quicker) * (moved - weights)  # (N, K)
        weights, pace = moved, quicker
    return weights / weights.sum(dim=1, keepdim=True)
