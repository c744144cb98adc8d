"""One embedded pair of shapes: the only place where their features meet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.method.neighbors import TopK, cosine_topk
from ltenet.refinement.cosines import Cosines, relative
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.overlap import Overlap, find_overlap

#: Length of a round trip at which confidence drops to 1/e, and the size of the neighbourhood that
#: it is averaged over: neighbours tend to be right or wrong together.
_ROUND_TRIP, _AVERAGED = 0.2, 10


#: Extent across their longest axis, for a radius of 0.5, from which points fix a rotation.
_LEAST_EXTENT = 0.05


class Anchors(NamedTuple):
    """Partners that are known beforehand: (K,) source points and their (K,) target points."""

    rows: Tensor
    columns: Tensor


def spans_plane(points: FloatArray) -> bool:
    """Whether (K, 3) points are at least three, and clearly not on a line."""
    if len(points) < 3:
        return False
    extents = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)  # (3,)
    return bool(extents[1] > _LEAST_EXTENT * len(points) ** 0.5)


class Pair:
    """Two embedded shapes, with their similarities and best matches, each computed once.

    Parameters
    ----------
    source, target
        N and M points with features from one model.
    anchors
        Partners that are known; bending meets them.
    odds
        (N,) and (M,) log odds that points have a partner, where a network has learned to tell.
    """

    def __init__(
        self,
        source: EmbeddedShape,
        target: EmbeddedShape,
        *,
        anchors: Anchors | None = None,
        odds: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        _check(source, target)
        self.source, self.target, self.anchors, self.odds = source, target, anchors, odds
        self._cosines, self._swapped = Cosines(source.features, target.features), False
        self._overlap: list[Overlap | None] = []  # of the pair that is not reversed, once known

    def reversed(self) -> Pair:
        """Exchange source and target; everything computed so far or later is shared."""
        anchors = None if self.anchors is None else Anchors(self.anchors.columns, self.anchors.rows)
        odds = None if self.odds is None else (self.odds[1], self.odds[0])
        back = Pair(self.target, self.source, anchors=anchors, odds=odds)
        back._cosines, back._swapped = self._cosines, not self._swapped
        back._overlap = self._overlap
        return back

    @property
    def overlap(self) -> Overlap | None:
        """Which points have a partner, see `find_overlap`; None if both shapes seem whole."""
        if not self._overlap:
            self._overlap.append(find_overlap(self.reversed() if self._swapped else self))
        found = self._overlap[0]
        return found.reversed() if found is not None and self._swapped else found

    def as_wholes(self) -> Pair:
        """Take both shapes for whole ones; the similarities are shared."""
        pair = Pair(self.source, self.target, anchors=self.anchors, odds=self.odds)
        pair._cosines, pair._swapped = self._cosines, self._swapped
        pair._overlap = [None]
        return pair

    @property
    def best(self) -> TopK:
        """(N,) most similar target point of each source point, with its cosine."""
        return self._cosines.best[self._swapped]

    @property
    def best_back(self) -> TopK:
        """(M,) most similar source point of each target point, with its cosine."""
        return self._cosines.best[not self._swapped]

    def nearest(self, k: int) -> TopK:
        """(N, k) most similar target points, best first, with their cosines."""
        k = min(k, len(self.target))
        if self._cosines.matrix is None:
            return cosine_topk(self.source.features, self.target.features, k)
        matrix = self._cosines.matrix.T if self._swapped else self._cosines.matrix  # (N, M)
        found = matrix.topk(k, dim=1)
        return TopK(found.indices, found.values)

    def cosines_at(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Cosines of listed pairs; source and target indices broadcast against each other."""
        if self._swapped:
            return self._cosines.at(columns, rows)
        return self._cosines.at(rows, columns)

    def cosine_block(self, rows: Tensor | None = None, columns: Tensor | None = None) -> Tensor:
        """(n, m) cosines of the source points at `rows` with the target points at `columns`."""
        if self._swapped:
            return self._cosines.block(columns, rows).T
        return self._cosines.block(rows, columns)

    def relative_at(self, rows: Tensor, columns: Tensor) -> Tensor:
        """Cosines of listed pairs less the best that either point has, see `relative`."""
        bests = self.best.scores[rows], self.best_back.scores[columns]
        return relative(self.cosines_at(rows, columns), *bests)

    def relative_block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """(n, m) cosines less the best that either point has, for (n,) rows and (m,) columns."""
        bests = self.best.scores[rows, None], self.best_back.scores[columns]  # (n, 1), (m,)
        return relative(self.cosine_block(rows, columns), *bests)

    def relative_matrix(self) -> Tensor:
        """(N, M) cosines less the best that either point has; kept, so for small shapes."""
        return self._cosines.relative.T if self._swapped else self._cosines.relative

    def round_trip(self, indices: Tensor) -> Tensor:
        """(N,) distance between a point and where its partner's best match leads back to."""
        points = self.source.points  # (N, 3)
        trip: Tensor = (points - points[self.best_back.indices[indices]]).norm(dim=1)  # (N,)
        return trip

    def confidence(self, indices: Tensor, belief: Tensor) -> Tensor:
        """(N,) belief in the partners (N,), less where the round trip is long, averaged locally."""
        confidence = belief * torch.exp(-self.round_trip(indices) / _ROUND_TRIP)  # (N,)
        return confidence[self.source.neighbors(_AVERAGED)].mean(dim=1)


def _check(source: EmbeddedShape, target: EmbeddedShape) -> None:
    channels = source.features.shape[1], target.features.shape[1]
    if channels[0] != channels[1]:
        raise InputError(
            f"got features with {channels[0]} and {channels[1]} channels, expected one dimension; "
            "try embedding both shapes with one model"
        )
    types = source.points.dtype, target.points.dtype
    if types[0] != types[1] or source.points.device != target.points.device:
        raise InputError(
            f"got points of {types[0]} on {source.points.device} and of {types[1]} on "
            f"{target.points.device}, expected one type and one device; try points.to(...)"
        )
