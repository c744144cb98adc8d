"""How known pairs steer a match: the relative rotation, the features, the deformation, the map.

Three known pairs that are not on a line fix how one shape lies against the other [Kabsch 1976]. All
of them enter the features: each point gets its distances along the surface from the known points,
as radial basis functions, beside its embedding. They are firm anchors when a shape is bent, and the
finished map meets them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ltenet.correspondence.algebra import MapArrays
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.rotations import kabsch
from ltenet.geometry.surface_graph import cloud_graph, distances_along
from ltenet.matching.known_pairs import KnownPairs
from ltenet.matching.preparation import Prepared
from ltenet.matching.sample import Sample
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Anchors, Pair, spans_plane

#: Centres and width of the radial basis functions, in lengths of a shape with radius 0.5.
_CENTRES, _WIDTH = np.arange(0.0, 2.01, 0.25), 0.18
#: Share of the known distances in the features: it approaches the first with many pairs, and is
#: half of that with as many pairs as the second.
_LARGEST_SHARE, _HALF = 0.5, 2.0
#: Cost of a first look that takes the known points one radius beside their partners.
MISSED = 1.0


@dataclass
class Steering:
    """Known pairs, applied to one match.

    Attributes
    ----------
    known
        The pairs, as points of the shapes that were given.
    """

    known: KnownPairs
    _signatures: dict[int, Tensor] = field(default_factory=dict)

    def turn(self, source: Prepared, target: Prepared) -> FloatArray | None:
        """(3, 3) rotation of the source that brings the pairs together; None with too few."""
        here, there = (
            self._points(source, self.known.source),
            self._points(target, self.known.target),
        )
        if not (spans_plane(here) and spans_plane(there)):
            return None
        return kabsch(here, there).rotation

    def first_look(self, source: Prepared, target: Prepared) -> Pair:
        """Both first parts, with features that know the pairs."""
        parts = [
            self._guided(one.first_part, one.sample, indices, one.sample.parts[0])
            for one, indices in self._sides(source, target)
        ]
        return Pair(parts[0], parts[1])

    def missed(self, source: Prepared, target: Prepared, pair: Pair) -> float:
        """Mean distance between known partners and where a first look takes the known points."""
        here = torch.from_numpy(self._points(source, self.known.source)).float()  # (K, 3)
        there = torch.from_numpy(self._points(target, self.known.target)).float()  # (K, 3)
        near = pair.source.nearest(here, 1).indices[:, 0]  # (K,)
        images = pair.target.points[pair.best.indices[near]]  # (K, 3)
        return float((images - there).norm(dim=1).mean())

    def pair(self, source: Prepared, target: Prepared) -> Pair:
        """All embedded points, with features that know the pairs, and anchors."""
        shapes = [
            self._guided(one.embedded, one.sample, indices)
            for one, indices in self._sides(source, target)
        ]
        rows, columns = (
            torch.from_numpy(places_in(one.sample, indices))
            for one, indices in self._sides(source, target)
        )
        both = (rows >= 0) & (columns >= 0)  # (K,), outliers are not embedded
        anchors = Anchors(rows[both], columns[both]) if both.any() else None
        return Pair(shapes[0], shapes[1], anchors=anchors)

    def met(self, arrays: MapArrays) -> MapArrays:
        """Let a map (N,) of the whole source meet the known pairs."""
        here, there = self.known
        indices = arrays.indices.copy()
        indices[here] = there
        scores, neighbors, weights = arrays.scores, arrays.neighbors, arrays.weights
        if scores is not None:
            scores = scores.copy()
            scores[here] = 1.0
        if neighbors is not None and weights is not None:
            neighbors, weights = neighbors.copy(), weights.copy()
            neighbors[here], weights[here] = there[:, None], 0.0
            weights[here, 0] = 1.0
        return MapArrays(indices, scores, neighbors, weights)

    def _sides(self, source: Prepared, target: Prepared) -> tuple[tuple[Prepared, IntArray], ...]:
        return (source, self.known.source), (target, self.known.target)

    def _points(self, prepared: Prepared, indices: IntArray) -> FloatArray:
        """(K, 3) known points in the coordinates of the network."""
        # Outliers have no place among the cleaned points: take their own coordinates.
        cleaned = prepared.sample.cleaned
        points = cleaned.given.points[indices]  # (K, 3)
        inside = np.isin(indices, cleaned.inliers)  # (K,)
        points = points.copy()
        points[inside] = cleaned.shape.points[np.searchsorted(cleaned.inliers, indices[inside])]
        moved: FloatArray = points @ prepared.matrix[:3, :3].T + prepared.matrix[:3, 3]  # (K, 3)
        return moved

    def _guided(
        self,
        shape: EmbeddedShape,
        sample: Sample,
        indices: IntArray,
        part: IntArray | None = None,
    ) -> EmbeddedShape:
        """Append distances from the known points to the features of a shape, or of a part."""
        if id(sample) not in self._signatures:
            self._signatures[id(sample)] = signature(sample, indices)
        known = self._signatures[id(sample)]  # (n, K C)
        if part is not None:
            known = known[torch.from_numpy(part)]  # (p, K C)
        share = _LARGEST_SHARE * len(indices) / (len(indices) + _HALF)
        features = [
            math.sqrt(1 - share) * shape.features,
            math.sqrt(share) * known.to(shape.features),
        ]
        return EmbeddedShape(
            shape.points,
            torch.cat(features, dim=1),
            faces=shape.faces,
            graph=shape.graph,
            name=shape.name,
        )


def signature(sample: Sample, indices: IntArray) -> Tensor:
    """(n, K C) unit vectors: where each embedded point lies relative to K known points.

    Known points that are outliers count as being everywhere equally far.
    """
    places = places_in(sample, indices)  # (K,)
    points = sample.points - sample.points.mean(axis=0)  # (n, 3)
    points = points * (0.5 / max(float(np.sqrt(np.square(points).sum(axis=1).mean())), 1e-300))
    graph = cloud_graph(points) if sample.graph is None else sample.graph
    distances = np.full((len(points), len(places)), _CENTRES[-1])  # (n, K)
    inside = places >= 0  # (K,)
    distances[:, inside] = distances_along(graph, points, places[inside])
    distances = np.minimum(distances, _CENTRES[-1])  # also where no path leads
    basis = np.exp(-np.square((distances[..., None] - _CENTRES) / _WIDTH) / 2)  # (n, K, C)
    basis /= np.linalg.norm(basis, axis=2, keepdims=True) * math.sqrt(len(places))
    return torch.from_numpy(basis.reshape(len(points), -1)).float()


def places_in(sample: Sample, indices: IntArray) -> IntArray:
    """(K,) positions among the embedded points of (K,) given points; -1 for outliers."""
    number = np.full(len(sample.cleaned.given), -1)  # (N,)
    number[sample.cleaned.inliers[sample.rows]] = np.arange(len(sample.rows))
    return number[indices]
