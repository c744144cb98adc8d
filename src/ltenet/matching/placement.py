"""Where a part lies on the whole, and how large it is there.

The network reads coordinates of whole bodies, centred and of one size. Half a body that is centred
and scaled by its own spread shows a knee where a chest should be. So where features say that one
shape is a part of the other, its scale and place are fitted to the nearest features, robustly
because poses differ and some features are wrong, and the part is embedded again where it belongs:
with its coordinates on the whole, and at the density at which whole bodies are embedded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltenet.geometry.arrays import FloatArray
from ltenet.matching.embedded_pair import first_pair
from ltenet.matching.preparation import Prepared
from ltenet.method.model import LTENet
from ltenet.refinement.pair import Pair
from ltenet.shape import CANONICAL_RADIUS

#: Least and largest scale of a part, relative to one that is scaled by its own spread.
SCALES = (0.2, 1.2)
#: Distance at which the weight of a match falls to a half, for a body of radius 0.5.
_OUTLYING = 0.1
#: Rounds of reweighting.
_ROUNDS = 15
#: Length of a round trip at which the weight of a match falls to 1/e.
_TRIP = 0.2
#: Points that go through the network together, at least.
_FEWEST = 64
#: Overlap of a shape, on average, up to which the other one may be a part of it. Features that err
#: leave out some of a whole shape, too, and then scale and place would be fitted to errors.
_CLEARLY_LARGER = 0.75


class Placement(NamedTuple):
    """A scale and an offset (3,): ``x -> scale * x + offset``."""

    scale: float
    offset: FloatArray

    @property
    def matrix(self) -> FloatArray:
        """(4, 4) homogeneous matrix of the same map."""
        matrix = np.diag([self.scale, self.scale, self.scale, 1.0])
        matrix[:3, 3] = self.offset
        return matrix


def can_place(model: LTENet) -> bool:
    """Whether the network reads coordinates of the canonical size, so that their place matters."""
    config = model.config
    return (
        config.radius == CANONICAL_RADIUS
        and config.center
        and config.encoder.kind == "dgcnn"
        and config.encoder.inputs == "coordinates"
    )


def target_is_part(pair: Pair) -> bool | None:
    """Whether the target is a part of the source rather than the other way; None if both are whole.

    All of a part has partners on the whole, but not all of the whole on the part.
    """
    overlap = pair.overlap
    if overlap is None:
        return None
    return float(overlap.target.mean()) > float(overlap.source.mean())


def place_part(
    source: Prepared, target: Prepared, *, same_scale: bool = False
) -> tuple[Prepared, Prepared] | None:
    """Put the shape that is a part of the other where it belongs; None if neither is.

    Parameters
    ----------
    source, target
        Both shapes in one orientation.
    same_scale
        Whether both shapes are given in one unit, so that the scale is known.
    """
    if not can_place(source.sample.model):
        return None
    pair = first_pair(source, target)
    swapped = target_is_part(pair)
    if swapped is None or not _clearly_incomplete(pair):
        return None
    part, whole = (target, source) if swapped else (source, target)
    scale = _unit(whole) / _unit(part) if same_scale else None
    placement = fit_placement(pair.reversed() if swapped else pair, scale=scale)
    matrix = placement.matrix @ part.matrix  # (4, 4)
    there = part.placed(matrix, _points_at_once(part, whole, placement.scale))
    return (source, there) if swapped else (there, target)


def _clearly_incomplete(pair: Pair) -> bool:
    """Whether so much of one shape has no partner that the other is more likely a part of it."""
    overlap = pair.overlap
    return overlap is not None and min(float(s.mean()) for s in overlap) <= _CLEARLY_LARGER


def fit_placement(pair: Pair, *, scale: float | None = None) -> Placement:
    """Fit scale and offset of the source to its nearest features on the target.

    Cauchy weights [Holland and Welsch 1977] leave out matches that contradict the others, round by
    round. The scale is the ratio of the spreads: least squares would shrink with every error.

    Parameters
    ----------
    pair
        The part, and what it is a part of.
    scale
        If it is known.
    """
    partners = pair.best.indices  # (N,)
    points = pair.source.points.double()  # (N, 3)
    images = pair.target.points[partners].double()  # (N, 3)
    trust = pair.best.scores.clamp_min(0).square() * torch.exp(-pair.round_trip(partners) / _TRIP)
    trust = trust.double() + 1e-9  # (N,)
    weights = trust
    size, offset = 1.0 if scale is None else scale, images.new_zeros(3)
    for _ in range(_ROUNDS):
        shares = (weights / weights.sum())[:, None]  # (N, 1)
        centre, middle = (shares * points).sum(dim=0), (shares * images).sum(dim=0)  # (3,), (3,)
        if scale is None:
            spread, extent = (_spread(cloud, shares) for cloud in (points, images))
            size = min(max(extent / max(spread, 1e-9), SCALES[0]), SCALES[1])
        offset = middle - size * centre  # (3,)
        misfit = (images - size * points - offset).square().sum(dim=1)  # (N,)
        weights = trust / (1 + misfit / _OUTLYING**2)  # (N,)
    return Placement(size, offset.numpy())


def _spread(points: Tensor, shares: Tensor) -> float:
    """Root mean square distance of (N, 3) points from their mean, with (N, 1) shares."""
    offsets = points - (shares * points).sum(dim=0)  # (N, 3)
    return float((shares * offsets.square()).sum().sqrt())


def _unit(prepared: Prepared) -> float:
    """Length in the network's coordinates of one unit of the shape."""
    return float(np.linalg.norm(prepared.matrix[0, :3]))


def _points_at_once(part: Prepared, whole: Prepared, scale: float) -> int:
    """How many points of the part have the spacing of those of the whole that are embedded."""
    spacing = scale * float(part.first_part.spacing)
    ratio = spacing / max(float(whole.first_part.spacing), 1e-9)
    count = len(part.first_part)
    return int(min(max(count * ratio**2, _FEWEST), count))
