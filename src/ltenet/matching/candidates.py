"""Which of the ways to match a pair is best.

Each way (see `ways`) gives a map. Two things tell how plausible it is: what the orientation
networks say of both frames and of the class, and the energy of the map (see `judge`), which knows
nothing of frames. Together they are a probability.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.geometry.rotations import kabsch, rotation_degrees
from ltenet.matching.config import Orient
from ltenet.matching.frame_search import better_turn
from ltenet.matching.networks import Networks
from ltenet.matching.placement import place_part
from ltenet.matching.preparation import Prepared, yaw_only
from ltenet.matching.steering import MISSED, Steering
from ltenet.matching.ways import DISAGREE, LEAST_PRIOR, Way, aligned_ways, framed_ways, given_ways
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.judge import map_scores
from ltenet.refinement.methods import refine_pair
from ltenet.refinement.options import Coherent, Method, OneToOne, Options, Transport
from ltenet.refinement.pair import Pair
from ltenet.refinement.proposal import RefinedMap, Tell, silent
from ltenet.refinement.threads import side_by_side

#: Share of the first look in the energy of a way, energy that one nat of the orientation networks'
#: opinion is worth, and the difference in cost at which one way is e times as probable as another;
#: by `python -m tools.fit_judge`.
LOOK, PRIOR, TEMPERATURE = 0.5, 0.03, 0.04
#: Energy of leaving all surface out, as having no partner.
LEFT_OUT = 0.5
#: By how much more than the best the first look of a way may cost that is refined too.
CLOSE = 0.1
#: Cost of the best first look, and lead over the next one, with which frames are beyond doubt; read
#: off generated pairs, not fitted.
_CLEAR_COST, _CLEAR_LEAD = 0.8, 0.15
#: Cost of a first look from which none of the frames in question may be right: then the search for
#: better ones starts from this many of them.
_POOR, _STARTS = 0.95, 3
#: Mean distance between the first looks of two ways, for shapes of root-mean-square radius 0.5,
#: below which both would be refined to the same map.
SAME = 0.1

#: Share of regions turned inside out above which a map reverses orientation.
REVERSED = 0.5

#: Share of the work that is done after a first look at each way.
_LOOKED = 0.1

log = logging.getLogger(__name__)


class Look(NamedTuple):
    """A first look at one way.

    Attributes
    ----------
    way
        Which one.
    partners
        (n,) target points of the first part of the source, by nearest features.
    energy
        Of that map.
    left_out
        What it costs for leaving out surface, as having no partner.
    missed
        What it costs for missing known pairs.
    """

    way: Way
    partners: Tensor
    energy: float
    left_out: float
    missed: float = 0.0

    @property
    def cost(self) -> float:
        """The energy, and more for being improbable, leaving out surface or missing known pairs."""
        return self.energy + self.left_out - PRIOR * self.way.prior + self.missed


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
    looks = _first_looks(framed_ways(*shapes, orient=orient, steering=steering), steering)
    if _in_doubt(looks):
        ways = given_ways(*shapes, orient=orient, steering=steering)
        ways += aligned_ways(*shapes, orient=orient, steering=steering)
        looks += _first_looks(ways, steering)
    if not looks:
        way = Way(networks[0], sources[0][0], targets[0][0], 0.0)
        looks = _first_looks([way], steering)
    tell(_LOOKED)
    best = min(looks, key=lambda look: look.cost)
    looks += _agreeing(best, orient, steering)
    looks.sort(key=lambda look: look.cost)
    if steering is None:
        starts = looks[: 1 if looks[0].cost < _POOR else _STARTS]
        places = refine != "none"  # nearest features are those of the points as they are
        for start in starts:
            looks += _by_trying(start, orient, places=places, same_scale=same_scale)
        looks.sort(key=lambda look: look.cost)
    near = [look for look in looks if look.cost <= looks[0].cost + close]
    tried = looks[:1] if refine == "none" else _distinct(near)
    _embed((one for look in tried for one in look.way[1:3]), lambda one: one.embedded)
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


def _first_looks(ways: Sequence[Way], steering: Steering | None) -> list[Look]:
    """Match the first parts of both shapes by nearest features, in each way."""
    _embed((one for way in ways for one in way[1:3]), lambda one: one.first_part)
    return side_by_side(*(partial(_first_look, way, steering) for way in ways))


def _first_look(way: Way, steering: Steering | None) -> Look:
    missed = 0.0
    if steering is None:
        pair = Pair(way.source.first_part, way.target.first_part)
    else:
        pair = steering.first_look(way.source, way.target)
        missed = MISSED * steering.missed(way.source, way.target, pair)
    nearest, left_out = pair.best.indices, _left_out(pair)  # (n,)
    energy = map_scores(pair, nearest).energy
    if way.networks.relative:  # nobody else has an opinion on how these shapes lie
        back = pair.reversed()
        energy = 0.5 * (energy + map_scores(back, back.best.indices).energy)
    columns = torch.from_numpy(way.target.sample.parts[0])  # (m,)
    return Look(way, columns[nearest], energy, left_out, missed)


def _left_out(pair: Pair) -> float:
    """Price the surface of a pair that has no partner.

    Features that err look like surface without a partner, so maps of parts must be the more
    plausible for what they leave out.
    """
    overlap = pair.overlap
    if overlap is None:
        return 0.0
    return LEFT_OUT * (1.0 - 0.5 * float(overlap.source.mean() + overlap.target.mean()))


def _in_doubt(looks: Sequence[Look]) -> bool:
    """Whether no frame fits well, or two fit nearly as well."""
    costs = sorted(look.cost for look in looks)
    return not costs or costs[0] > _CLEAR_COST or costs[:2][-1] < costs[0] + _CLEAR_LEAD


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


def _refined(look: Look, method: Method, tell: Tell, steering: Steering | None) -> Candidate:
    """Match all embedded points."""
    networks, source, target, prior = look.way
    if steering is None:
        pair = Pair(source.embedded, target.embedded)
    else:
        pair = steering.pair(source, target)
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
    cost = refined_cost(look, refined, _left_out(pair))
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
        (wholes, complete)
        if complete.energy < refined.energy + _left_out(pair)
        else (pair, refined)
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
    return _first_looks(
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
    return _first_looks([*ways[1:], *found], None)


def _distinct(looks: list[Look]) -> list[Look]:
    """Leave out ways whose first look repeats that of an earlier one."""
    kept: list[Look] = []
    for look in looks:
        if not any(_agree(look, other) for other in kept):
            kept.append(look)
    return kept


def _agree(first: Look, second: Look) -> bool:
    places = first.way.target.points  # (M, 3)
    apart = (places[first.partners] - places[second.partners]).norm(dim=1)  # (n,)
    return float(apart.mean()) < SAME
