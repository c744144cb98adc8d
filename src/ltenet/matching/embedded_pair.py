"""Two prepared shapes as a pair, which knows who has a partner if the network has learned to tell.

A shape is embedded once, whatever it is matched with; see `matchability` for what both shapes then
read of each other. Large samples were embedded in parts that cover the shape, and these read each
other part by part.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ltenet.matching.preparation import Prepared
from ltenet.method.matchability import Matchability, Odds
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Pair

#: Points that both shapes need to tell: networks learned it from larger clouds.
FEWEST = 600


def embedded_pair(source: Prepared, target: Prepared) -> Pair:
    """Pair all embedded points of two shapes."""
    matchability = source.sample.model.matchability
    shapes = source.embedded, target.embedded
    if matchability is None or min(map(len, shapes)) < FEWEST:
        return Pair(*shapes)
    parts = [[torch.from_numpy(at) for at in one.sample.parts] for one in (source, target)]
    return Pair(*shapes, odds=_odds(matchability, shapes, parts))


def first_pair(source: Prepared, target: Prepared) -> Pair:
    """Pair the first parts of two shapes."""
    matchability = source.sample.model.matchability
    shapes = source.first_part, target.first_part
    if matchability is None or min(map(len, shapes)) < FEWEST:
        return Pair(*shapes)
    whole = [[torch.arange(len(shape))] for shape in shapes]
    return Pair(*shapes, odds=_odds(matchability, shapes, whole))


@torch.no_grad()
def _odds(
    matchability: Matchability,
    shapes: tuple[EmbeddedShape, EmbeddedShape],
    parts: Sequence[Sequence[Tensor]],
) -> Odds:
    """Let each part of either shape and one of the other read each other, in turn."""
    like = next(matchability.parameters())
    odds = Odds(*(shape.points.new_empty(len(shape)) for shape in shapes))  # (N,), (M,)
    for number in range(max(map(len, parts))):
        rows = [own[number % len(own)] for own in parts]  # (n,), (m,)
        points = [shape.points[at].to(like) for shape, at in zip(shapes, rows, strict=True)]
        given = [shape.features[at].to(like) for shape, at in zip(shapes, rows, strict=True)]
        (found,) = matchability([(points[0], points[1])], [(given[0], given[1])])
        for own, told, at in zip(odds, found, rows, strict=True):
            own[at] = told.to(own)
    return odds
