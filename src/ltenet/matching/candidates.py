"""Which of the ways to match a pair is best.

Each way (see `ways`) gives a map. Two things tell how plausible it is: what the orientation
networks say of both frames and of the class, and the energy of the map (see `judge`), which knows
nothing of frames. Together they are a probability.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ltenet.geometry.rotations import kabsch, rotation_degrees
from ltenet.matching.config import Orient
from ltenet.matching.embedded_pair import embedded_pair
from ltenet.matching.frame_search import better_turn
from ltenet.matching.looks import Look, distinct, embed_all, first_looks, in_doubt, left_out
from ltenet.matching.networks import Networks
from ltenet.matching.placement import place_part
from ltenet.matching.preparation import Prepared, yaw_only
from ltenet.matching.steering import Steering
from ltenet.matching.ways import DISAGREE, LEAST_PRIOR, Way, aligned_ways, framed_ways, given_ways
from ltenet.refinement.methods import refine_pair
from ltenet.refinement.options import Coherent, Method, OneToOne, Options, Transport
from ltenet.refinement.pair import Pair
from ltenet.refinement.proposal import RefinedMap, Tell, silent
from ltenet.refinement.threads import side_by_side

#: Share of the first look in the energy of a way, and the difference in cost at which one way is e
#: times as probable as another; by `python -m tools.fit_judge`.
LOOK, TEMPERATURE = 0.5, 0.04
#: By how much more than the best the first look of a way may cost that is refined too.
CLOSE = 0.1
#: Cost of a first look from which none of the frames in question may be right, and how many of them
#: a search for better ones starts from at most.
_POOR, _STARTS = 0.95, 3

#: Share of regions turned inside out above which a map reverses orientation.
REVERSED = 0.5

#: Share of the work that is done after a first look at each way.
_LOOKED = 0.1

log = logging.getLogger(__name__)


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
        Energy of the first look and of the map, and more for being improbable: refinement makes
        wrong maps smooth, and how badly features fit shows in the first look.
    look
        Energy of the first look.
    prior
        As for `Way`.
    probability
        That this way is right and none of the others.
    """

    networks: Networks
    source: Prepared
    target: Prepared
    pair: Pair
    refined: RefinedMap
    cost: float
    look: float
    prior: float
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
    close: float = CLOSE,
) -> list[Candidate]:
    """Find the weights and orientations that may be right, the most probable first; refine them.

    A first look at the nearest neighbours tells which ways are worth refining, and the refined maps
    which of these is best; of ways with the same map one suffices. Where the frames that each shape
    shows by itself leave doubts, those that follow from how one lies against the other are tried
    too. The best first look also tells how far the frames of both shapes disagree: then each is
    tried in that of the other.

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
    close
        Ways whose first look costs at most this much more than the best are refined too.
    """
    shapes = (networks, sources, targets)
    looks = first_looks(framed_ways(*shapes, orient=orient, steering=steering), steering)
    if in_doubt(looks):
        ways = given_ways(*shapes, orient=orient, steering=steering)
        ways += aligned_ways(*shapes, orient=orient, steering=steering)
        looks += first_looks(ways, steering)
    if not looks:
        way = Way(networks[0], sources[0][0], targets[0][0], 0.0)
        looks = first_looks([way], steering)
    tell(_LOOKED)
    best = min(looks, key=lambda look: look.cost)
    looks += _agreeing(best, orient, steering)
    looks.sort(key=lambda look: look.cost)
    if steering is None:
        starts = _to_be_improved(looks, close)
        places = refine != "none"  # nearest features are those of the points as they are
        for start in starts:
            looks += _by_trying(start, orient, places=places, same_scale=same_scale)
        looks.sort(key=lambda look: look.cost)
    near = [look for look in looks if look.cost <= looks[0].cost + close]
    tried = looks[:1] if refine == "none" else distinct(near)
    embed_all((one for look in tried for one in look.way[1:3]), lambda one: one.embedded)
    shares = [0.0] * len(tried)
    found = side_by_side(
        *(
            partial(_refined, look, refine, _share_of(tell, number, shares), steering)
            for number, look in enumerate(tried)
        )
    )
    found.sort(key=lambda one: one.cost)
    for look in looks:
        log.info("%s: cost %.2f", look.way.networks.name, look.cost)
    log.info("%s chosen from %d ways, %d refined", found[0].networks.name, len(looks), len(tried))
    weights = [math.exp((found[0].cost - one.cost) / TEMPERATURE) for one in found]
    return [
        one._replace(probability=weight / sum(weights))
        for one, weight in zip(found, weights, strict=True)
    ]


def _to_be_improved(looks: list[Look], close: float) -> list[Look]:
    """Choose the ways, best first, from which better ones are searched for.

    Ways are compared fairly only once each is as good as it can be: a frame that is half turned,
    but otherwise exact, may look better than the right one that is some degrees off.
    """
    limit = looks[0].cost + close if looks[0].cost < _POOR else math.inf
    return distinct([look for look in looks if look.cost <= limit])[:_STARTS]


def _share_of(tell: Tell, number: int, shares: list[float]) -> Tell:
    """Tell how far all refinements are whenever one of them gets on."""

    def tell_all(share: float) -> None:
        shares[number] = share
        tell(_LOOKED + (1 - _LOOKED) * sum(shares) / len(shares))

    return tell_all


def _refined(look: Look, method: Method, tell: Tell, steering: Steering | None) -> Candidate:
    """Match all embedded points."""
    networks, source, target, prior = look.way
    pair = embedded_pair(source, target) if steering is None else steering.pair(source, target)
    # Points chosen on each shape separately are not the same: no need to test that.
    complete = source.sample.complete and target.sample.complete
    one_to_one: OneToOne = "auto" if complete else False
    chosen: dict[Method, Options] = {
        "coherent": Coherent(one_to_one=one_to_one),
        "ot": Transport(one_to_one=one_to_one),
    }
    options = chosen.get(method, method)
    refined = refine_pair(pair, options, tell=tell)
    if method == "coherent" and source.at_once is None and target.at_once is None:
        pair, refined = _whole_or_part(pair, refined, options)
    cost = refined_cost(look, refined, left_out(pair))
    return Candidate(networks, source, target, pair, refined, cost, look.energy, prior)


def _whole_or_part(
    pair: Pair, refined: RefinedMap, options: Method | Options
) -> tuple[Pair, RefinedMap]:
    """Refine a pair that seems to be incomplete as whole shapes too, and keep the better map."""
    if pair.overlap is None:
        return pair, refined
    wholes = pair.as_wholes()
    complete = refine_pair(wholes, options)
    return (
        (wholes, complete) if complete.energy < refined.energy + left_out(pair) else (pair, refined)
    )


def refined_cost(look: Look, refined: RefinedMap, left_out: float) -> float:
    """Cost of a way after refinement.

    A map that turns the shape inside out costs more by what separates ways that are about as good:
    it is chosen only where no other is.
    """
    gain = refined.energy + left_out - look.energy - look.left_out
    cost = look.cost + (1 - LOOK) * gain
    return cost + CLOSE if refined.mirrored > REVERSED else cost


def _agreeing(look: Look, orient: Orient, steering: Steering | None) -> list[Look]:
    """Rotate either shape as the map suggests, if their frames disagree."""
    way = look.way
    if orient == "none" or way.networks.frameless:
        return []
    if steering is not None and steering.turn(way.source, way.target) is not None:
        return []
    points = way.source.first_part.points  # (n, 3)
    images = way.target.points[look.partners]  # (n, 3)
    turn = kabsch(points.numpy(), images.numpy()).rotation  # (3, 3)
    turn = yaw_only(turn) if orient == "yaw" else turn
    if rotation_degrees(turn) < DISAGREE:
        return []
    return first_looks(
        [
            way._replace(source=way.source.rotated(turn)),
            way._replace(target=way.target.rotated(turn.T)),
        ],
        steering,
    )


def _by_trying(look: Look, orient: Orient, *, places: bool, same_scale: bool) -> list[Look]:
    """Turn shapes in doubt, and place the one that is a part, as makes more plausible maps."""
    way = look.way
    if way.networks.frameless or way.networks.relative:
        return []
    ways = [way]
    turned = better_turn(way.source, way.target, orient)
    if turned is not None:
        prior = max(way.prior + turned.opinion, LEAST_PRIOR)
        ways.append(Way(way.networks, turned.source, turned.target, prior))
    placed = [
        place_part(one.source, one.target, same_scale=same_scale) if places else None
        for one in ways
    ]
    found = [
        one._replace(source=both[0], target=both[1])
        for one, both in zip(ways, placed, strict=True)
        if both is not None
    ]
    return first_looks([*ways[1:], *found], None)
