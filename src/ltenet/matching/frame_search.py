"""Frames found by trying.

The orientation networks know whole bodies in common poses. Of half a body, or of one whose trunk is
twisted against its hips, they see roughly which way is up and front, but err by 20 to 70 degrees,
mostly about the vertical axis. The energy of a map tells frames apart more finely. So a shape that
is a part of the other, by its features, or whose frame is in doubt is turned about the axes of its
frame, first coarsely, then finely, and the rotation whose nearest features make the most plausible
map is one more way to match the pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import axis_rotation
from ltenet.matching.config import Orient
from ltenet.matching.embedded_pair import first_pair
from ltenet.matching.placement import target_is_part
from ltenet.matching.preparation import Prepared
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.judge import map_scores
from ltenet.refinement.pair import Pair
from ltenet.refinement.threads import side_by_side

#: Points of the shape that are embedded in each trial: much sparser than those of the other shape,
#: and their features no longer tell right from wrong.
_POINTS = 768
#: Degrees about the vertical axis, and about both horizontal ones, that are tried first; of a whole
#: shape, whose half turns are ways already, only the first ones.
_YAWS, _TILTS = (45, -45, 90, -90, 135, -135, 180), (35, -35)
_YAWS_OF_WHOLE = 4
#: Degrees about each axis that are tried then, around the best so far, round by round.
_FINER = (22.0, 11.0)
#: Degrees from which a rotation leads to another frame than the one that the networks found.
_ANOTHER = 70.0
#: Decrease of the energy from which a rotation is worth a way of its own.
_GAIN = 0.01
#: Certainty below which the frame of a whole shape is in doubt.
UNSURE = 0.8

_LEFT, _UP, _FRONT = np.eye(3)


class _Trial(NamedTuple):
    """A rotation (3, 3) of a shape against its frame, and the energy of its map."""

    turn: FloatArray
    energy: float


class Turned(NamedTuple):
    """Both shapes, at least one of them rotated against its frame.

    Attributes
    ----------
    source, target
        In their new orientations.
    opinion
        How much less probable the orientation networks hold them: a logarithm, at most 0.
    """

    source: Prepared
    target: Prepared
    opinion: float


def better_turn(source: Prepared, target: Prepared, orient: Orient) -> Turned | None:
    """Rotate a part, or shapes whose frames are in doubt, so that the map is more plausible.

    None if no rotation makes it so.

    Parameters
    ----------
    source, target
        Both shapes in the orientations of the best way so far.
    orient
        How they may be rotated.
    """
    if orient == "none":
        return None
    both, opinion = (source, target), 0.0
    part = target_is_part(first_pair(source, target))
    yaws = _YAWS[:_YAWS_OF_WHOLE] if part is None else _YAWS
    # Features also err because a frame does; then it is that frame that has to be mended.
    doubtful = _in_doubt(source, target)
    for number in doubtful if doubtful or part is None else [int(part)]:
        # From a part that is the target, the whole is mapped; otherwise what turns is mapped.
        swapped = part is not None and number == 1
        tries = _Tries(both[number], both[1 - number].first_part, swapped=swapped)
        turn = _best_turn(tries, yaws, () if orient == "yaw" else _TILTS)
        if turn is not None:
            opinion += _opinion(both[number], turn)
            turned = both[number].rotated(turn)
            both = (turned, both[1]) if number == 0 else (both[0], turned)
    return None if both == (source, target) else Turned(*both, opinion)


def _in_doubt(source: Prepared, target: Prepared) -> list[int]:
    """Which frames are in doubt, 0 the source's and 1 the target's, the least certain first."""
    certainty = [1.0 if one.frame is None else one.frame.certainty for one in (source, target)]
    return sorted((n for n in (0, 1) if certainty[n] < UNSURE), key=lambda n: certainty[n])


def _best_turn(tries: _Tries, yaws: Sequence[float], tilts: Sequence[float]) -> FloatArray | None:
    """(3, 3) rotation with the least energy; None if the shape should stay as it is."""
    tilted = [axis_rotation(axis, angle) for axis in (_LEFT, _FRONT) for angle in tilts]
    start = tries.of(np.eye(3))
    coarse = tries.all_of([*(axis_rotation(_UP, angle) for angle in yaws), *tilted])
    best = min([start, *coarse], key=lambda one: one.energy)
    for angle in _FINER:
        axes = (_UP, _LEFT, _FRONT) if tilts else (_UP,)
        steps = [axis_rotation(a, sign * angle) for a in axes for sign in (1, -1)]
        finer = tries.all_of([step @ best.turn for step in steps])
        best = min([best, *finer], key=lambda one: one.energy)
    return best.turn if best.energy < start.energy - _GAIN else None


def _opinion(shape: Prepared, turn: FloatArray) -> float:
    """Logarithm of how probable a frame is that is (3, 3) turned, over that of the shape's own."""
    if shape.frame is None or np.trace(turn) > 1 + 2 * math.cos(math.radians(_ANOTHER)):
        return 0.0
    certainty = min(max(shape.frame.certainty, 0.02), 0.98)
    return min(0.0, math.log((1 - certainty) / certainty))


class _Tries:
    """Maps between a shape in any rotation and another one, by nearest features.

    Parameters
    ----------
    shape
        The one that rotates.
    other
        The one that does not.
    swapped
        Whether the one that rotates is the target.
    """

    def __init__(self, shape: Prepared, other: EmbeddedShape, *, swapped: bool) -> None:
        self._model, self._other, self._swapped = shape.sample.model, other, swapped
        first = shape.first_part
        self._points = first.points[first.spread(_POINTS)]  # (n, 3)
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
