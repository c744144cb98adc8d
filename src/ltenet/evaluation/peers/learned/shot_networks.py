"""FMNet and its unsupervised relatives: SHOT, improved by residual layers, gives a functional map.

- ``fmnet`` [Litany et al. 2017], supervised: the soft map may not be far from the true partners;
- ``fmnet-unsupervised`` [Halimi et al. 2019]: it must keep geodesic distances;
- ``surfmnet`` [Roufosse et al. 2019]: the functional map must be orthogonal, its own inverse the
  other way, and commute with Laplacians and descriptors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ltenet.errors import InputError
from ltenet.evaluation.peers.learned.functional_layer import functional_map, projected, soft_map
from ltenet.evaluation.peers.learned.partner_rows import PartnerRows
from ltenet.evaluation.peers.learned.spectral_learner import (
    SpectralLearner,
    SpectralPeer,
    SpectralTensors,
)
from ltenet.evaluation.peers.learned.spectral_shapes import Needs, ShapeTensors
from ltenet.evaluation.peers.shot import CHANNELS


@dataclass(frozen=True)
class ShotNetworkConfig:
    """Sizes of the network, and weights of SURFMNet's terms.

    Attributes
    ----------
    functions
        Size of the functional map; published are 120, too many for 1024 points.
    blocks
        Residual layers.
    ridge
        Of the functional map.
    bijective, orthogonal, commuting, descriptors
        Weights of SURFMNet's terms, as published.
    share
        Share of the descriptors whose operators must commute, drawn anew in every step.
    pool
        Shapes to train on.
    """

    functions: int = 40
    blocks: int = 7
    ridge: float = 1e-4
    bijective: float = 1e3
    orthogonal: float = 1e3
    commuting: float = 1.0
    descriptors: float = 1e5
    share: float = 0.2
    pool: int = 400

    def __post_init__(self) -> None:
        if self.functions < 2 or self.blocks < 1 or not 0 < self.share <= 1:
            raise InputError(
                f"shot network: got {self.functions} functions, {self.blocks} blocks and a share "
                f"of {self.share}, expected at least 2, at least 1, and a share up to 1; try the "
                "defaults by leaving them out"
            )


class ResidualLayer(nn.Module):
    """Two linear maps with BatchNorm around a shortcut: (N, C) -> (N, C)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.first_norm, self.second_norm = nn.BatchNorm1d(width), nn.BatchNorm1d(width)

    def forward(self, features: Tensor) -> Tensor:
        """Apply the layer."""
        hidden = F.relu(self.first_norm(self.first(features)))  # (N, C)
        return F.relu(features + self.second_norm(self.second(hidden)))


class ShotNetwork(SpectralLearner):
    """Residual layers on SHOT, and the functional maps of their result."""

    settings = ShotNetworkConfig

    def __init__(self, config: ShotNetworkConfig) -> None:
        super().__init__(config)
        self.layers = nn.Sequential(*(ResidualLayer(CHANNELS) for _ in range(config.blocks)))

    def needs(self) -> Needs:
        """Functions and SHOT."""
        return Needs(self.config.functions, descriptors=True)

    def described(self, shapes: Sequence[ShapeTensors]) -> list[Tensor]:
        """(N_s, 352) improved descriptors of each shape; all share BatchNorm's statistics."""
        given = [shape.descriptors for shape in shapes if shape.descriptors is not None]
        improved: Tensor = self.layers(torch.cat(given))  # (M, 352)
        return list(improved.split([len(own) for own in given]))

    def map_between(self, source: ShapeTensors, target: ShapeTensors) -> Tensor:
        """(k, k) functional map from source to target."""
        size = min(len(source.values), len(target.values))
        a, b = (
            projected(shape.functions[:, :size], shape.masses, features)
            for shape, features in zip(
                (source, target), self.described([source, target]), strict=True
            )
        )  # (k, c) each
        return functional_map(a, b, ridge=self.config.ridge)

    def described_pairs(
        self, pairs: Sequence[SpectralTensors]
    ) -> list[tuple[SpectralTensors, Tensor, Tensor]]:
        """Each pair with the improved descriptors of its source (N, c) and target (M, c)."""
        shapes = [*(pair.source for pair in pairs), *(pair.target for pair in pairs)]
        features, count = self.described(shapes), len(pairs)
        return list(zip(pairs, features[:count], features[count:], strict=True))


class SurfmNetLoss(NamedTuple):
    """The loss and its unweighted terms, each over the size of the map, a mean over pairs."""

    total: Tensor
    bijective: Tensor
    orthogonal: Tensor
    commuting: Tensor
    descriptors: Tensor


def map_penalties(
    forth: Tensor, back: Tensor, source_values: Tensor, target_values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """How far two (k, k) maps are from inverse, from orthogonal, and from commuting with spectra.

    Means of both directions of ``|C D - I|^2``, ``|C^T C - I|^2`` and
    ``|C diag(nu) - diag(mu) C|^2``.
    """
    identity = torch.eye(len(forth), dtype=forth.dtype, device=forth.device)

    def squared(matrix: Tensor) -> Tensor:
        return matrix.square().sum()

    bijective = squared(forth @ back - identity) + squared(back @ forth - identity)
    orthogonal = squared(forth.T @ forth - identity) + squared(back.T @ back - identity)
    commuting = squared(forth * source_values - target_values[:, None] * forth)
    commuting = commuting + squared(back * target_values - source_values[:, None] * back)
    return bijective / 2, orthogonal / 2, commuting / 2


def descriptor_operators(functions: Tensor, masses: Tensor, features: Tensor) -> Tensor:
    """(c, k, k) multiplication by each of (N, c) features: ``Phi^T M diag(f) Phi``."""
    return torch.einsum("ni,nc,nj->cij", functions * masses[:, None], features, functions)


class SurfmNet(ShotNetwork):
    """SURFMNet, unsupervised."""

    system = "surfmnet"

    def loss(self, pairs: Sequence[SpectralTensors], progress: float) -> SurfmNetLoss:
        """Penalties of the maps in both directions."""
        config, sums = self.config, []
        for pair, ours, theirs in self.described_pairs(pairs):
            source, target = pair.source, pair.target
            a = projected(source.functions, source.masses, ours)  # (k, c)
            b = projected(target.functions, target.masses, theirs)  # (k, c)
            forth = functional_map(a, b, ridge=config.ridge)  # (k, k)
            back = functional_map(b, a, ridge=config.ridge)  # (k, k)
            terms = map_penalties(forth, back, source.values, target.values)
            count = max(1, round(config.share * ours.shape[1]))
            chosen = torch.randperm(ours.shape[1], device=ours.device)[:count]  # (d,)
            x = descriptor_operators(source.functions, source.masses, ours[:, chosen])
            y = descriptor_operators(target.functions, target.masses, theirs[:, chosen])
            there = (forth @ x - y @ forth).square().sum() / 2  # half sums of squares
            home = (back @ y - x @ back).square().sum() / 2
            both = (there + home) / 2
            sums.append(torch.stack([*terms, both]) / len(forth))  # (4,)
        bijective, orthogonal, commuting, described = torch.stack(sums).mean(dim=0).unbind()
        total = config.bijective * bijective + config.orthogonal * orthogonal
        total = total + config.commuting * commuting + config.descriptors * described
        return SurfmNetLoss(total, bijective, orthogonal, commuting, described)


class SoftMapLoss(NamedTuple):
    """The loss of a step, a mean over pairs."""

    total: Tensor


class FMNet(ShotNetwork):
    """FMNet, supervised."""

    system = "fmnet"
    supervised = True

    def needs(self) -> Needs:
        """Functions, SHOT and geodesics."""
        return super().needs()._replace(geodesics=True)

    def soft_maps(self, pairs: Sequence[SpectralTensors]) -> list[tuple[SpectralTensors, Tensor]]:
        """Each pair with its (M, N) soft map, whose columns have unit length."""
        found = []
        for pair, ours, theirs in self.described_pairs(pairs):
            source, target = pair.source, pair.target
            a = projected(source.functions, source.masses, ours)  # (k, c)
            b = projected(target.functions, target.masses, theirs)  # (k, c)
            matrix = functional_map(a, b, ridge=self.config.ridge)  # (k, k)
            found.append(
                (pair, soft_map(source.functions, source.masses, target.functions, matrix))
            )
        return found

    def loss(self, pairs: Sequence[SpectralTensors], progress: float) -> SoftMapLoss:
        """Squared soft map times the squared distance from the true partner, over points."""
        losses = []
        for pair, soft in self.soft_maps(pairs):
            assert pair.target.geodesics is not None
            partners = PartnerRows.of(pair.pair)
            nearest = partners.indices[:, 0]  # (n,) of each known source point
            distances = pair.target.geodesics[:, nearest]  # (M, n)
            losses.append((soft[:, partners.rows] * distances).square().sum(dim=0).mean())
        return SoftMapLoss(torch.stack(losses).mean())


class UnsupervisedFMNet(FMNet):
    """The same network, which learns to keep geodesic distances."""

    system = "fmnet-unsupervised"
    supervised = False

    def loss(self, pairs: Sequence[SpectralTensors], progress: float) -> SoftMapLoss:
        """Half the mean of ``(Q^T D_Y Q - D_X)^2`` with ``Q = P o P``."""
        losses = []
        for pair, soft in self.soft_maps(pairs):
            assert pair.source.geodesics is not None
            assert pair.target.geodesics is not None
            shares = soft.square()  # (M, N), columns sum to 1
            carried = shares.T @ pair.target.geodesics @ shares  # (N, N)
            losses.append((carried - pair.source.geodesics).square().mean() / 2)
        return SoftMapLoss(torch.stack(losses).mean())


class SurfmNetPeer(SpectralPeer):
    """SURFMNet as a method."""

    network = SurfmNet


class FMNetPeer(SpectralPeer):
    """FMNet as a method."""

    network = FMNet


class UnsupervisedFMNetPeer(SpectralPeer):
    """Unsupervised FMNet as a method."""

    network = UnsupervisedFMNet
