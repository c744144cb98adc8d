"""Shapes rebuilt in 3-D with the weights found in feature space: Eq. 6.

Row i of a cross-reconstruction is where source point i lies on the target: its *soft
correspondence*. Row i of a self-reconstruction is point i rebuilt from its own shape.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ltenet.method.graph import NeighborGraph, neighbor_sum
from ltenet.method.neighbors import mutual_topk, surface_neighbors
from ltenet.method.transforms import Neighborhoods, TransformConfig, neighborhoods


class Reconstructions(NamedTuple):
    """What the training objective compares; N source and M target points.

    Attributes
    ----------
    target
        (B, N, 3) the target rebuilt at the source points: the paper's Y hat.
    source
        (B, M, 3) the source rebuilt at the target points: X hat.
    source_itself
        (B, N, 3) the source from itself, X tilde; None if not asked for.
    target_itself
        (B, M, 3) the target from itself, Y tilde; None if not asked for.
    """

    target: Tensor
    source: Tensor
    source_itself: Tensor | None
    target_itself: Tensor | None


def reconstruct(neighborhoods: Neighborhoods, points: Tensor) -> Tensor:
    """Weighted means (B, N, C) of the (B, M, C) points in each neighbourhood."""
    indices, weights = neighborhoods
    graph = NeighborGraph.of_batch(indices, points.shape[1])
    rebuilt = neighbor_sum(points.flatten(0, 1), weights.flatten(0, 1), graph)  # (B * N, C)
    return rebuilt.view(*indices.shape[:2], points.shape[-1])


def soft_correspondence(
    source_features: Tensor,
    target_features: Tensor,
    target_points: Tensor,
    config: TransformConfig | None = None,
) -> Tensor:
    """Position on the target (B, N, 3) of every source point, not bound to target points.

    Parameters
    ----------
    source_features
        (B, N, D).
    target_features
        (B, M, D).
    target_points
        (B, M, 3).
    """
    found = neighborhoods(
        source_features, target_features, config, surface=_surface(target_points, config)
    )
    return reconstruct(found, target_points)


def reconstruct_pair(
    source_points: Tensor,
    target_points: Tensor,
    source_features: Tensor,
    target_features: Tensor,
    config: TransformConfig | None = None,
    *,
    itself: bool = True,
) -> Reconstructions:
    """Rebuild both shapes from each other, and with `itself` from themselves.

    Parameters
    ----------
    source_points, target_points
        (B, N, 3) and (B, M, 3).
    source_features, target_features
        (B, N, D) and (B, M, D).
    """
    config = config or TransformConfig()
    surfaces = _surface(source_points, config), _surface(target_points, config)

    def from_itself(points: Tensor, features: Tensor, surface: Tensor | None) -> Tensor | None:
        if not itself:
            return None
        found = neighborhoods(features, features, config, exclude_itself=True, surface=surface)
        return reconstruct(found, points)

    forth = back = None
    if config.choice == "cosine":
        best = mutual_topk(source_features, target_features, config.neighbors)
        forth, back = (found.indices for found in best)
    there = neighborhoods(
        source_features, target_features, config, indices=forth, surface=surfaces[1]
    )
    here = neighborhoods(
        target_features, source_features, config, indices=back, surface=surfaces[0]
    )
    return Reconstructions(
        target=reconstruct(there, target_points),
        source=reconstruct(here, source_points),
        source_itself=from_itself(source_points, source_features, surfaces[0]),
        target_itself=from_itself(target_points, target_features, surfaces[1]),
    )


def _surface(points: Tensor, config: TransformConfig | None) -> Tensor | None:
    """(B, M, K + 1) neighbours along the surface, where the choice needs them."""
    if config is None or config.choice != "geodesic":
        return None
    return surface_neighbors(points, config.neighbors + 1)
