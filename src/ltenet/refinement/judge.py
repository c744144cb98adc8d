"""Judge a map without ground truth: does it tear, mirror, or miss part of the target.

A map by nearest features tears neighbours apart. A map that exchanges left and right, or front and
back, tears nothing but turns the shape inside out: wherever neighbours surround a limb or the
trunk, the best affine map of the region has a negative determinant.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.refinement.embedded_shape import EDGES, EmbeddedShape
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import nearest_points, squared_edges

#: Cap on the logarithm of a stretch: beyond a factor of twenty, torn is torn.
_TORN = 3.0
#: Target points farther than this many spacings from every image count as missed.
_MISSED_SPACINGS = 2.0


class MapScores(NamedTuple):
    """Scores of one map.

    Attributes
    ----------
    stretch
        Mean absolute logarithm of how distances between neighbours change; 0 for an isometry.
    mirrored
        Share of regions turned inside out, from 0 to 1, weighted by how clearly they are.
    missed
        Share of the target that no point is mapped near to.
    similarity
        Mean cosine similarity of matched features.
    energy
        ``stretch + mirrored + missed + 1 - similarity``; lower is better.
    """

    stretch: float
    mirrored: float
    missed: float
    similarity: float
    energy: float


@torch.no_grad()
def map_scores(pair: Pair, destinations: Tensor) -> MapScores:
    """Score a map of the pair: (N,) integer target points, or (N, 3) positions on the target."""
    continuous = destinations.is_floating_point()
    expected = pair.source.points.shape if continuous else pair.source.points.shape[:1]
    if destinations.shape != expected:
        raise InputError(
            f"got a map {tuple(destinations.shape)} of {len(pair.source)} source points, expected "
            "one target index or one position for each; try (N,) integers or (N, 3) coordinates"
        )
    if continuous:
        images = destinations.detach().to(pair.target.points.dtype)  # (N, 3)
        indices = pair.target.nearest(images, 1).indices[:, 0]  # (N,)
    else:
        images, indices = pair.target.points[destinations], destinations  # (N, 3), (N,)
    stretch = _stretch(pair.source, images, pair.target.spacing)
    mirrored, missed = _mirrored(pair.source, images), _missed(pair, images)
    own = torch.arange(len(indices), device=indices.device)  # (N,)
    similarity = float(pair.cosines_at(own, indices).mean())
    energy = stretch + mirrored + missed + 1.0 - similarity
    return MapScores(stretch, mirrored, missed, similarity, energy)


def _stretch(source: EmbeddedShape, images: Tensor, spacing: Tensor) -> float:
    """Mean |log| of the ratio of lengths over the edges of the source.

    Half a spacing of the target is added to both lengths in quadrature: whether two neighbours
    share a target point says nothing about the map.
    """
    if len(source) == 1:
        return 0.0
    before = source.squared_edges  # (N, k)
    after = squared_edges(images, source.neighbors(EDGES + 1)[:, 1:])  # (N, k)
    blur = (0.5 * spacing).square() + torch.finfo(before.dtype).tiny  # ()
    ratios = (after + blur) / (before + blur)  # (N, k)
    return float((0.5 * ratios.log().abs()).clamp_max(_TORN).mean())


def _mirrored(source: EmbeddedShape, images: Tensor) -> float:
    """Weighted share of regions whose covariance with their image has a negative determinant.

    The weight is the square root of the smallest singular value over the largest: flat regions have
    no handedness.
    """
    if len(source) < 8:
        return 0.0
    before, after = source.points[source.regions], images[source.regions]  # (c, k, 3)
    before = before - before.mean(dim=1, keepdim=True)
    after = after - after.mean(dim=1, keepdim=True)
    covariance = after.transpose(1, 2) @ before  # (c, 3, 3)
    values = torch.linalg.svdvals(covariance)  # (c, 3)
    tiny = torch.finfo(values.dtype).tiny
    weight = (values[:, 2] / values[:, 0].clamp_min(tiny)).sqrt()  # (c,)
    total = weight.sum()
    if not total > 0:
        return 0.0
    return float(weight[torch.det(covariance) < 0].sum() / total)


def _missed(pair: Pair, images: Tensor) -> float:
    """Share of the target far from every image, of what both shapes have in common."""
    target = pair.target
    squares = nearest_points(target.points, images, 1).squares[:, 0]  # (M,)
    far = squares > (_MISSED_SPACINGS * target.spacing).square()  # (M,)
    if pair.overlap is None:
        return float(far.to(images.dtype).mean())
    common = pair.overlap.target  # (M,)
    return float(common[far].sum() / common.sum())
