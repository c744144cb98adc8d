"""PointNet features, matched by cosine: our supervised loss on a network without neighbours.

It tells what EdgeConv brings: everything but the encoder is as in our preset `human`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from torch import Tensor

from ltenet.evaluation.peers.learned.learner import LearnedPeer, Learner
from ltenet.evaluation.peers.learned.pointnet import PointNet, PointNetConfig
from ltenet.method.neighbors import cosine_topk
from ltenet.training.config import KnownTerm
from ltenet.training.objectives import known_loss
from ltenet.training.pair_tensors import PairTensors, both_shapes


@dataclass(frozen=True)
class PointNetFeaturesConfig:
    """The network, and the temperature and width of the loss.

    Attributes
    ----------
    pointnet
        Its widths.
    temperature, width
        As for known correspondences, see `KnownTerm`.
    """

    pointnet: PointNetConfig = field(default_factory=PointNetConfig)
    temperature: float = 0.05
    width: float = 0.03


class MatchingLoss(NamedTuple):
    """The loss of a step."""

    total: Tensor


class PointNetFeatures(Learner):
    """Features of points, supervised by known correspondences."""

    system = "pointnet"
    settings = PointNetFeaturesConfig
    supervised = True

    def __init__(self, config: PointNetFeaturesConfig) -> None:
        super().__init__(config)
        self.encoder = PointNet(config.pointnet)
        self.term = KnownTerm(weight=1.0, temperature=config.temperature, width=config.width)

    def loss(self, pairs: Sequence[PairTensors], progress: float) -> MatchingLoss:
        """Cross-entropy between similarities and Gaussians around the known positions."""
        count = len(pairs)
        shapes = both_shapes(pairs)
        features = self.encoder(shapes)  # 2 B x (N, K)
        return MatchingLoss(known_loss(pairs, features[:count], features[count:], self.term))

    def partners(self, source: Tensor, target: Tensor) -> Tensor:
        """(N,) the most similar target point of each source point."""
        ours, theirs = self.encoder([source, target])  # (N, K), (M, K)
        nearest: Tensor = cosine_topk(ours, theirs, 1).indices[:, 0]
        return nearest


class PointNetPeer(LearnedPeer):
    """Nearest PointNet feature."""

    network = PointNetFeatures
