"""The ways to match a pair, and which of them is best.

The class of a shape may be unknown, and the orientation networks may be in doubt about its frame.
Each way (weights, and both shapes in one orientation) gives a map. Two things tell how plausible it
is: what the orientation networks say of both frames and of the class, and the energy of the map
(see `judge`), which knows nothing of frames. Together they are a probability.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import kabsch
from ltenet.matching.config import Orient
from ltenet.matching.frame_networks import KINDS
from ltenet.matching.networks import Networks
from ltenet.matching.part_frames import better_turn
from ltenet.matching.placement import place_part
from ltenet.matching.preparation import Prepared, yaw_only
from ltenet.matching.steering import MISSED, Steering
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.judge import map_scores
from ltenet.refinement.methods import refine_pair
from ltenet.refinement.options import Coherent, Method, Options, Transport
from ltenet.refinement.pair import Pair
from ltenet.refinement.proposal import RefinedMap, Tell, silent
from ltenet.refinement.threads import side_by_side

#: Energy that one nat of the orientation networks' opinion is worth, and the difference in cost at
#: which one way is e times as probable as another: fitted to generated pairs in right and wrong
#: frames by `python -m tools.fit_judge --pairs 16`.
PRIOR, TEMPERATURE = 0.05, 0.03
#: Opinions below this, in nats, all count the same: the networks are never that sure.
LEAST_PRIOR = -6.0
#: Degrees by which a map may rotate one shape against the other before their frames are in doubt.
DISAGREE = 20.0
#: Ways whose first look costs at most this much more than the best are refined too.
CLOSE = 0.1
#: Cost of a first look from which none of the frames in question may be right: if one shape is a
#: part, each of them is where the search for its frame starts.
POOR = 0.95
#: Mean distance between the first looks of two ways, for shapes of root-mean-square radius 0.5,
#: below which both would be refined to the same map.
SAME = 0.1

#: Share of the work that is done after a first look at each way.
_LOOKED = 0.1

log = logging.getLogger(__name__)


class Way(NamedTuple):
    """One way to match a pair, and a first look at it.

    Attributes
    ----------
    networks, source, target
        Which weights, and both shapes in which orientation.
    prior
        Logarithm of how probable the orientation networks hold it, at most 0.
    partners
        (n,) target points of the first part of the source, by nearest features.
    cost
        Energy of that map, and more for being improbable or for missing known pairs.
    missed
        What it costs for missing known pairs.
    """

    networks: Networks
    source: Prepared
    target: Prepared
    prior: float
    partners: Tensor
    cost: float
    missed: float = 0.0


class Candidate(NamedTuple):
    """One way to match a pair, and its refined map.

    Attributes
    ----------
    networks, source, target
        As for `Way`.
    pair
        All embedded points.
    refined
        The map.
    cost
        Its energy, and more for being improbable.
    probability
        That this way is right and none of the others.
    """

    networks: Networks
    source: Prepared
    target: Prepared
    pair: Pair
    refined: RefinedMap
    cost: float
    probability: float = 1.0


def ranked_candidates(
    networks: Sequence[Networks],
    sources: Sequence[Sequence[Prepared]],
    targets: Sequence[Sequence[Prepared]],
    *,
    orient: Orient,
    refine: Method,
    tell: Tell = silent,
    steering: Steering | None = None,
    same_scale: bool = False,
) -> list[Candidate]:
    """Find the weights and orientations that may be right, the most probable first; refine them.

    A first look at the nearest neighbours tells which ways are worth refining, and the refined maps
    which of these is best; of ways with the same map one suffices. The best first look also tells
    how far the frames of both shapes disagree: then each is tried in that of the other.

    Parameters
    ----------
    networks
        The weights in question.
    sources, targets
        Both shapes in their plausible orientations, for each of the weights.
    orient
        How they may be rotated.
    refine
        How the map is refined.
    tell
        Told how far the work is.
    steering
        Pairs that are known beforehand.
    same_scale
        Whether both shapes are given in one unit, which tells how large a part is.
    """
    possible = [
        way
        for group in zip(networks, sources, targets, strict=True)
        for way in _steered(_orientations(*group), steering, orient)
        if way[-1] > LEAST_PRIOR or len(networks) == 1
    ] or [next(_orientations(networks[0], sources[0], targets[0]))]
    _embed((one for way in possible for one in way[1:3]), lambda one: one.first_part)
    ways = side_by_side(*(partial(_first_look, *way, steering) for way in possible))
    tell(_LOOKED)
    looked = min(ways, key=lambda way: way.cost)
    ways += _agreeing(looked, orient, steering)
    if steering is None and refine != "none":  # the paper's test phase knows no parts
        starts = [looked] if looked.cost < POOR else list(ways)
        ways += [way for one in starts for way in _of_a_part(one, orient, same_scale=same_scale)]
    ways.sort(key=lambda way: way.cost)
    close = [way for way in ways if way.cost <= ways[0].cost + CLOSE]
    tried = ways[:1] if refine == "none" else _distinct(close)
    _embed((one for way in tried for one in (way.source, way.target)), lambda one: one.embedded)
    shares = [0.0] * len(tried)
    found = side_by_side(
        *(
            partial(_refined, way, refine, _share_of(tell, number, shares), steering)
            for number, way in enumerate(tried)
        )
    )
    found.sort(key=lambda one: one.cost)
    for way in ways:
        log.info("%s: cost %.2f", way.networks.name, way.cost)
    log.info("%s chosen from %d ways, %d refined", found[0].networks.name, len(ways), len(tried))
    weights = [math.exp((found[0].cost - one.cost) / TEMPERATURE) for one in found]
    return [
        one._replace(probability=weight / sum(weights))
        for one, weight in zip(found, weights, strict=True)
    ]


def _orientations(
    networks: Networks, source: Sequence[Prepared], target: Sequence[Prepared]
) -> Iterator[tuple[Networks, Prepared, Prepared, float]]:
    """Yield the orientations in which a pair can be matched, with their priors."""
    for number, one in enumerate(source):
        for other in target[: 1 if number else None]:  # two unlikely frames at once are too much
            opinions = [_opinion(networks, side) for side in (one, other)]
            yield networks, one, other, max(sum(opinions), LEAST_PRIOR)


def _steered(
    ways: Iterable[tuple[Networks, Prepared, Prepared, float]],
    steering: Steering | None,
    orient: Orient,
) -> Iterator[tuple[Networks, Prepared, Prepared, float]]:
    """Turn either shape of each way as the known pairs say, where they do."""
    seen: set[int] = set()
    for networks, source, target, prior in ways:
        turn = None
        if steering is not None and orient != "none":
            turn = steering.turn(source, target)
        if turn is None:
            yield networks, source, target, prior
            continue
        turn = yaw_only(turn) if orient == "yaw" else turn
        # The frame of either shape is then that of the other, so one opinion counts for both.
        for one, pair in (
            (target, (source.rotated(turn), target)),
            (source, (source, target.rotated(turn.T))),
        ):
            if id(one) not in seen:
                seen.add(id(one))
                yield networks, *pair, max(_opinion(networks, one), LEAST_PRIOR)


def _opinion(networks: Networks, prepared: Prepared) -> float:
    """Logarithm of how probable a frame is, and that a shape is of the kind the weights know."""
    frame = prepared.frame
    if frame is None:
        return 0.0
    kind = frame.kinds[KINDS.index(networks.name)] if networks.name in KINDS else 1.0
    return math.log(max(frame.certainty * kind, 1e-9))


def _first_look(
    networks: Networks,
    source: Prepared,
    target: Prepared,
    prior: float,
    steering: Steering | None = None,
) -> Way:
    """Match the first parts of both shapes by nearest features."""
    missed = 0.0
    if steering is None:
        pair = Pair(source.first_part, target.first_part)
    else:
        pair = steering.first_look(source, target)
        missed = MISSED * steering.missed(source, target, pair)
    nearest = pair.best.indices  # (n,)
    columns = torch.from_numpy(target.sample.parts[0])  # (m,)
    cost = map_scores(pair, nearest).energy - PRIOR * prior + missed
    return Way(networks, source, target, prior, columns[nearest], cost, missed)


def _embed(shapes: Iterable[Prepared], embedding: Callable[[Prepared], EmbeddedShape]) -> None:
    """Embed what is not embedded yet; the orientations of a shape, which share a graph, in turn."""
    groups: dict[int, list[Prepared]] = {}
    for one in shapes:
        groups.setdefault(id(one.sample), []).append(one)
    side_by_side(*(partial(list, map(embedding, group)) for group in groups.values()))


def _share_of(tell: Tell, number: int, shares: list[float]) -> Tell:
    """Tell how far all refinements are whenever one of them gets on."""

    def tell_all(share: float) -> None:
        shares[number] = share
        tell(_LOOKED + (1 - _LOOKED) * sum(shares) / len(shares))

    return tell_all


def _refined(way: Way, method: Method, tell: Tell, steering: Steering | None = None) -> Candidate:
    """Match all embedded points."""
    if steering is None:
        pair = Pair(way.source.embedded, way.target.embedded)
    else:
        pair = steering.pair(way.source, way.target)
    options: Method | Options = method
    if not (way.source.sample.complete and way.target.sample.complete):
        # Points chosen on each shape separately are not the same: no need to test that.
        alone: dict[Method, Options] = {
            "coherent": Coherent(one_to_one=False),
            "ot": Transport(one_to_one=False),
        }
        options = alone.get(method, method)
    refined = refine_pair(pair, options, tell=tell)
    cost = refined.energy - PRIOR * way.prior + way.missed
    return Candidate(way.networks, way.source, way.target, pair, refined, cost)


def _agreeing(way: Way, orient: Orient, steering: Steering | None) -> list[Way]:
    """Rotate either shape as the map suggests, if their frames disagree."""
    source, target = way.source, way.target
    if orient == "none" or (steering is not None and steering.turn(source, target) is not None):
        return []
    points = source.first_part.points  # (n, 3)
    images = target.points[way.partners]  # (n, 3)
    turn = kabsch(points.numpy(), images.numpy()).rotation  # (3, 3)
    turn = yaw_only(turn) if orient == "yaw" else turn
    if _degrees(turn) < DISAGREE:
        return []
    return side_by_side(
        partial(_first_look, way.networks, source.rotated(turn), target, way.prior, steering),
        partial(_first_look, way.networks, source, target.rotated(turn.T), way.prior, steering),
    )


def _of_a_part(way: Way, orient: Orient, *, same_scale: bool) -> list[Way]:
    """Turn and place the shape that is a part of the other as makes more plausible maps."""
    found: list[Way] = []
    turned = better_turn(way.source, way.target, orient)
    if turned is not None:
        prior = max(way.prior + turned.opinion, LEAST_PRIOR)
        found.append(_first_look(way.networks, turned.source, turned.target, prior))
    for one in (way, *found):
        placed = place_part(one.source, one.target, same_scale=same_scale)
        if placed is not None:
            found.append(_first_look(way.networks, *placed, one.prior))
    return found


def _distinct(ways: list[Way]) -> list[Way]:
    """Leave out ways whose first look repeats that of an earlier one."""
    kept: list[Way] = []
    for way in ways:
        if not any(_agree(way, other) for other in kept):
            kept.append(way)
    return kept


def _agree(first: Way, second: Way) -> bool:
    places = first.target.points  # (M, 3)
    apart = (places[first.partners] - places[second.partners]).norm(dim=1)  # (n,)
    return float(apart.mean()) < SAME


def _degrees(rotation: FloatArray) -> float:
    """Angle of a (3, 3) rotation."""
    return float(np.degrees(np.arccos(np.clip((np.trace(rotation) - 1) / 2, -1.0, 1.0))))
