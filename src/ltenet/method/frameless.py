"""What an encoder without a canonical frame reads in place of coordinates.

Rotation-invariant measures of each point (see `invariants`) do not tell left from right, nor one
leg from another. Axes do: a small network weighs the points by these measures, and the weighted
sums ``u_k = sum_i w_ik x_i`` are directions that turn with the shape, as the frame of a body does.
Each point then has the coordinates ``x_i . u_k``, and ``x_i . (u_k x u_l)``, whose sign a
reflection changes: the network finds a frame of its own for each shape, end to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltenet.method.edgeconv import EdgeConv
from ltenet.method.graph import NeighborGraph
from ltenet.method.invariants import SCALES, invariants

Inputs = Literal["coordinates", "invariants", "axes"]
INPUTS: tuple[Inputs, ...] = ("coordinates", "invariants", "axes")
_MEASURES = 1 + 5 * len(SCALES)
_WIDTHS, _HIDDEN, _AXES = (64, 96), 128, 6
#: Root-mean-square extent along an axis of a shape with the canonical radius of 0.5.
_EXTENT = 0.3
#: Length of an axis at which it fades, relative to one whose weights are coordinates along it.
_FAINT = 0.1


def input_channels(inputs: Inputs) -> int:
    """Channels of each point that the first layer of the encoder reads."""
    return {"coordinates": 3, "invariants": _MEASURES, "axes": _MEASURES + 2 * _AXES}[inputs]


def scaled_invariants(points: Tensor) -> Tensor:
    """(N, 16) `invariants` of (N, 3) points, those of a neighbourhood relative to its size."""
    measures = invariants(points)  # (N, 16)
    # A neighbourhood of s among N points is about sqrt(s / N) wide, whatever the density.
    widths = [(min(scale, len(points)) / len(points)) ** 0.5 for scale in SCALES]
    sizes = [1.0, *(width for width in widths for _ in range(5))]  # 16
    return measures / measures.new_tensor(sizes)  # (N, 16)


def standardized(weights: Tensor) -> Tensor:
    """(N, A) weights with mean 0 and variance 1 over the points, for each axis."""
    centred = weights - weights.mean(dim=0)  # (N, A)
    return centred / (centred.square().mean(dim=0) + 1e-8).sqrt()


class Axes(nn.Module):
    """Finds directions that turn with a shape, and coordinates along them."""

    def __init__(self, *, slope: float, momentum: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            EdgeConv(*channels, slope=slope, momentum=momentum)
            for channels in zip((_MEASURES, *_WIDTHS[:-1]), _WIDTHS, strict=True)
        )
        self.local = nn.Linear(sum(_WIDTHS), _HIDDEN)
        # The pooled features tell every point what the whole shape looks like.
        self.whole = nn.Linear(2 * _HIDDEN, _HIDDEN)
        self.weigh = nn.Linear(_HIDDEN, _AXES)
        self.slope = slope

    def forward(
        self, shapes: Sequence[Tensor], measures: Tensor, graphs: Sequence[NeighborGraph]
    ) -> Tensor:
        """Coordinates (M, 2 A) of all points along A axes and along their cross products.

        Parameters
        ----------
        shapes
            (N_s, 3) points each.
        measures
            (M, 16) of all points, M the sum of the sizes.
        graphs
            Near and wide neighbours of all points.
        """
        outputs, features = [], measures
        for layer, graph in zip(self.layers, (graphs[0], graphs[-1]), strict=True):
            features = layer(features, graph)  # (M, C)
            outputs.append(features)
        local = self.local(torch.cat(outputs, dim=1))  # (M, H)
        coordinates = []
        sizes = [len(points) for points in shapes]
        for points, own in zip(shapes, local.split(sizes), strict=True):
            pooled = torch.cat([own.amax(dim=0), own.mean(dim=0)])  # (2 H,)
            hidden = F.leaky_relu(own + self.whole(pooled), self.slope)  # (N, H)
            weights = standardized(self.weigh(hidden))  # (N, A)
            centred = points - points.mean(dim=0)  # (N, 3)
            axes = weights.T @ centred / (_EXTENT * len(points))  # (A, 3)
            # Of unit length, but for axes that a symmetric shape cannot have: they fade.
            axes = axes / (axes.square().sum(dim=1, keepdim=True) + _FAINT**2).sqrt()  # (A, 3)
            across = torch.linalg.cross(axes, axes.roll(1, dims=0))  # (A, 3)
            coordinates.append(centred @ torch.cat([axes, across]).T)  # (N, 2 A)
        return torch.cat(coordinates)


class FramelessInput(nn.Module):
    """What the first layer reads of a batch: measures, and coordinates along axes if asked for."""

    def __init__(self, inputs: Inputs, *, slope: float, momentum: float) -> None:
        super().__init__()
        self.axes = Axes(slope=slope, momentum=momentum) if inputs == "axes" else None

    def forward(self, shapes: Sequence[Tensor], graphs: Sequence[NeighborGraph]) -> Tensor:
        """(M, C) input of all points of a batch of (N_s, 3) shapes."""
        measures = torch.cat([scaled_invariants(points) for points in shapes])  # (M, 16)
        if self.axes is None:
            return measures
        return torch.cat([measures, self.axes(shapes, measures, graphs)], dim=1)
