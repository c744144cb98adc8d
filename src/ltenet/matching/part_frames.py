"""The frame of a part, found by trying.

The orientation networks know whole bodies. Of half a body they see roughly which way is up and
front, but err by 20 to 70 degrees, mostly about the vertical axis: the missing half pulls the frame
aside. The energy of a map tells frames apart more finely. So where features say that one shape is a
part of the other, it is turned about the axes of its frame, first coarsely, then finely, and the
rotation whose nearest features make the most plausible map is one more way to match the pair.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import axis_rotation
from ltenet.matching.config import Orient
from ltenet.matching.placement import target_is_part
from ltenet.matching.preparation import Prepared
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.judge import map_scores
from ltenet.refinement.pair import Pair
from ltenet.refinement.threads import side_by_side

#: Points of the part that are embedded in each trial.
_POINTS = 384
#: Degrees about the vertical axis, and about both horizontal ones, that are tried first.
_YAWS, _TILTS = (45, 90, 135, 180, -135, -90, -45), (35, -35)
#: Degrees about each axis that are tried then, around the best so far, round by round.
_FINER = (22.0, 11.0)
#: Degrees from which a rotation leads to another frame than the one that the networks found.
_ANOTHER = 70.0
#: Decrease of the energy from which a rotation is worth a way of its own.
_GAIN = 0.01

_LEFT, _UP, _FRONT = np.eye(3)


class _Trial(NamedTuple):
    """A rotation (3, 3) of the part against its frame, and the energy of its map."""

    turn: FloatArray
    energy: float


class Turned(NamedTuple):
    """Both shapes, one of them rotated against its frame.

    Attributes
    ----------
    source, target
        In their new orientations.
    opinion
        How much less probable the orientation networks hold the new frame: a logarithm, at most 0.
    """

    source: Prepared
    target: Prepared
    opinion: float


def better_turn(source: Prepared, target: Prepared, orient: Orient) -> Turned | None:
    """Rotate the part so that it makes a more plausible map; None if no rotation does.

    Parameters
    ----------
    source, target
        Both shapes in the orientations of the best way so far.
    orient
        How they may be rotated.
    """
    target_turns = target_is_part(Pair(source.first_part, target.first_part))
    if target_turns is None or orient == "none":
        return None
    part, other = (target, source) if target_turns else (source, target)
    tries = _Tries(part, other.first_part, swapped=target_turns)
    yaws = [axis_rotation(_UP, angle) for angle in _YAWS]
    level = orient == "yaw"
    angles = () if level else _TILTS
    tilts = [axis_rotation(axis, angle) for axis in (_LEFT, _FRONT) for angle in angles]
    start = tries.of(np.eye(3))
    best = min([start, *tries.all_of([*yaws, *tilts])], key=lambda one: one.energy)
    for angle in _FINER:
        axes = (_UP,) if level else (_UP, _LEFT, _FRONT)
        steps = [axis_rotation(a, sign * angle) for a in axes for sign in (1, -1)]
        finer = tries.all_of([step @ best.turn for step in steps])
        best = min([best, *finer], key=lambda one: one.energy)
    if best.energy > start.energy - _GAIN:
        return None
    turned, opinion = part.rotated(best.turn), _opinion(part, best.turn)
    return Turned(source, turned, opinion) if target_turns else Turned(turned, target, opinion)


def _opinion(part: Prepared, turn: FloatArray) -> float:
    """Logarithm of how probable a frame is that is (3, 3) turned, over that of the part's own."""
    if part.frame is None or np.trace(turn) > 1 + 2 * math.cos(math.radians(_ANOTHER)):
        return 0.0
    certainty = min(max(part.frame.certainty, 0.02), 0.98)
    return min(0.0, math.log((1 - certainty) / certainty))


class _Tries:
    """Maps between the part in any rotation and the other shape, by nearest features.

    Parameters
    ----------
    part
        The shape that rotates.
    other
        The one that does not.
    swapped
        Whether the part is the target.
    """

    def __init__(self, part: Prepared, other: EmbeddedShape, *, swapped: bool) -> None:
        self._model, self._other, self._swapped = part.sample.model, other, swapped
        shape = part.first_part
        self._points = shape.points[shape.spread(_POINTS)]  # (n, 3)
        self._graphs = self._model.graphs_of(self._points)

    def all_of(self, rotations: list[FloatArray]) -> list[_Trial]:
        """Try (3, 3) rotations."""
        return side_by_side(*(partial(self.of, turn) for turn in rotations))

    def of(self, turn: FloatArray) -> _Trial:
        """Try one (3, 3) rotation."""
        points: Tensor = self._points @ torch.from_numpy(turn.T).to(self._points)  # (n, 3)
        features = self._model.embed(points, graphs=self._graphs).float().cpu()  # (n, D)
        pair = Pair(EmbeddedShape(points, features), self._other)
        pair = pair.reversed() if self._swapped else pair
        return _Trial(turn, map_scores(pair, pair.best.indices).energy)
