"""Pairs whose features know the other shape, where the network has learned to compare.

A shape is embedded once, whatever it is matched with; see `comparison` for what both shapes then
read of each other. Large samples were embedded in parts that cover the shape, and they are compared
part by part.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ltenet.matching.preparation import Prepared
from ltenet.method.comparison import Comparison
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Pair


def plain_pair(source: Prepared, target: Prepared) -> Pair:
    """Pair all embedded points of two shapes, with the features that each shows by itself."""
    return Pair(source.embedded, target.embedded)


def compared_pair(source: Prepared, target: Prepared) -> Pair:
    """Pair all embedded points of two shapes, with features that know the other shape."""
    comparison = source.sample.model.comparison
    if comparison is None:
        return plain_pair(source, target)
    parts = [[torch.from_numpy(at) for at in one.sample.parts] for one in (source, target)]
    return _compared(comparison, (source.embedded, target.embedded), parts)


def compared_parts(source: Prepared, target: Prepared) -> Pair:
    """Pair the first parts of two shapes, with features that know the other shape."""
    comparison = source.sample.model.comparison
    both = source.first_part, target.first_part
    if comparison is None:
        return Pair(*both)
    return _compared(comparison, both, [[torch.arange(len(shape))] for shape in both])


@torch.no_grad()
def _compared(
    comparison: Comparison,
    shapes: tuple[EmbeddedShape, EmbeddedShape],
    parts: Sequence[Sequence[Tensor]],
) -> Pair:
    """Compare each part of either shape with one of the other, in turn."""
    like = next(comparison.parameters())
    features = [torch.empty_like(shape.features) for shape in shapes]  # (N, D), (M, D)
    odds = [shape.points.new_empty(len(shape)) for shape in shapes]  # (N,), (M,)
    for number in range(max(map(len, parts))):
        rows = [own[number % len(own)] for own in parts]  # (n,), (m,)
        points = [shape.points[at].to(like) for shape, at in zip(shapes, rows, strict=True)]
        given = [shape.features[at].to(like) for shape, at in zip(shapes, rows, strict=True)]
        (found,) = comparison([(points[0], points[1])], [(given[0], given[1])])
        for side, at in enumerate(rows):
            features[side][at] = found[side].to(features[side])
            odds[side][at] = found[side + 2].to(odds[side])
    source, target = (s.with_features(own) for s, own in zip(shapes, features, strict=True))
    return Pair(source, target, odds=(odds[0], odds[1]))
