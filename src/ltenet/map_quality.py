"""How good a map is, without the truth: does it tear, does it mirror, does it reach everything.

A map by nearest features tears neighbours apart. A map that exchanges left and right, or front and
back, tears nothing, but it turns the shape inside out: wherever neighbours surround a limb or the
trunk, the best affine map of the neighbourhood has a negative determinant.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ltenet.errors import InputError
from ltenet.neighbors import knn_graph
from ltenet.transport import nearest_points, spread_sample

#: Neighbours whose distances are compared.
_EDGES = 8
#: Places where handedness is tested, and the share of all points around each.
_FRAMES, _FRAME_SHARE = 64, 0.12
#: Largest logarithm of a stretch that counts: beyond a factor of twenty torn is torn.
_TORN = 3.0
#: What the parts of the energy weigh.
_STRETCH, _MIRRORED, _MISSED, _DISSIMILAR = 1.0, 1.0, 1.0, 1.0


class MapScores(NamedTuple):
    """Scores of one map.

    Attributes
    ----------
    stretch
        Mean absolute logarithm of how neighbours' distances change; 0 for an isometry.
    mirrored
        Share of neighbourhoods that are turned inside out, from 0 to 1, by how clearly they are.
    missed
        Share of the target that nothing is mapped near to.
    similarity
        Mean cosine of matched features; 0 if there were none.
    energy
        All of it in one number; lower is better.
    """

    stretch: float
    mirrored: float
    missed: float
    similarity: float
    energy: float


@torch.no_grad()
def map_scores(
    source_points: Tensor,
    target_points: Tensor,
    destinations: Tensor,
    *,
    features: tuple[Tensor, Tensor] | None = None,
) -> MapScores:
    """Score a map from a source (N, 3) to a target (M, 3).

    Parameters
    ----------
    source_points, target_points
        Points of both shapes, in one unit.
    destinations
        (N,) integer target points, or (N, 3) places on the target.
    features
        (N, D) and (M, D), for the similarity.
    """
    if destinations.is_floating_point():
        fits = destinations.shape == source_points.shape
    else:
        fits = destinations.shape == source_points.shape[:1]
    if not fits or target_points.ndim != 2:
        raise InputError(
            f"a map {tuple(destinations.shape)} from {tuple(source_points.shape)} to "
            f"{tuple(target_points.shape)} points came; one target index or one position for each "
            "source point is needed; give (N,) integers or (N, 3) coordinates"
        )
    source_points, target_points = source_points.detach(), target_points.detach()
    if destinations.is_floating_point():
        images = destinations.detach().to(target_points.dtype)  # (N, 3)
        indices = nearest_points(images, target_points, 1).indices[:, 0]  # (N,)
    else:
        indices = destinations  # (N,)
        images = target_points[indices]  # (N, 3)
    spacing = _spacing(target_points)  # ()
    stretch = _stretch(source_points, images, spacing)
    mirrored = _mirrored(source_points, images)
    missed = _missed(images, target_points, spacing)
    similarity = 0.0
    if features is not None:
        similarity = float(F.cosine_similarity(features[0], features[1][indices]).mean())
    energy = (
        _STRETCH * stretch
        + _MIRRORED * mirrored
        + _MISSED * missed
        + _DISSIMILAR * (1.0 - similarity)
    )
    return MapScores(stretch, mirrored, missed, similarity, energy)


def _spacing(points: Tensor) -> Tensor:
    """Root mean square distance () between neighbouring points."""
    neighbors = knn_graph(points, min(_EDGES + 1, len(points)))  # (M, k)
    return (points[neighbors] - points[:, None]).square().sum(dim=2).mean().sqrt()


def _stretch(source: Tensor, images: Tensor, spacing: Tensor) -> float:
    """Mean |log| of the ratio of lengths over the edges of the source.

    Half a spacing of the target is added in quadrature to both lengths: whether two neighbours
    share a target point or not says nothing about the map.
    """
    k = min(_EDGES + 1, len(source))
    if k == 1:
        return 0.0
    neighbors = knn_graph(source, k)[:, 1:]  # (N, k)
    blur = (0.5 * spacing).square() + torch.finfo(source.dtype).tiny  # ()
    before = (source[neighbors] - source[:, None]).square().sum(dim=2) + blur  # (N, k)
    after = (images[neighbors] - images[:, None]).square().sum(dim=2) + blur  # (N, k)
    return float((0.5 * (after / before).log().abs()).clamp_max(_TORN).mean())


def _mirrored(source: Tensor, images: Tensor) -> float:
    """Weighted share of neighbourhoods whose covariance with their image is left-handed.

    The weight is the thickness of the neighbourhood, cube root of the product of the singular
    values over the largest: flat pieces have no handedness.
    """
    count = min(max(8, round(_FRAME_SHARE * len(source))), len(source))
    if len(source) < 8:
        return 0.0
    centres = source[spread_sample(source, _FRAMES)]  # (c, 3)
    near = torch.cdist(centres, source).topk(count, dim=1, largest=False).indices  # (c, k)
    before, after = source[near], images[near]  # (c, k, 3)
    before = before - before.mean(dim=1, keepdim=True)
    after = after - after.mean(dim=1, keepdim=True)
    covariance = after.transpose(1, 2) @ before  # (c, 3, 3)
    values = torch.linalg.svdvals(covariance)  # (c, 3)
    weight = (values[:, 2] / values[:, 0].clamp_min(torch.finfo(values.dtype).tiny)).sqrt()  # (c,)
    total = weight.sum()
    if not total > 0:
        return 0.0
    return float(weight[torch.det(covariance) < 0].sum() / total)


def _missed(images: Tensor, target: Tensor, spacing: Tensor) -> float:
    """Share of the target farther than two spacings from every image."""
    squares = nearest_points(target, images, 1).squares[:, 0]  # (M,)
    return float((squares > (2 * spacing).square()).to(target.dtype).mean())
