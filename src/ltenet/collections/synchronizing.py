"""One canonical space for all shapes of a collection: positions on a hub.

Each hub point has several places on a shape, along the direct map and along two-step paths through
other shapes; their geometric median, weighted by probability, is robust to wrong maps. By these
places every point of a shape gets canonical coordinates, and two shapes are matched by the nearest
of them. The way back uses the same coordinates as the way there, so cycles close up to
interpolation, even where the coordinates are wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
import torch
from scipy.spatial import KDTree

from ltenet.collections.joining import geometric_medians
from ltenet.correspondence import Correspondence
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.matching.dense import Carrier
from ltenet.refinement.soft_partners import convex_weights
from ltenet.shape import Shape
from ltenet.transferring.surface import Surface
from ltenet.transferring.wrapping import wrap

#: The map from one shape to another, by name.
Maps = Callable[[str, str], Correspondence | None]

#: Maps, or inverses of maps, held in memory.
HELD = 64
#: Shapes that two-step paths go through at most.
_THROUGH = 8
#: Weight of a two-step path relative to the direct map.
_INDIRECT = 0.5
#: Points of a cloud that make a soft partner: so many that they surround the place nearly always.
_AROUND = 10
#: Fewest hub points with a place on a shape that is reached.
_REACHED = 20


class Canonical(NamedTuple):
    """A shape in canonical space.

    Attributes
    ----------
    coordinates
        (N, 3) where its points are on the hub.
    odds
        (N,) how probable that is.
    """

    coordinates: FloatArray
    odds: FloatArray


class ThroughHub(Mapping[tuple[str, str], Correspondence]):
    """Maps between all ordered pairs of shapes, through one hub; made when they are asked for.

    Parameters
    ----------
    shapes
        By name.
    canonical
        Those of them that are reached, by name.
    """

    def __init__(self, shapes: Mapping[str, Shape], canonical: Mapping[str, Canonical]) -> None:
        self._shapes, self._canonical = shapes, canonical
        self.reached = tuple(canonical)
        self._made = lru_cache(maxsize=HELD)(self._make)
        self._surface = lru_cache(maxsize=HELD)(
            lambda name: Surface(Shape(canonical[name].coordinates, shapes[name].faces))
        )
        self._tree = lru_cache(maxsize=HELD)(lambda name: KDTree(canonical[name].coordinates))

    def _make(self, source: str, target: str) -> Correspondence:
        here, there = self._canonical[source], self._canonical[target]
        around, weights = self._landing(target, here.coordinates)  # (N, K) each
        nearest = np.take_along_axis(around, weights.argmax(axis=1)[:, None], axis=1)[:, 0]  # (N,)
        return Correspondence(
            nearest,
            len(there.odds),
            scores=here.odds * there.odds[nearest],
            neighbors=around,
            weights=weights,
            details={"consistent": True},
            source=self._shapes[source],
            target=self._shapes[target],
        )

    def _landing(self, target: str, places: FloatArray) -> tuple[IntArray, FloatArray]:
        """Points (N, K) of a target around (N, 3) canonical places, and their weights (N, K)."""
        surface = self._surface(target)
        if surface.faces is not None:
            found = surface.nearest(places)
            return found.corners, found.weights
        count = min(_AROUND, len(surface.points))
        around = nearest_neighbors(self._tree(target), places, count).indices  # (N, K)
        offsets = torch.from_numpy(surface.points[around] - places[:, None])  # (N, K, 3)
        return around, convex_weights(offsets).numpy()

    def __getitem__(self, pair: tuple[str, str]) -> Correspondence:
        if pair not in self:
            raise KeyError(pair)
        return self._made(*pair)

    def __contains__(self, pair: object) -> bool:
        known = isinstance(pair, tuple) and all(name in self._canonical for name in pair)
        return known and pair[0] != pair[1]  # type: ignore[index]

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
    canonical = {}
    for name in names:
        if name == hub:
            canonical[name] = Canonical(shapes[hub].points, np.ones(len(shapes[hub])))
            continue
        places, odds = _places(hub, name, through, shapes, maps)
        if np.isfinite(places).all(axis=1).sum() >= _REACHED:
            canonical[name] = _canonical(shapes[hub], shapes[name], places, odds)
    return ThroughHub(shapes, canonical)


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


def _canonical(hub: Shape, shape: Shape, places: FloatArray, odds: FloatArray) -> Canonical:
    """Find where the points of a shape are on the hub, by the (H, 3) places of the hub's points.

    A mesh is deformed onto the shape first: a smooth deformation can be inverted. Clouds have too
    little surface for that.
    """
    known = np.isfinite(places).all(axis=1)  # (H,)
    if hub.faces is None or shape.faces is None:
        back = Carrier(places[known], hub.points[known], odds[known])
        return Canonical(*back.carry(shape.points))
    trust = np.where(known, np.maximum(odds, 1e-3), 0.0)  # (H,)
    moved = wrap(hub, shape, places, trust).points  # (H, 3)
    found = Surface(Shape(moved, hub.faces)).nearest(shape.points)
    # Weights that sum to one only nearly would make a certain place more than certain.
    return Canonical(found.on(hub.points), found.on(odds[:, None])[:, 0].clip(0.0, 1.0))
