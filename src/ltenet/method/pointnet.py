"""PointNet [Qi et al. 2017] as the encoder: each point by itself, and the shape as one maximum.

Layers of `PointwiseLayer` follow one another. The maximum over the points of the last layer
describes the shape; it stands beside the outputs of all layers, as in PointNet's network for parts,
and all are mapped to D. It is the least that an encoder can be: a point sees its neighbours only
through that maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from ltenet.method.batchnorm import PointwiseLayer
from ltenet.method.encoder import EncoderConfig


class PointNet(nn.Module):
    """The network: (B, N, 3) -> (B, N, D), or a sequence of (N_s, 3) -> a list of (N_s, D)."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        make = partial(PointwiseLayer, slope=config.slope, momentum=config.momentum)
        inputs = (3, *config.widths[:-1])
        self.layers = nn.ModuleList(
            make(*channels) for channels in zip(inputs, config.widths, strict=True)
        )
        self.head = make(sum(config.widths) + config.widths[-1], config.dimension)

    def share_statistics(self) -> None:
        """Let BatchNorm see the batches of all processes as one, from now on."""
        for layer in (*self.layers, self.head):
            layer.shared = True

    def graphs_of(
        self, shapes: Tensor | Sequence[Tensor], faces: Tensor | None = None
    ) -> list[Tensor]:
        """Nothing: points are not linked."""
        return []

    def forward(
        self, shapes: Tensor | Sequence[Tensor], graphs: Sequence[Tensor] | None = None
    ) -> Tensor | list[Tensor]:
        """Embed a batch of shapes."""
        sizes = [len(points) for points in shapes]
        features = torch.cat(list(shapes))  # (M, 3), M = sum of the sizes
        outputs = []
        for layer in self.layers:
            features = layer(features)  # (M, C)
            outputs.append(features)
        whole = [part.amax(dim=0).expand_as(part) for part in features.split(sizes)]  # (N_s, C)
        features = self.head(torch.cat([*outputs, torch.cat(whole)], dim=1))  # (M, D)
        if isinstance(shapes, Tensor):
            stacked: Tensor = features.view(len(sizes), -1, self.config.dimension)  # (B, N, D)
            return stacked
        parts: list[Tensor] = list(features.split(sizes))
        return parts
