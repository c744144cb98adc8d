"""PointNet [Qi et al. 2017]: one network for every point, joined by a maximum over the shape.

Shapes of a batch may differ in size. They travel as one (M, C) matrix of all their points, with the
list of their sizes, and share the statistics of BatchNorm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltenet.errors import InputError


def hidden_layers(widths: Sequence[int]) -> nn.Sequential:
    """Linear map, BatchNorm and ReLU from each width to the next."""
    layers = [
        nn.Sequential(nn.Linear(*sizes), nn.BatchNorm1d(sizes[1]), nn.ReLU())
        for sizes in pairwise(widths)
    ]
    return nn.Sequential(*layers)


def pooled(features: Tensor, sizes: Sequence[int]) -> Tensor:
    """(B, C) maximum of (M, C) features over the points of each shape."""
    return torch.stack([own.amax(dim=0) for own in features.split(list(sizes))])


def repeated(codes: Tensor, sizes: Sequence[int]) -> Tensor:
    """(M, C): each of (B, C) codes at every point of its shape."""
    return codes.repeat_interleave(torch.tensor(sizes, device=codes.device), dim=0)


class JoinedLinear(nn.Module):
    """A linear map of [point feature, code of the shape], without ever joining the two.

    ``W [x_i, z] + b = W_x x_i + (W_z z + b)``: the second part is computed once for each shape.
    """

    def __init__(self, point_width: int, code_width: int, outputs: int) -> None:
        super().__init__()
        self.point_width = point_width
        self.linear = nn.Linear(point_width + code_width, outputs)

    def forward(self, points: Tensor, codes: Tensor, sizes: Sequence[int]) -> Tensor:
        """Map (M, P) point features and (B, Z) codes to (M, C)."""
        weight = self.linear.weight  # (C, P + Z)
        shared = F.linear(codes, weight[:, self.point_width :], self.linear.bias)  # (B, C)
        own = F.linear(points, weight[:, : self.point_width])  # (M, C)
        return own + repeated(shared, sizes)


@dataclass(frozen=True)
class PointNetConfig:
    """Widths of a PointNet that describes points; the defaults are those of Diff-FMaps.

    Attributes
    ----------
    trunk
        Layers of every point before the maximum.
    code
        Layers of the maximum.
    head
        Layers of the point joined with the code.
    outputs
        Channels of the result.
    dropout
        Before the last, linear layer.
    """

    trunk: tuple[int, ...] = (64, 64, 64, 128, 128, 128, 1024)
    code: tuple[int, ...] = (256, 256)
    head: tuple[int, ...] = (512, 256, 256, 256)
    outputs: int = 128
    dropout: float = 0.3

    def __post_init__(self) -> None:
        widths = (*self.trunk, *self.code, *self.head, self.outputs)
        if not (self.trunk and self.code and self.head and min(widths) >= 1):
            raise InputError(
                f"pointnet: got widths {self.trunk}, {self.code}, {self.head} and {self.outputs}, "
                "expected at least one layer in each part; try the defaults by leaving them out"
            )
        if not 0 <= self.dropout < 1:
            raise InputError(
                f"pointnet: got dropout {self.dropout}, expected a share below 1; try 0.3"
            )


class PointNet(nn.Module):
    """Describe points: a sequence of (N_s, 3) shapes -> a list of (N_s, K)."""

    def __init__(self, config: PointNetConfig) -> None:
        super().__init__()
        self.trunk = hidden_layers((3, *config.trunk))
        self.code = hidden_layers((config.trunk[-1], *config.code))
        self.joined = JoinedLinear(config.trunk[-1], config.code[-1], config.head[0])
        self.norm = nn.BatchNorm1d(config.head[0])
        self.head = hidden_layers(config.head)
        self.dropout = nn.Dropout(config.dropout)
        self.last = nn.Linear(config.head[-1], config.outputs)

    def forward(self, shapes: Sequence[Tensor]) -> list[Tensor]:
        """Embed a batch of shapes; in training at least two, for BatchNorm of their codes."""
        sizes = [len(points) for points in shapes]
        local = self.trunk(torch.cat(list(shapes)))  # (M, C)
        codes = self.code(pooled(local, sizes))  # (B, Z)
        features = F.relu(self.norm(self.joined(local, codes, sizes)))  # (M, H)
        outputs: Tensor = self.last(self.dropout(self.head(features)))  # (M, K)
        return list(outputs.split(sizes))
