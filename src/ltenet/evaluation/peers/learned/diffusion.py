"""DiffusionNet [Sharp et al. 2022]: features spread by learned heat, compared by their gradients.

A block diffuses every channel for a time of its own, in the Laplacian's basis; takes the gradients
of the result in tangent planes, as complex numbers g; and joins the channels, the diffused channels
and ``tanh(Re(conj(g) A g))`` by a small network for each point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.method.graph import NeighborGraph, neighbor_sum

#: Neighbours that a gradient is fitted to, and the shortest time.
_NEIGHBORS, _SHORTEST = 30, 1e-8


class GradientArrays(NamedTuple):
    """Gradients as weighted sums: of f at i, ``sum_k weights[i, k] f[indices[i, k]]``.

    Attributes
    ----------
    indices
        (N, K) neighbours, the point itself first.
    weights
        (N, K, 2) for the two tangent directions.
    """

    indices: IntArray
    weights: FloatArray


def gradient_arrays(points: FloatArray, normals: FloatArray) -> GradientArrays:
    """Fit the gradient in the tangent plane to the neighbours, by least squares.

    Parameters
    ----------
    points, normals
        (N, 3) each.
    """
    near = nearest_neighbors(points, points, _NEIGHBORS + 1).indices  # (N, K + 1)
    near[:, 0] = np.arange(len(points))  # also where two points coincide
    offsets = points[near[:, 1:]] - points[:, None]  # (N, K, 3)
    axes = tangent_axes(normals)  # (N, 2, 3)
    flat = np.einsum("nij,nkj->nki", axes, offsets)  # (N, K, 2)
    gram = np.einsum("nki,nkj->nij", flat, flat)  # (N, 2, 2)
    scale = 1e-6 * np.trace(gram, axis1=1, axis2=2)[:, None, None] + 1e-30
    weights = np.linalg.solve(gram + scale * np.eye(2), flat.transpose(0, 2, 1))  # (N, 2, K)
    weights = weights.transpose(0, 2, 1)  # (N, K, 2)
    own = -weights.sum(axis=1, keepdims=True)  # (N, 1, 2)
    return GradientArrays(near, np.concatenate([own, weights], axis=1))


def tangent_axes(normals: FloatArray) -> FloatArray:
    """(N, 2, 3) orthonormal axes across (N, 3) normals; any two, as blocks do not see which."""
    helper = np.eye(3)[np.abs(normals).argmin(axis=1)]  # (N, 3)
    first = np.cross(normals, helper)  # (N, 3)
    first = first / np.maximum(np.linalg.norm(first, axis=1, keepdims=True), 1e-300)
    return np.stack([first, np.cross(normals, first)], axis=1)  # (N, 2, 3)


class Surface(NamedTuple):
    """What the blocks need of a shape.

    Attributes
    ----------
    values, functions, masses
        (k,), (N, k) and (N,): the Laplacian's basis.
    indices, weights
        (N, K) and (N, K, 2): gradients.
    """

    values: Tensor
    functions: Tensor
    masses: Tensor
    indices: Tensor
    weights: Tensor


class DiffusionBlock(nn.Module):
    """One block: (N, C) features -> (N, C)."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.times = nn.Parameter(torch.zeros(width))  # (C,)
        self.real = nn.Linear(width, width, bias=False)
        self.imaginary = nn.Linear(width, width, bias=False)
        self.layers = nn.Sequential(
            nn.Linear(3 * width, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, width),
        )

    def forward(self, features: Tensor, surface: Surface) -> Tensor:
        """Apply the block."""
        spread = self.diffused(features, surface)  # (N, C)
        graph = NeighborGraph(surface.indices, len(features))
        x, y = (neighbor_sum(spread, own, graph) for own in surface.weights.unbind(2))  # (N, C)
        turned_x = self.real(x) - self.imaginary(y)  # (N, C)
        turned_y = self.real(y) + self.imaginary(x)  # (N, C)
        products = torch.tanh(x * turned_x + y * turned_y)  # (N, C)
        joined: Tensor = self.layers(torch.cat([features, spread, products], dim=1))  # (N, C)
        return features + joined

    def diffused(self, features: Tensor, surface: Surface) -> Tensor:
        """(N, C) ``Phi exp(-mu t) Phi^T M x``, with a time for each channel."""
        times = self.times.clamp_min(_SHORTEST)  # (C,)
        spectrum = (surface.functions * surface.masses[:, None]).T @ features  # (k, C)
        fading = torch.exp(-surface.values[:, None] * times)  # (k, C)
        return surface.functions @ (fading * spectrum)


class DiffusionNet(nn.Module):
    """Blocks between two linear layers: (N, inputs) -> (N, outputs)."""

    def __init__(
        self, inputs: int, outputs: int, *, width: int, blocks: int, dropout: float
    ) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(DiffusionBlock(width, dropout) for _ in range(blocks))
        self.last = nn.Linear(width, outputs)

    def forward(self, features: Tensor, surface: Surface) -> Tensor:
        """Describe the points of one shape."""
        features = self.first(features)  # (N, C)
        for block in self.blocks:
            features = block(features, surface)
        described: Tensor = self.last(features)  # (N, outputs)
        return described
