"""CorrNet3D [Zeng et al. 2021]: a matrix of matches that must rebuild both shapes.

Features of two clouds give similarities, a small network sharpens them ("DeSmooth") into a matrix P
whose columns sum to 1, and one decoder rebuilds X from ``P Y`` and Y from ``P^T X``, each with the
code of the shape it should become. That is all the supervision: no labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltenet.errors import InputError
from ltenet.evaluation.peers.learned.code_decoder import CodeDecoder
from ltenet.evaluation.peers.learned.learner import LearnedPeer, Learner
from ltenet.evaluation.peers.learned.pointnet import JoinedLinear
from ltenet.method.edgeconv import EdgeConv
from ltenet.method.graph import neighbor_graphs
from ltenet.method.losses import smoothness
from ltenet.training.pair_tensors import PairTensors, both_shapes

#: Sharpness of the matches, and what keeps equal features apart from a division by zero.
_SHARPNESS, _TINY = 8.0, 1e-6


@dataclass(frozen=True)
class CorrNet3DConfig:
    """Sizes of the network; the defaults are the published ones.

    Attributes
    ----------
    points
        Points of every shape: the matrix of matches is tied to it.
    widths
        Output channels of the EdgeConv layers.
    local
        Channels of a point before the code is joined.
    head
        Channels after that; the last are the features.
    sharpener
        Hidden channels of DeSmooth.
    decoder
        Hidden channels of the decoder.
    neighbors
        Of a point in every layer, itself included.
    groups
        Of GroupNorm.
    rebuilt, bijective, smooth
        Weights of the three terms of the loss.
    """

    points: int = 1024
    widths: tuple[int, ...] = (64, 64, 128, 256)
    local: int = 512
    head: tuple[int, ...] = (512, 256, 128)
    sharpener: int = 1152
    decoder: tuple[int, ...] = (1027, 513, 256)
    neighbors: int = 20
    groups: int = 32
    rebuilt: float = 10.0
    bijective: float = 1.0
    smooth: float = 0.1

    def __post_init__(self) -> None:
        if not (self.widths and self.head and self.decoder and self.points > self.neighbors >= 2):
            raise InputError(
                f"corrnet3d: got widths {self.widths}, {self.head}, {self.decoder} and "
                f"{self.neighbors} neighbours of {self.points} points, expected some layers, and "
                "fewer neighbours than points; try the defaults by leaving them out"
            )


class CorrNet3DLoss(NamedTuple):
    """The loss and its unweighted terms, each a mean over the batch."""

    total: Tensor
    rebuilt: Tensor
    bijective: Tensor
    smooth: Tensor


class _Encoder(nn.Module):
    """DGCNN with a dynamic graph: (N, 3) points -> point features and a code of the shape."""

    def __init__(self, config: CorrNet3DConfig) -> None:
        super().__init__()
        self.neighbors = config.neighbors
        self.layers = nn.ModuleList(
            EdgeConv(*sizes, slope=0.2, momentum=0.1) for sizes in pairwise((3, *config.widths))
        )
        self.local = nn.Linear(sum(config.widths), config.local, bias=False)
        self.local_norm = nn.GroupNorm(config.groups, config.local)
        self.joined = JoinedLinear(config.local, 2 * config.local, config.head[0])
        self.head = nn.ModuleList(nn.Linear(*sizes) for sizes in pairwise(config.head))
        self.norms = nn.ModuleList(nn.GroupNorm(config.groups, width) for width in config.head)

    def forward(self, shapes: Tensor) -> tuple[Tensor, Tensor]:
        """Embed (B, N, 3): features (B, N, D) and codes (B, Z)."""
        batch, count = shapes.shape[:2]
        sizes = [count] * batch
        features, outputs = shapes.flatten(0, 1), []  # (M, 3)
        for layer in self.layers:
            graph = neighbor_graphs(list(features.split(sizes)), self.neighbors, (1,))[0]
            features = layer(features, graph)  # (M, C)
            outputs.append(features)
        mixed = self.local(torch.cat(outputs, dim=1)).view(batch, count, -1)  # (B, N, C)
        local = F.leaky_relu(_grouped(self.local_norm, mixed), 0.2)  # (B, N, C)
        codes = torch.cat([local.amax(dim=1), local.mean(dim=1)], dim=1)  # (B, 2 C)
        joined = self.joined(local.flatten(0, 1), codes, sizes).view(batch, count, -1)
        features = F.relu(_grouped(self.norms[0], joined))  # (B, N, C)
        for linear, norm in zip(self.head, self.norms[1:], strict=True):
            features = F.relu(_grouped(norm, linear(features)))  # (B, N, C)
        return features, codes


def _grouped(norm: nn.Module, features: Tensor) -> Tensor:
    """GroupNorm of (B, N, C) over points and groups of channels."""
    normed: Tensor = norm(features.transpose(1, 2)).transpose(1, 2)
    return normed


class Sharpener(nn.Module):
    """DeSmooth: inverse distances (B, N, M) -> logits (B, N, M) of the matches."""

    def __init__(self, points: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(points, hidden, bias=False)
        self.second = nn.Linear(hidden, points, bias=False)

    def forward(self, similarities: Tensor) -> Tensor:
        """Sharpen; the result has mean 0 and spread 1 along the sources."""
        hidden = _standard(F.relu(self.first(similarities)), dim=2)  # (B, N, H)
        return _standard(self.second(hidden), dim=1)  # (B, N, M)


def _standard(values: Tensor, *, dim: int) -> Tensor:
    """Shift and scale to mean 0 and variance 1 along an axis."""
    variance, mean = torch.var_mean(values, dim=dim, keepdim=True, correction=0)
    return (values - mean) * torch.rsqrt(variance + 1e-5)


class CorrNet3D(Learner):
    """The network, unsupervised."""

    system = "corrnet3d"
    settings = CorrNet3DConfig

    def __init__(self, config: CorrNet3DConfig) -> None:
        super().__init__(config)
        self.points = config.points
        self.encoder = _Encoder(config)
        self.sharpener = Sharpener(config.points, config.sharpener)
        self.decoder = CodeDecoder(2 * config.local, config.decoder)

    def matches(self, source: Tensor, target: Tensor) -> Tensor:
        """(B, N, N) of (B, N, D) features each; columns, one for each target, sum to 1."""
        squares = torch.cdist(source, target, compute_mode="donot_use_mm_for_euclid_dist").square()
        logits: Tensor = self.sharpener(1 / (squares + _TINY))  # (B, N, N)
        # The forward pass is sharper than what the gradient sees.
        logits = logits + (logits * (_SHARPNESS - 1)).detach()
        return logits.softmax(dim=1)

    def loss(self, pairs: Sequence[PairTensors], progress: float) -> CorrNet3DLoss:
        """Rebuild each shape from the other; see the module."""
        shapes = both_shapes(pairs)
        sizes = {len(points) for points in shapes}
        if sizes != {self.points}:
            raise InputError(
                f"corrnet3d: got shapes of {', '.join(map(str, sorted(sizes)))} points, expected "
                f"{self.points}, which the network is tied to; try "
                f"--set network.points={max(sizes)}"
            )
        features, codes = self.encoder(torch.stack(shapes))  # (2 B, N, D), (2 B, Z)
        (x, y), (f, g) = torch.stack(shapes).chunk(2), features.chunk(2)  # (B, N, 3), (B, N, D)
        matches = self.matches(f, g)  # (B, N, N)
        from_target, from_source = matches @ y, matches.transpose(1, 2) @ x  # (B, N, 3) each
        drafts = torch.cat([from_target, from_source])  # (2 B, N, 3)
        rebuilt = torch.stack(self.decoder(list(drafts), codes))  # (2 B, N, 3)
        apart = torch.linalg.vector_norm(torch.stack(shapes) - rebuilt, dim=(1, 2))  # (2 B,)
        identity = torch.eye(self.points, dtype=x.dtype, device=x.device)  # (N, N)
        overlap = matches @ matches.transpose(1, 2) - identity  # (B, N, N)
        bijective = torch.linalg.vector_norm(overlap, dim=(1, 2)).mean()
        smooth = (smoothness(x, from_target) + smoothness(y, from_source)).mean()
        own, config = 2 * apart.mean(), self.config
        total = config.rebuilt * own + config.bijective * bijective + config.smooth * smooth
        return CorrNet3DLoss(total, own, bijective, smooth)

    def partners(self, source: Tensor, target: Tensor) -> Tensor:
        """(N,) the target with the largest entry of P; shapes with fewer points repeat some."""
        wanted = torch.arange(self.points, device=source.device)
        rows, columns = wanted % len(source), wanted % len(target)  # (P,) each
        features, _ = self.encoder(torch.stack([source[rows], target[columns]]))  # (2, P, D)
        matches = self.matches(features[:1], features[1:])[0]  # (P, P)
        return columns[matches[: len(source)].argmax(dim=1)]


class CorrNet3DPeer(LearnedPeer):
    """The largest match of each source point."""

    network = CorrNet3D
