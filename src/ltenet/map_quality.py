"""How good a map is, without the truth: does it tear, does it mirror, does it reach everything.

A map by nearest features tears neighbours apart. A map that exchanges left and right, or front and
back, tears nothing, but it turns the shape inside out: wherever neighbours surround a limb or the
trunk, the best affine map of the neighbourhood has a negative determinant.
"""

from __future__ import annotations

from functools import cached_property
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


class Judge:
    """Scores maps between two shapes; what depends on the shapes alone is found once.

    Parameters
    ----------
    source_points, target_points
        (N, 3) and (M, 3), in one unit.
    features
        (N, D) and (M, D), for the similarity.
    """

    def __init__(
        self,
        source_points: Tensor,
        target_points: Tensor,
        *,
        features: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self.source, self.target = source_points.detach(), target_points.detach()
        self._features = None if features is None else [F.normalize(f, dim=1) for f in features]

    @torch.no_grad()
    def scores(self, destinations: Tensor) -> MapScores:
        """Score a map: (N,) integer target points, or (N, 3) places on the target."""
        if destinations.is_floating_point():
            fits = destinations.shape == self.source.shape
        else:
            fits = destinations.shape == self.source.shape[:1]
        if not fits or self.target.ndim != 2:
            raise InputError(
                f"a map {tuple(destinations.shape)} from {tuple(self.source.shape)} to "
                f"{tuple(self.target.shape)} points came; one target index or one position for "
                "each source point is needed; give (N,) integers or (N, 3) coordinates"
            )
        if destinations.is_floating_point():
            images = destinations.detach().to(self.target.dtype)  # (N, 3)
            indices = nearest_points(images, self.target, 1).indices[:, 0]  # (N,)
        else:
            indices = destinations  # (N,)
            images = self.target[indices]  # (N, 3)
        stretch, mirrored = self._stretch(images), self._mirrored(images)
        missed = self._missed(images)
        similarity = 0.0
        if self._features is not None:
            source, target = self._features  # (N, D), (M, D)
            similarity = float((source * target[indices]).sum(dim=1).mean())
        energy = (
            _STRETCH * stretch
            + _MIRRORED * mirrored
            + _MISSED * missed
            + _DISSIMILAR * (1.0 - similarity)
        )
        return MapScores(stretch, mirrored, missed, similarity, energy)

    @cached_property
    def _spacing(self) -> Tensor:
        """Root mean square distance () between neighbouring points of the target."""
        neighbors = knn_graph(self.target, min(_EDGES + 1, len(self.target)))  # (M, k)
        edges = self.target[neighbors] - self.target[:, None]  # (M, k, 3)
        return edges.square().sum(dim=2).mean().sqrt()

    @cached_property
    def _edges(self) -> tuple[Tensor, Tensor]:
        """Neighbours (N, k) of each source point, and squared distances (N, k) to them."""
        neighbors = knn_graph(self.source, min(_EDGES + 1, len(self.source)))[:, 1:]  # (N, k)
        return neighbors, _squared_lengths(self.source, neighbors)

    @cached_property
    def _surroundings(self) -> Tensor:
        """Source points (c, k) around some that are spread over it."""
        count = min(max(8, round(_FRAME_SHARE * len(self.source))), len(self.source))
        centres = self.source[spread_sample(self.source, _FRAMES)]  # (c, 3)
        return torch.cdist(centres, self.source).topk(count, dim=1, largest=False).indices

    def _stretch(self, images: Tensor) -> float:
        """Mean |log| of the ratio of lengths over the edges of the source.

        Half a spacing of the target is added in quadrature to both lengths: whether two neighbours
        share a target point or not says nothing about the map.
        """
        if len(self.source) == 1:
            return 0.0
        neighbors, before = self._edges  # (N, k), (N, k)
        blur = (0.5 * self._spacing).square() + torch.finfo(before.dtype).tiny  # ()
        ratios = (_squared_lengths(images, neighbors) + blur) / (before + blur)  # (N, k)
        return float((0.5 * ratios.log().abs()).clamp_max(_TORN).mean())

    def _mirrored(self, images: Tensor) -> float:
        """Weighted share of neighbourhoods whose covariance with their image is left-handed.

        The weight is the thickness of the neighbourhood, cube root of the product of the singular
        values over the largest: flat pieces have no handedness.
        """
        if len(self.source) < 8:
            return 0.0
        before, after = self.source[self._surroundings], images[self._surroundings]  # (c, k, 3)
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

    def _missed(self, images: Tensor) -> float:
        """Share of the target farther than two spacings from every image."""
        squares = nearest_points(self.target, images, 1).squares[:, 0]  # (M,)
        return float((squares > (2 * self._spacing).square()).to(self.target.dtype).mean())


def map_scores(
    source_points: Tensor,
    target_points: Tensor,
    destinations: Tensor,
    *,
    features: tuple[Tensor, Tensor] | None = None,
) -> MapScores:
    """Score one map from a source (N, 3) to a target (M, 3); see `Judge`."""
    return Judge(source_points, target_points, features=features).scores(destinations)


def _squared_lengths(points: Tensor, neighbors: Tensor) -> Tensor:
    """(N, k) between points and their neighbours."""
    return (points[neighbors] - points[:, None]).square().sum(dim=2)
