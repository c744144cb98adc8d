"""Tell whether two clouds hold the same points.

Points drawn once and moved with the surface keep their constellations: a few neighbours can be laid
over their partners by a rotation. Points drawn independently cannot, however good the map, because
the partner of each is only near where it belongs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ltenet.refinement.assignment import assign, inverse
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Pair
from ltenet.refinement.point_sets import rotations_near

#: Points of a constellation, and the misfit of the best quarter up to which clouds are the same.
#: On generated pairs it is 0.04 to 0.18 for the same points, up to 0.48 if these are displaced by
#: 0.4 % of the diameter, and 0.50 to 0.77 for independent points.
_CONSTELLATION, _SAME = 7, 0.47
#: Beyond this misfit of an assignment over this many nearest points, the exact one, which costs up
#: to ten times as much on independent points, need not be tried: on generated pairs of the same
#: points near the threshold the two differ by less than 0.01.
_HOPELESS, _QUICK = 0.49, 24


def constellation_misfit(source: EmbeddedShape, images: Tensor) -> Tensor:
    """How badly each point and its neighbours, rotated, fit their images: (N,).

    Root-mean-square residual of the best rotation [Kabsch 1976] of each neighbourhood of the source
    onto its (N, 3) images, relative to the extent of the neighbourhood. A crouching body and a
    stretched one of the same size differ in local scale: the median scale is divided out.
    """
    neighbors = source.neighbors(_CONSTELLATION)  # (N, k)
    before, after = source.points[neighbors], images[neighbors]  # (N, k, 3)
    before = before - before.mean(dim=1, keepdim=True)
    after = after - after.mean(dim=1, keepdim=True)
    tiny = torch.finfo(before.dtype).tiny
    extent = before.square().sum(dim=(1, 2)).clamp_min(tiny)  # (N,)
    scale = (after.square().sum(dim=(1, 2)) / extent).median().sqrt().clamp_min(tiny)  # ()
    rotations = rotations_near(after.transpose(1, 2) @ before)  # (N, 3, 3)
    residual = after / scale - before @ rotations.transpose(1, 2)  # (N, k, 3)
    return (residual.square().sum(dim=(1, 2)) / extent).sqrt()


def match_same_points(pair: Pair, places: Tensor, *, swapped: bool = False) -> Tensor | None:
    """One-to-one map (N,) of clouds of equal size, or None if they hold different points.

    The best quarter of the constellations decides: a map that is wrong in places still shows it
    where it is right.

    Parameters
    ----------
    pair
        Both shapes.
    places
        (N, 3) expected positions of the source points on the target.
    swapped
        Compare the constellations of the target rather than those of the source.
    """

    def misfit(indices: Tensor) -> float:
        back = inverse(indices) if swapped else indices  # (N,)
        shape, other = (pair.target, pair.source) if swapped else (pair.source, pair.target)
        return float(constellation_misfit(shape, other.points[back]).quantile(0.25))

    if misfit(assign(pair, places, shortlist=_QUICK)) > _HOPELESS:
        return None
    indices = assign(pair, places)  # (N,)
    return indices if misfit(indices) <= _SAME else None
