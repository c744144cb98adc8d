"""What a refinement method receives and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from ltenet.method.neighbors import TopK
from ltenet.refinement.judge import MapScores
from ltenet.refinement.pair import Pair

#: Told which share of the work is done.
Tell = Callable[[float], None]


def silent(share: float) -> None:
    """Tell nobody."""


class Problem(NamedTuple):
    """A pair and the map to improve.

    Attributes
    ----------
    pair
        Both shapes.
    start
        (N,) target points, of every source point.
    scores
        Scores of the start.
    given
        Whether the start was passed in, rather than read off the features.
    neighbors
        Target points of a soft partner, at most.
    tell
        Told how far the work is.
    """

    pair: Pair
    start: Tensor
    scores: MapScores
    given: bool
    neighbors: int
    tell: Tell = silent


class Proposal(NamedTuple):
    """What a method found, before it is compared with the start.

    Attributes
    ----------
    indices
        (N,) target points, of every source point.
    positions
        (N, 3) positions on the target; None for the target points themselves.
    confidence
        (N,); None for the similarity of matched features after a round trip.
    soft
        Target points with weights, (N, K) each, as `TopK` with weights for scores; None for those
        around `positions`.
    unmatched
        (N,) True where a point has no partner; None if all have one.
    same_points
        Whether both clouds were taken to hold the same surface points.
    """

    indices: Tensor
    positions: Tensor | None = None
    confidence: Tensor | None = None
    soft: TopK | None = None
    unmatched: Tensor | None = None
    same_points: bool = False


class RefinedMap(NamedTuple):
    """Where each source point belongs on the target.

    Attributes
    ----------
    indices
        (N,) int64 target point, -1 where there is none.
    positions
        (N, 3) position on the target, not restricted to its points; also of unmatched points.
    confidence
        (N,) from 0 to 1, not calibrated.
    neighbors
        (N, K) int64 target points of the soft partner.
    weights
        (N, K) of these, summing to 1. Their mean is `positions`, as far as the neighbours allow.
    energy
        `MapScores.energy` of the map; lower is better.
    mirrored
        How likely left and right are exchanged, `MapScores.mirrored`.
    accepted
        False if refinement raised the energy; the map is then the start.
    same_points
        Whether both clouds were taken to hold the same surface points.
    input_energy
        Energy of the start.
    """

    indices: Tensor
    positions: Tensor
    confidence: Tensor
    neighbors: Tensor
    weights: Tensor
    energy: float
    mirrored: float
    accepted: bool
    same_points: bool
    input_energy: float
