"""A first look at each way to match a pair: the nearest features of a part of both shapes.

It costs little, and tells which ways are worth refining.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ltenet.matching.preparation import Prepared
from ltenet.matching.steering import MISSED, Steering
from ltenet.matching.ways import Way
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.judge import map_scores
from ltenet.refinement.pair import Pair
from ltenet.refinement.threads import side_by_side

#: Energy that one nat of the orientation networks' opinion is worth; by `tools.fit_judge`.
PRIOR = 0.03
#: Energy of leaving all surface out, as having no partner.
LEFT_OUT = 0.5
#: Cost of the best first look, and lead over the next one, with which frames are beyond doubt; read
#: off generated pairs, not fitted.
_CLEAR_COST, _CLEAR_LEAD = 0.8, 0.15
#: Mean distance between the first looks of two ways, for shapes of root-mean-square radius 0.5,
#: below which both would be refined to the same map.
SAME = 0.1


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


def first_looks(ways: Sequence[Way], steering: Steering | None) -> list[Look]:
    """Match the first parts of both shapes by nearest features, in each way."""
    embed_all((one for way in ways for one in way[1:3]), lambda one: one.first_part)
    return side_by_side(*(partial(_first_look, way, steering) for way in ways))


def _first_look(way: Way, steering: Steering | None) -> Look:
    missed = 0.0
    if steering is None:
        pair = Pair(way.source.first_part, way.target.first_part)
    else:
        pair = steering.first_look(way.source, way.target)
        missed = MISSED * steering.missed(way.source, way.target, pair)
    nearest = pair.best.indices  # (n,)
    energy = map_scores(pair, nearest).energy
    if way.networks.relative:  # nobody else has an opinion on how these shapes lie
        back = pair.reversed()
        energy = 0.5 * (energy + map_scores(back, back.best.indices).energy)
    columns = torch.from_numpy(way.target.sample.parts[0])  # (m,)
    return Look(way, columns[nearest], energy, left_out(pair), missed)


def left_out(pair: Pair) -> float:
    """Price the surface of a pair that has no partner.

    Features that err look like surface without a partner, so maps of parts must be the more
    plausible for what they leave out.
    """
    overlap = pair.overlap
    if overlap is None:
        return 0.0
    return LEFT_OUT * (1.0 - 0.5 * float(overlap.source.mean() + overlap.target.mean()))


def in_doubt(looks: Sequence[Look]) -> bool:
    """Whether no frame fits well, or two fit nearly as well."""
    costs = sorted(look.cost for look in looks)
    return not costs or costs[0] > _CLEAR_COST or costs[:2][-1] < costs[0] + _CLEAR_LEAD


def embed_all(shapes: Iterable[Prepared], embedding: Callable[[Prepared], EmbeddedShape]) -> None:
    """Embed what is not embedded yet; the orientations of a shape, which share a graph, in turn."""
    groups: dict[int, list[Prepared]] = {}
    for one in shapes:
        groups.setdefault(id(one.sample), []).append(one)
    side_by_side(*(partial(list, map(embedding, group)) for group in groups.values()))


def distinct(looks: list[Look]) -> list[Look]:
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
