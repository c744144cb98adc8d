"""Diff-FMaps [Marin et al. 2020]: a learned basis, and learned descriptors for the map between.

A PointNet gives every shape a basis of k functions in which correspondence is a linear map C. In
the first half of a run the basis is learned from the best C, which needs the truth; in the second
half the basis is fixed and another PointNet learns descriptors from which C follows without it.
The universal variant has no C: its basis alone is an embedding that all shapes share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.evaluation.peers.learned.learner import LearnedPeer, Learner
from ltenet.evaluation.peers.learned.partner_rows import PartnerRows
from ltenet.evaluation.peers.learned.pointnet import PointNet, PointNetConfig
from ltenet.refinement.zoomout import euclidean_topk
from ltenet.training.pair_tensors import PairTensors, both_shapes

#: Ridge of least squares, relative to the mean square of a basis function.
_RIDGE = 1e-6


@dataclass(frozen=True)
class DiffFMapsConfig:
    """The two networks; the defaults are the published ones.

    Attributes
    ----------
    basis, descriptors
        PointNets; their outputs are the sizes of basis and descriptor.
    stage
        Share of the run in which the basis is learned.
    """

    basis: PointNetConfig = field(default_factory=lambda: PointNetConfig(outputs=20))
    descriptors: PointNetConfig = field(
        default_factory=lambda: PointNetConfig(head=(512, 256, 256), outputs=40)
    )
    stage: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.stage <= 1:
            raise InputError(
                f"diff-fmaps: got a first stage of {self.stage}, expected a share of the run; "
                "try 0.5"
            )


@dataclass(frozen=True)
class UniversalConfig:
    """The one network of the universal variant."""

    basis: PointNetConfig = field(default_factory=lambda: PointNetConfig(outputs=20))


class BasisLoss(NamedTuple):
    """The loss of a step; the stage that is not at work has none."""

    total: Tensor
    basis: Tensor
    descriptors: Tensor


def least_squares(basis: Tensor, values: Tensor) -> Tensor:
    """(k, c) coefficients of (n, c) values in (n, k) functions, with a small ridge."""
    gram = basis.T @ basis  # (k, k)
    ridge = _RIDGE * gram.diagonal().mean().clamp_min(1e-30)
    system = gram + ridge * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    solved: Tensor = torch.linalg.solve(system, basis.T @ values)  # (k, c)
    return solved


def soft_positions(first: Tensor, second: Tensor, positions: Tensor) -> Tensor:
    """(n, 3) means of (m, 3) positions, weighted by ``softmax_j(-|a_i - b_j|)`` of the rows."""
    # The square root has no slope at zero.
    squares = (first[:, None] - second).square().sum(dim=2)  # (n, m)
    weights = (-(squares + 1e-12).sqrt()).softmax(dim=1)  # (n, m)
    return weights @ positions


class DiffFMaps(Learner):
    """Basis and descriptors, supervised."""

    system = "diff-fmaps"
    settings = DiffFMapsConfig
    supervised = True

    def __init__(self, config: DiffFMapsConfig) -> None:
        super().__init__(config)
        self.basis = PointNet(config.basis)
        self.descriptors = PointNet(config.descriptors)

    def loss(self, pairs: Sequence[PairTensors], progress: float) -> BasisLoss:
        """Learn the basis first, then the descriptors in the fixed basis."""
        if progress < self.config.stage:
            loss = basis_loss(self.basis, pairs, linear=True)
            return BasisLoss(loss, loss.detach(), torch.zeros_like(loss))
        shapes, count = both_shapes(pairs), len(pairs)
        training = self.basis.training
        self.basis.eval()
        with torch.no_grad():
            bases = self.basis(shapes)  # 2 B x (N, k)
        self.basis.train(training)
        described = self.descriptors(shapes)  # 2 B x (N, c)
        losses = []
        for number, pair in enumerate(pairs):
            ours, theirs = bases[number], bases[count + number]  # (N, k), (M, k)
            partners = PartnerRows.of(pair)
            best = least_squares(ours[partners.rows], partners.values(theirs))  # (k, k)
            found = estimated_map(ours, theirs, described[number], described[count + number])
            losses.append((found - best).square().mean())
        loss = torch.stack(losses).mean()
        return BasisLoss(loss, torch.zeros_like(loss), loss.detach())

    def partners(self, source: Tensor, target: Tensor) -> Tensor:
        """(N,) target point with the nearest row of the basis, after the estimated map."""
        ours, theirs = self.basis([source, target])  # (N, k), (M, k)
        matrix = estimated_map(ours, theirs, *self.descriptors([source, target]))  # (k, k)
        return euclidean_topk(ours @ matrix, theirs, 1).indices[:, 0]


def basis_loss(basis: PointNet, pairs: Sequence[PairTensors], *, linear: bool) -> Tensor:
    """Sum over pairs of the squared distances between soft and true positions.

    Parameters
    ----------
    basis
        The network.
    pairs
        With known correspondences.
    linear
        Put the best linear map between the bases; else they must agree as they are.
    """
    bases, count = basis(both_shapes(pairs)), len(pairs)
    losses = []
    for number, pair in enumerate(pairs):
        partners = PartnerRows.of(pair)
        ours = bases[number][partners.rows]  # (n, k)
        theirs = partners.values(bases[count + number])  # (n, k)
        moved = ours @ least_squares(ours, theirs) if linear else ours  # (n, k)
        truth = pair.source_truth[partners.rows]  # (n, 3)
        losses.append((soft_positions(moved, theirs, truth) - truth).square().sum())
    return torch.stack(losses).sum()


def estimated_map(ours: Tensor, theirs: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """(k, k) map C with ``ours C ~ theirs`` at partners, from descriptors that agree there.

    Parameters
    ----------
    ours, theirs
        (N, k) and (M, k) bases.
    first, second
        (N, c) and (M, c) descriptors. With coefficients a and b of these, ``C b = a``.
    """
    a, b = least_squares(ours, first), least_squares(theirs, second)  # (k, c) each
    return least_squares(b.T, a.T).T  # (k, k)


class UniversalEmbedding(Learner):
    """The basis as an embedding of all shapes, supervised."""

    system = "diff-fmaps-universal"
    settings = UniversalConfig
    supervised = True

    def __init__(self, config: UniversalConfig) -> None:
        super().__init__(config)
        self.basis = PointNet(config.basis)

    def loss(self, pairs: Sequence[PairTensors], progress: float) -> BasisLoss:
        """Learn the embedding."""
        loss = basis_loss(self.basis, pairs, linear=False)
        return BasisLoss(loss, loss.detach(), torch.zeros_like(loss))

    def partners(self, source: Tensor, target: Tensor) -> Tensor:
        """(N,) target point with the nearest row."""
        ours, theirs = self.basis([source, target])  # (N, k), (M, k)
        return euclidean_topk(ours, theirs, 1).indices[:, 0]


class DiffFMapsPeer(LearnedPeer):
    """Nearest row of the learned basis after the estimated map."""

    network = DiffFMaps


class UniversalPeer(LearnedPeer):
    """Nearest row of the universal embedding."""

    network = UniversalEmbedding
