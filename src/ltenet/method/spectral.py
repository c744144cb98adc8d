"""Diffusion along the surface as the encoder, after DiffusionNet [Sharp et al. 2022].

Each layer lets its features diffuse for a learned time, channel by channel, and maps a point's own
and its diffused features together. In the eigenbasis of the Laplacian (values mu, functions phi,
masses m) diffusion is a product,

    h_t(f) = phi diag(exp(-mu t)) phi^T (m f),

so a point sees as much of the surface as the time says, along the surface and not through space.
The Laplacian is that of the mesh where faces are given, else that of the cloud. DiffusionNet's
products of tangential gradients are left out: clouds as sparse as ours have no tangent frames to
speak of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from ltenet.errors import InputError
from ltenet.method.batchnorm import PointwiseLayer
from ltenet.method.encoder import EncoderConfig
from ltenet.method.laplacian import LaplacianBasis, laplacian_basis

#: Diffusion times at the start, on a surface of area 1: from a point's surroundings to a limb.
_TIMES = (1e-4, 1e-2)


class SpectralNet(nn.Module):
    """The network: (B, N, 3) -> (B, N, D), or a sequence of (N_s, 3) -> a list of (N_s, D)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        make = partial(DiffusionLayer, slope=config.slope, momentum=config.momentum)
        inputs = (3, *config.widths[:-1])
        self.layers = nn.ModuleList(
            make(*channels) for channels in zip(inputs, config.widths, strict=True)
        )
        self.head = PointwiseLayer(
            sum(config.widths), config.dimension, slope=config.slope, momentum=config.momentum
        )

    def share_statistics(self) -> None:
        """Let BatchNorm see the batches of all processes as one, from now on."""
        for layer in self.modules():
            if isinstance(layer, PointwiseLayer):
                layer.shared = True

    @torch.no_grad()
    def graphs_of(
        self, shapes: Tensor | Sequence[Tensor], faces: Tensor | None = None
    ) -> list[LaplacianBasis]:
        """Eigenbasis of each shape; `faces` (F, 3) are those of a single one."""
        if faces is not None and len(shapes) != 1:
            raise InputError(
                f"got faces for {len(shapes)} shapes, expected them for one; try one at a time"
            )
        count = self.config.functions
        found = [laplacian_basis(p, min(count, len(p)), faces=faces) for p in shapes]
        return [
            LaplacianBasis(*(part.to(points.dtype) for part in basis))
            for basis, points in zip(found, shapes, strict=True)
        ]

    def forward(
        self,
        shapes: Tensor | Sequence[Tensor],
        graphs: Sequence[LaplacianBasis] | None = None,
    ) -> Tensor | list[Tensor]:
        """Embed a batch of shapes; `graphs` are what `graphs_of` made of them, if known."""
        sizes = [len(points) for points in shapes]
        bases = graphs or self.graphs_of(shapes)
        features = torch.cat(list(shapes))  # (M, 3), M = sum of the sizes
        outputs = []
        for layer in self.layers:
            features = layer(features, bases, sizes)  # (M, C)
            outputs.append(features)
        features = self.head(torch.cat(outputs, dim=1))  # (M, D)
        if isinstance(shapes, Tensor):
            stacked: Tensor = features.view(len(sizes), -1, self.config.dimension)  # (B, N, D)
            return stacked
        parts: list[Tensor] = list(features.split(sizes))
        return parts


class DiffusionLayer(nn.Module):
    """Diffusion for a learned time, then a map of own and diffused features: (M, C) -> (M, C')."""

    def __init__(self, inputs: int, outputs: int, *, slope: float, momentum: float) -> None:
        super().__init__()
        low, high = (math.log(time) for time in _TIMES)
        self.log_times = nn.Parameter(torch.linspace(low, high, inputs))  # (C,)
        self.mix = PointwiseLayer(2 * inputs, outputs, slope=slope, momentum=momentum)

    def forward(
        self, features: Tensor, bases: Sequence[LaplacianBasis], sizes: Sequence[int]
    ) -> Tensor:
        """Apply the layer to (M, C) features of several shapes."""
        parts = features.split(list(sizes))
        times = self.log_times.exp()  # (C,)
        diffused = [diffuse(*one, times) for one in zip(parts, bases, strict=True)]
        return self.mix(torch.cat([features, torch.cat(diffused)], dim=1))  # type: ignore[no-any-return]


def diffuse(features: Tensor, basis: LaplacianBasis, times: Tensor) -> Tensor:
    """Features (N, C) of one shape after diffusion for the times (C,), in its eigenbasis."""
    coefficients = basis.functions.T @ (basis.masses[:, None] * features)  # (k, C)
    decay = torch.exp(-basis.values[:, None] * times)  # (k, C)
    return basis.functions @ (decay * coefficients)  # (N, C)
