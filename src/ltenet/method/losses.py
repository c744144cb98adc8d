"""The training objective (Eq. 11, 12): cross- and self-reconstruction, and smoothness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.method.divergence import DivergenceConfig, divergence
from ltenet.method.neighbors import knn_graph
from ltenet.method.reconstruction import reconstruct_pair
from ltenet.method.transforms import TransformConfig


@dataclass(frozen=True)
class ObjectiveConfig:
    """Weights of the terms; the defaults are the paper's. A term with weight 0 is not computed.

    Attributes
    ----------
    cross
        Divergence between each shape and its reconstruction from the other.
    itself
        Divergence between each shape and its reconstruction from itself.
    smoothness
        Neighbouring points should be rebuilt as neighbours.
    smoothness_neighbors
        Nearest points in the smoothness term, the point itself included. As in DPC, the mean runs
        over the others only: 9 for 10.
    alpha
        Squared distance at which a neighbour's weight in the smoothness term has fallen to 1/e.
    """

    cross: float = 1.0
    itself: float = 1.0
    smoothness: float = 10.0
    smoothness_neighbors: int = 10
    alpha: float = 8.0

    def __post_init__(self) -> None:
        if min(self.cross, self.itself, self.smoothness) < 0 or self.alpha <= 0:
            raise InputError(
                f"objective: got weights {self.cross}, {self.itself}, {self.smoothness} and alpha "
                f"{self.alpha}, expected weights of at least 0 and a positive alpha; try the "
                "paper's 1, 1, 10 and 8"
            )
        if self.smoothness_neighbors < 2:
            raise InputError(
                f"objective: got smoothness_neighbors {self.smoothness_neighbors}, expected at "
                "least 2, the point itself included; try 10"
            )


class LossTerms(NamedTuple):
    """The objective and its unweighted parts, each a mean over the batch; zero where left out."""

    total: Tensor
    cross: Tensor
    itself: Tensor
    smoothness: Tensor


def objective(
    source_points: Tensor,
    target_points: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    config: ObjectiveConfig | None = None,
    *,
    transform: TransformConfig | None = None,
    measure: DivergenceConfig | None = None,
    source_neighbors: Tensor | None = None,
    target_neighbors: Tensor | None = None,
) -> LossTerms:
    """Evaluate the objective of the paper on a batch of pairs.

    Parameters
    ----------
    source_points, target_points
        (B, N, 3) and (B, M, 3), normalised as the model wants them.
    source_features, target_features
        (B, N, D) and (B, M, D) embeddings of these.
    transform, measure
        How weights are found, and how shapes are compared.
    source_neighbors, target_neighbors
        (B, N, >= K) and (B, M, >= K) nearest points, itself first, if they are known already.
    """
    config = config or ObjectiveConfig()
    rebuilt = reconstruct_pair(
        source_points,
        target_points,
        source_features,
        target_features,
        transform,
        itself=config.itself > 0,
    )
    zero = source_points.new_zeros(())
    cross = itself = smooth = zero
    if config.cross > 0:
        cross = divergence(rebuilt.source, source_points, measure).mean()
        cross = cross + divergence(rebuilt.target, target_points, measure).mean()
    if rebuilt.source_itself is not None and rebuilt.target_itself is not None:
        itself = divergence(rebuilt.source_itself, source_points, measure).mean()
        itself = itself + divergence(rebuilt.target_itself, target_points, measure).mean()
    if config.smoothness > 0:
        k, alpha = config.smoothness_neighbors, config.alpha
        smooth = smoothness(
            source_points, rebuilt.target, k=k, alpha=alpha, neighbors=source_neighbors
        ).mean()
        smooth = (
            smooth
            + smoothness(
                target_points, rebuilt.source, k=k, alpha=alpha, neighbors=target_neighbors
            ).mean()
        )
    total = config.cross * cross + config.itself * itself + config.smoothness * smooth
    return LossTerms(total, cross, itself, smooth)


def smoothness(
    points: Tensor,
    rebuilt: Tensor,
    *,
    k: int = 10,
    alpha: float = 8.0,
    neighbors: Tensor | None = None,
) -> Tensor:
    """How far neighbours are torn apart (B,): E_r, Eq. 12, computed as DPC does.

    ``mean over i and its neighbours l of exp(-|x_i - x_l|^2 / alpha) |y_i - y_l|^2``, where the
    neighbours are the `k` nearest points without the point itself: k - 1 of them.

    Parameters
    ----------
    points
        (B, N, 3) shape whose neighbourhoods count.
    rebuilt
        (B, N, 3) where its points went.
    neighbors
        (B, N, >= k) nearest points of each, itself first, if they are known already.
    """
    if neighbors is None:
        neighbors = torch.stack([knn_graph(shape, k) for shape in points])
    others = neighbors[..., 1:k]  # (B, N, k - 1)
    nearness = torch.exp(-_squared_edges(points, others) / alpha)  # (B, N, k - 1)
    return (nearness * _squared_edges(rebuilt, others)).mean(dim=(1, 2))


def _squared_edges(points: Tensor, neighbors: Tensor) -> Tensor:
    """Squared distances (B, N, k) from each of (B, N, 3) points to its neighbours."""
    flat = neighbors.flatten(1)[..., None].expand(-1, -1, points.shape[-1])  # (B, N * k, 3)
    ends = points.gather(1, flat).view(*neighbors.shape, -1)  # (B, N, k, 3)
    return (ends - points[:, :, None]).square().sum(dim=-1)
