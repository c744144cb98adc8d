"""The two networks that find the frame of a body: tensors in, tensors out.

The *finder* proposes a frame from rotation-invariant measures alone (distance from the centroid,
curvature of neighbourhoods of several sizes): it weighs the points twice, and the weighted sums of
the points are the directions of up and front,

    up = sum_i a_i x_i,    front = sum_i b_i x_i,

which turn with the shape. Left follows from the two. What it cannot see is how parts lie relative
to each other, so it sometimes takes front for back. The *critic* can: it reads the coordinates in
a proposed frame, tells how likely that frame is right and which kind of body it shows, and
corrects the frame.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltenet.method.edgeconv import EdgeConv
from ltenet.method.graph import NeighborGraph, neighbor_graphs
from ltenet.method.invariants import SCALES, invariants

#: What the critic tells apart, by the weights that know it; the last are neither people nor animals
#: and have no frame.
KINDS = ("human", "animal", "any")
#: Points that the networks see.
POINTS = 1024
_WIDTHS, _DILATIONS, _NEIGHBORS = (64, 96, 128), (1, 4, 12), 16
_CHANNELS = 256
#: Channels of each point that the finder hands on, and widths of the critic.
_DETAIL, _CRITIC_WIDTHS, _CRITIC_CHANNELS = 32, (64, 128, 192), 512
_SLOPE, _MOMENTUM = 0.2, 0.1


class Proposal(NamedTuple):
    """What the finder sees in B shapes of N points.

    Attributes
    ----------
    directions
        (B, 2, 3) up and front, of length 1 where it is sure and shorter elsewhere.
    details
        (B N, C) rotation-invariant features of the points.
    graphs
        Neighbours of the points, one graph for each layer.
    """

    directions: Tensor
    details: Tensor
    graphs: list[NeighborGraph]


class Finder(nn.Module):
    """Proposes frames: (B, N, 3) points, centred and of one size -> `Proposal`."""

    def __init__(self, *, scales: tuple[int, ...] = SCALES) -> None:
        super().__init__()
        self.scales = scales
        inputs = (1 + 5 * len(scales), *_WIDTHS[:-1])
        self.norm = nn.BatchNorm1d(inputs[0], momentum=_MOMENTUM)
        self.layers = _edge_layers(inputs, _WIDTHS)
        self.local = nn.Linear(sum(_WIDTHS), _CHANNELS)
        # The pooled features tell every point what the whole shape looks like.
        self.whole = nn.Linear(2 * _CHANNELS, _CHANNELS)
        self.joined = nn.Linear(_CHANNELS, _CHANNELS // 2)
        self.weigh = nn.Linear(_CHANNELS // 2, 2)

    def forward(self, points: Tensor, measures: Tensor | None = None) -> Proposal:
        """Find up and front.

        Parameters
        ----------
        points
            (B, N, 3)
        measures
            (B, N, 1 + 5 scales) `invariants` of the points, if they are known.
        """
        batch, count = points.shape[:2]
        if measures is None:
            measures = torch.stack([invariants(shape, self.scales) for shape in points])
        graphs = neighbor_graphs(list(points), _NEIGHBORS, _DILATIONS)
        features = _through(self.layers, self.norm(measures.flatten(0, 1)), graphs)  # (B N, C)
        local = self.local(features).view(batch, count, -1)  # (B, N, C)
        hidden = F.leaky_relu(local + self.whole(_pooled(local))[:, None], _SLOPE)  # (B, N, C)
        hidden = F.leaky_relu(self.joined(hidden), _SLOPE)  # (B, N, C / 2)
        weights = self.weigh(hidden)  # (B, N, 2)
        centred = points - points.mean(dim=1, keepdim=True)  # (B, N, 3)
        # Divided by the spread of the points: weights of about one give vectors of about one.
        directions = torch.einsum("bnc,bnd->bcd", weights, centred) / (0.3 * count)
        return Proposal(directions, hidden.flatten(0, 1), graphs)


class Verdict(NamedTuple):
    """What the critic says of B proposed frames.

    Attributes
    ----------
    right
        (B,) logits of the frame being right.
    directions
        (B, 2, 3) where up and front really are, in the proposed frame.
    kinds
        (B, kinds) logits.
    """

    right: Tensor
    directions: Tensor
    kinds: Tensor


class Critic(nn.Module):
    """Judges frames: (B, N, 3) points in the proposed frame, with their details -> `Verdict`.

    `kinds` is how many of `KINDS` it tells apart: two in files of older versions.
    """

    def __init__(self, *, kinds: int = len(KINDS)) -> None:
        super().__init__()
        self.kinds = kinds
        self.detail = nn.Linear(_CHANNELS // 2, _DETAIL)
        self.layers = _edge_layers((3 + _DETAIL, *_CRITIC_WIDTHS[:-1]), _CRITIC_WIDTHS)
        self.local = nn.Linear(sum(_CRITIC_WIDTHS), _CRITIC_CHANNELS)
        # Weighted sums of the points, as the finder's directions are: they turn with the shape.
        self.hidden = nn.Linear(2 * _CRITIC_CHANNELS + 3 * _DETAIL, _CHANNELS)
        self.verdict = nn.Linear(_CHANNELS, 1 + 6 + kinds)

    def forward(self, points: Tensor, details: Tensor, graphs: list[NeighborGraph]) -> Verdict:
        """Judge; `details` and `graphs` are those of a `Proposal` of the same B shapes."""
        batch, count = points.shape[:2]
        detail = self.detail(details)  # (B N, c)
        features = torch.cat([points.flatten(0, 1), detail], dim=1)  # (B N, 3 + c)
        local = self.local(_through(self.layers, features, graphs))  # (B N, C)
        local = F.leaky_relu(local, _SLOPE).view(batch, count, -1)  # (B, N, C)
        centred = points - points.mean(dim=1, keepdim=True)  # (B, N, 3)
        sums = torch.einsum("bnc,bnd->bcd", detail.view(batch, count, -1), centred)  # (B, c, 3)
        whole = torch.cat(
            [_pooled(local), sums.flatten(1) / (0.3 * count)], dim=1
        )  # (B, 2 C + 3 c)
        hidden = F.leaky_relu(self.hidden(whole), _SLOPE)  # (B, C)
        right, directions, kinds = self.verdict(hidden).split([1, 6, self.kinds], dim=1)
        return Verdict(right[:, 0], directions.view(batch, 2, 3), kinds)


def rotation_from(directions: Tensor) -> Tensor:
    """(..., 2, 3) up and front -> (..., 3, 3) rotations that bring them to +y and +z."""
    up = F.normalize(directions[..., 0, :], dim=-1)  # (..., 3)
    front = directions[..., 1, :]  # (..., 3)
    front = F.normalize(front - (front * up).sum(-1, keepdim=True) * up, dim=-1)  # (..., 3)
    left = torch.linalg.cross(up, front)  # (..., 3)
    return torch.stack([left, up, front], dim=-2)


def _edge_layers(inputs: tuple[int, ...], outputs: tuple[int, ...]) -> nn.ModuleList:
    return nn.ModuleList(
        EdgeConv(*channels, slope=_SLOPE, momentum=_MOMENTUM)
        for channels in zip(inputs, outputs, strict=True)
    )


def _through(layers: nn.ModuleList, features: Tensor, graphs: list[NeighborGraph]) -> Tensor:
    """Concatenate the outputs (M, C) of all layers."""
    outputs = []
    for layer, graph in zip(layers, graphs, strict=True):
        features = layer(features, graph)  # (M, C)
        outputs.append(features)
    return torch.cat(outputs, dim=1)


def _pooled(local: Tensor) -> Tensor:
    """(B, 2 C) largest and mean features of (B, N, C)."""
    return torch.cat([local.amax(dim=1), local.mean(dim=1)], dim=1)
