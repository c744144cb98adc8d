"""The ways in which a pair may be matched: which weights, and both shapes in which orientation.

Weights that read coordinates want both bodies in their frame. The orientation networks rank the
frames of each shape; and how one shape lies against the other (see `alignment`, or known pairs)
gives the frame of either shape from that of the other. Weights that compare shapes in a common
frame want to know only the latter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import rotation_degrees
from ltenet.matching.alignment import alignments
from ltenet.matching.config import Orient
from ltenet.matching.frame_networks import KINDS
from ltenet.matching.networks import Networks
from ltenet.matching.preparation import Prepared, yaw_only
from ltenet.matching.steering import Steering
from ltenet.refinement.pair import Pair

#: Opinions below this, in nats, all count the same: the networks are never that sure.
LEAST_PRIOR = -6.0
#: The same for the certainty of one frame: sure and wrong occurs.
_LEAST_CERTAINTY = 0.03
#: Degrees by which one shape may be turned against the other before their frames disagree.
DISAGREE = 20.0
#: Degrees up to which an opinion on a frame holds for orientations beside it.
_NEAR = 45.0
#: Relative rotations of the two shapes that are tried in a common frame, and in those of bodies.
_COMMON_TURNS, _TURNS = 8, 2
#: Frames of a piece of a body that are in question.
_PIECE_FRAMES = 2
#: Opinion on shapes as they are given: how often they lie alike, and as the weights want them.
_AS_GIVEN = math.log(0.3)
#: Opinion above which both shapes are of no class that has a frame.
_OF_NO_CLASS = math.log(0.25)


class Way(NamedTuple):
    """One way to match a pair.

    Attributes
    ----------
    networks, source, target
        Which weights, and both shapes in which orientation.
    prior
        Logarithm of how probable the orientation networks hold it, at most 0.
    """

    networks: Networks
    source: Prepared
    target: Prepared
    prior: float


def framed_ways(
    networks: Sequence[Networks],
    sources: Sequence[Sequence[Prepared]],
    targets: Sequence[Sequence[Prepared]],
    *,
    orient: Orient,
    steering: Steering | None,
) -> list[Way]:
    """List the ways with weights that need a frame, by what each shape shows by itself.

    Known pairs that fix how the shapes lie against each other replace the frame of either shape.
    """
    found = []
    for group in zip(networks, sources, targets, strict=True):
        if group[0].aligns_only or group[0].relative:
            continue
        for way in _steered(_orientations(*group), steering, orient):
            if way.prior > LEAST_PRIOR or _no_choice(networks):
                found.append(way)
    return found


def _no_choice(networks: Sequence[Networks]) -> bool:
    """Whether all but one of the weights only tell how shapes lie: then no kind is improbable."""
    return sum(not one.aligns_only for one in networks) == 1


def given_ways(
    networks: Sequence[Networks],
    sources: Sequence[Sequence[Prepared]],
    targets: Sequence[Sequence[Prepared]],
    *,
    orient: Orient,
    steering: Steering | None,
) -> list[Way]:
    """List the ways with both shapes as they are given: shapes of one set mostly lie alike."""
    if orient != "auto" or steering is not None:
        return []
    found = []
    for one, (source, *_), (target, *_) in zip(networks, sources, targets, strict=True):
        if source.frame is None or target.frame is None:
            continue
        prior = _AS_GIVEN + _of_kind(one, source) + _of_kind(one, target)
        if prior > LEAST_PRIOR or _no_choice(networks):
            source, target = (shape.rotated(shape.rotation.T) for shape in (source, target))
            found.append(Way(one, source, target, max(prior, LEAST_PRIOR)))
    return found


def aligned_ways(
    networks: Sequence[Networks],
    sources: Sequence[Sequence[Prepared]],
    targets: Sequence[Sequence[Prepared]],
    *,
    orient: Orient,
    steering: Steering | None,
) -> list[Way]:
    """List the ways that follow from how the shapes lie against each other, by frameless features.

    Weights that compare shapes in a common frame tell which of several alignments is right. Where
    alignments disagree with the frames of both bodies, each is also tried in the frame that the
    other one has.
    """
    groups = list(zip(networks, sources, targets, strict=True))
    aligner = next((group for group in groups if group[0].aligns_only), None)
    if aligner is None:
        return []
    rotations = _turns(aligner[1][0], aligner[2][0], orient, steering)
    seen = next((group[1:] for group in groups if group[1][0].frame is not None), ())
    found = []
    for one, our_frames, their_frames in groups:
        if one.relative:
            prior = max(sum(_of_kind(one, frames[0]) for frames in seen), LEAST_PRIOR)
            source, target = our_frames[0], their_frames[0]
            asked = steering is None and prior > _OF_NO_CLASS
            opinions = _piece_turns(source, target, orient) if asked else []
            found += [
                Way(one, source.rotated(o.turn), target, prior + o.logarithm) for o in opinions
            ]
            for turn in rotations if prior > _OF_NO_CLASS else rotations[:1]:
                opinion_here = _opinion_beside(turn, opinions)
                found.append(Way(one, source.rotated(turn), target, prior + opinion_here))
        if one.aligns_only or one.relative or steering is not None:
            continue
        way = Way(one, our_frames[0], their_frames[0], 0.0)
        for turn in rotations[:_TURNS]:
            between = way.target.rotation @ turn @ way.source.rotation.T  # (3, 3)
            if rotation_degrees(between) < DISAGREE:
                continue
            for _, source, target, _ in turned(way, between, orient):
                prior = _opinion_near(one, source, our_frames)
                prior += _opinion_near(one, target, their_frames)
                found.append(Way(one, source, target, max(prior, LEAST_PRIOR)))
    return found


def turned(way: Way, turn: FloatArray, orient: Orient) -> list[Way]:
    """Turn either shape of a way: (3, 3) brings the source onto the target.

    The frame of one shape is then that of the other, so one opinion counts for both.
    """
    turn = yaw_only(turn) if orient == "yaw" else turn
    networks, source, target, _ = way
    return [
        Way(networks, source.rotated(turn), target, opinion(networks, target)),
        Way(networks, source, target.rotated(turn.T), opinion(networks, source)),
    ]


def opinion(networks: Networks, prepared: Prepared) -> float:
    """Logarithm of how probable a frame is, and that a shape is of the kind the weights know."""
    if prepared.frame is None:
        return 0.0
    certainty = math.log(max(prepared.frame.certainty, _LEAST_CERTAINTY))
    return max(certainty + _of_kind(networks, prepared), LEAST_PRIOR)


def _of_kind(networks: Networks, prepared: Prepared) -> float:
    """Logarithm of how probable it is that a shape is of the kind the weights know."""
    if prepared.frame is None or networks.name not in KINDS:
        return 0.0
    return math.log(max(prepared.frame.kinds[KINDS.index(networks.name)], 1e-9))


def _opinion_near(networks: Networks, turned: Prepared, frames: Sequence[Prepared]) -> float:
    """Opinion on an orientation that a shape was turned to: that on the frame next to it."""
    apart = [rotation_degrees(turned.rotation @ one.rotation.T) for one in frames]
    nearest = frames[apart.index(min(apart))]
    if min(apart) > _NEAR and nearest.frame is not None:
        nearest = Prepared(nearest.sample, nearest.matrix, nearest.frame._replace(certainty=0.0))
    return opinion(networks, nearest)


def _orientations(
    networks: Networks, source: Sequence[Prepared], target: Sequence[Prepared]
) -> Iterator[Way]:
    """Yield the frames in which a pair can be matched, with their priors."""
    for number, one in enumerate(source):
        for other in target[: 1 if number else None]:  # two unlikely frames at once are too much
            prior = opinion(networks, one) + opinion(networks, other)
            yield Way(networks, one, other, max(prior, LEAST_PRIOR))


def _steered(ways: Iterable[Way], steering: Steering | None, orient: Orient) -> Iterator[Way]:
    """Turn either shape of each way as the known pairs say, where they do."""
    seen: set[int] = set()
    for way in ways:
        turn = None
        if steering is not None and orient != "none":
            turn = steering.turn(way.source, way.target)
        if turn is None:
            yield way
            continue
        both = turned(way, turn, orient)
        for kept, one in zip((way.target, way.source), both, strict=True):
            if id(kept) not in seen:
                seen.add(id(kept))
                yield one


class _PieceTurn(NamedTuple):
    """How one piece of a body may lie against another, and how probable that is."""

    turn: FloatArray  # (3, 3) brings the source onto the target
    logarithm: float


def _piece_turns(source: Prepared, target: Prepared, orient: Orient) -> list[_PieceTurn]:
    """How two pieces of bodies may lie against each other, by the frames of both; else none."""
    if orient == "none":
        return []
    found = []
    for ours in source.sample.piece_frames[:_PIECE_FRAMES]:
        for theirs in target.sample.piece_frames[:_PIECE_FRAMES]:
            between = theirs.rotation.T @ ours.rotation  # (3, 3)
            turn = target.rotation @ between @ source.rotation.T  # (3, 3)
            certainty = max(ours.certainty * theirs.certainty, _LEAST_CERTAINTY)
            allowed = yaw_only(turn) if orient == "yaw" else turn
            found.append(_PieceTurn(allowed, math.log(certainty)))
    return found


def _opinion_beside(turn: FloatArray, opinions: Sequence[_PieceTurn]) -> float:
    """Opinion on a (3, 3) rotation: that on the most probable one beside it."""
    if not opinions:
        return 0.0
    near = [o.logarithm for o in opinions if rotation_degrees(turn @ o.turn.T) < _NEAR]
    return max(near, default=math.log(_LEAST_CERTAINTY))


def _turns(
    source: Prepared, target: Prepared, orient: Orient, steering: Steering | None
) -> list[FloatArray]:
    """(3, 3) rotations that may bring the source onto the target, the best first."""
    if orient == "none":
        return [source.rotation @ source.rotation.T]
    known = None if steering is None else steering.turn(source, target)
    if known is not None:
        found = [known]
    else:
        pair = Pair(source.first_part, target.first_part)
        found = [one.rotation for one in alignments(pair, _COMMON_TURNS)]
    return [yaw_only(turn) for turn in found] if orient == "yaw" else found
