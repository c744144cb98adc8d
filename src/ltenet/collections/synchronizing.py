"""Every shape in the points of one hub, and maps between all of them through it.

Each hub point has several places on a shape, along the direct map and along two-step paths through
other shapes; their geometric median, weighted by probability, is robust to wrong maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import permutations

import numpy as np

from ltenet.collections.joining import geometric_medians
from ltenet.correspondence import Correspondence
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.dense import Carrier, land
from ltenet.shape import Shape

#: The map from one shape to another, by name.
Maps = Callable[[str, str], Correspondence | None]

#: Maps, or inverses of maps, held in memory.
HELD = 64
#: Shapes that two-step paths go through at most.
_THROUGH = 8
#: Weight of a two-step path relative to the direct map.
_INDIRECT = 0.5
#: Fewest hub points with a place on a shape that is reached.
_REACHED = 20


class ThroughHub(Mapping[tuple[str, str], Correspondence]):
    """Maps between all ordered pairs of shapes, through one hub; made when they are asked for.

    Parameters
    ----------
    shapes
        By name.
    places
        Of the hub's points on each shape, (H, 3), NaN if unknown, and their probabilities (H,).
    """

    def __init__(
        self,
        shapes: Mapping[str, Shape],
        places: Mapping[str, tuple[FloatArray, FloatArray]],
    ) -> None:
        self._shapes, self._places = shapes, places
        self.reached = tuple(
            name for name in shapes if np.isfinite(places[name][0]).all(axis=1).sum() >= _REACHED
        )
        self._known = set(self.reached)
        self._made = lru_cache(maxsize=HELD)(self._make)

    def _make(self, source: str, target: str) -> Correspondence:
        ends = self._places[source], self._places[target]
        return _through_hub(self._shapes[source], self._shapes[target], *ends[0], *ends[1])

    def __getitem__(self, pair: tuple[str, str]) -> Correspondence:
        if pair not in self:
            raise KeyError(pair)
        return self._made(*pair)

    def __contains__(self, pair: object) -> bool:
        return isinstance(pair, tuple) and pair[0] != pair[1] and self._known.issuperset(pair)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return permutations(self.reached, 2)

    def __len__(self) -> int:
        return len(self.reached) * (len(self.reached) - 1)


def synchronize(
    shapes: Mapping[str, Shape], maps: Maps, *, trust: Mapping[str, float] | None = None
) -> ThroughHub:
    """Return maps between all ordered pairs of shapes, through one hub.

    Parameters
    ----------
    shapes
        By name.
    maps
        Between any of them.
    trust
        Sum of the probabilities of the maps of each shape; computed by default.
    """
    names = sorted(shapes)
    trust = trust or {name: _trust(name, names, maps) for name in names}
    hub = max(names, key=lambda name: trust[name])
    through = sorted((one for one in names if one != hub), key=lambda one: -trust[one])[:_THROUGH]
    places = {hub: (shapes[hub].points, np.ones(len(shapes[hub])))}
    for name in names:
        if name != hub:
            places[name] = _places(hub, name, through, shapes, maps)
    return ThroughHub(shapes, places)


def _trust(name: str, names: list[str], maps: Maps) -> float:
    """Mean probability of the maps of a shape; those that do not exist count as 0."""
    total = 0.0
    for other in names:
        found = maps(name, other) if other != name else None
        if found is not None and found.matched.any():
            scores = found.scores
            total += 1.0 if scores is None else float(scores[found.matched].mean())
    return total


def _places(
    hub: str, name: str, through: list[str], shapes: Mapping[str, Shape], maps: Maps
) -> tuple[FloatArray, FloatArray]:
    """Places (H, 3) of the hub's points on a shape, NaN if unknown, and their probability (H,)."""
    votes, weights = [], []
    for middle in (name, *(one for one in through if one != name)):
        found = maps(hub, middle)
        if found is not None and middle != name:
            onward = maps(middle, name)
            found = None if onward is None else found.compose(onward)
        if found is None:
            continue
        votes.append(found.positions(shapes[name]))  # (H, 3)
        scores = np.ones(len(found)) if found.scores is None else found.scores  # (H,)
        weights.append(np.maximum(scores, 1e-3) * (1.0 if middle == name else _INDIRECT))
    count = len(shapes[hub])
    places, odds = np.full((count, 3), np.nan), np.zeros(count)
    if not votes:
        return places, odds
    stacked, trust = np.stack(votes), np.stack(weights)  # (T, H, 3), (T, H)
    known = np.asarray(np.isfinite(stacked).all(axis=2))  # (T, H)
    trust = np.where(known, trust, 0.0)  # (T, H)
    reached = known.any(axis=0)  # (H,)
    places[reached] = geometric_medians(stacked[:, reached], trust[:, reached])
    odds[reached] = np.minimum(1.0, trust[:, reached].max(axis=0))
    return places, odds


def _through_hub(
    source: Shape,
    target: Shape,
    here: FloatArray,
    here_odds: FloatArray,
    there: FloatArray,
    there_odds: FloatArray,
) -> Correspondence:
    """Map a shape to another by the hub's points (H, 3) on both."""
    known = np.isfinite(here).all(axis=1) & np.isfinite(there).all(axis=1)  # (H,)
    carrier = Carrier(here[known], there[known], (here_odds * there_odds)[known])
    carried = carrier.carry(source.points)
    landing = land(carried.places, target.points)
    return Correspondence(
        landing.indices,
        len(target),
        scores=np.clip(carried.values, 0.0, 1.0),
        neighbors=landing.neighbors,
        weights=landing.weights,
        details={"consistent": True},
        source=source,
        target=target,
    )
