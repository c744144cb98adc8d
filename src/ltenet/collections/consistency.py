"""Maps that agree round every cycle, and how far the given ones are from it.

Composing maps from A to B to C and back to A should lead each point to where it began. Maps that
were found pair by pair do not. Here all shapes get one common frame of reference: the points of a
hub, the specimen whose maps are the most probable. Each hub point has several places on a shape,
along the direct map and along two-step paths through other shapes; their geometric median, weighted
by probability, is robust to wrong maps. Every pair is then matched through the hub, so cycles close
up to interpolation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltenet.collections.joining import geometric_median
from ltenet.collections.plan import Plan
from ltenet.collections.records import PairRecord
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.io import load
from ltenet.matching.dense import Carrier, land
from ltenet.shape import Shape

#: The map from one shape to another, by name.
Maps = Callable[[str, str], Correspondence | None]

#: Folder of consistent maps.
FOLDER = "consistent"
#: Points of a cycle's first shape that are followed, cycles that are followed at most, and shapes
#: that two-step paths go through at most.
_POINTS, _CYCLES, _THROUGH = 200, 200, 8
#: Weight of a two-step path relative to the direct map.
_INDIRECT = 0.5


class CycleError(NamedTuple):
    """Mean distance between a point and its image round a cycle of three, in diameters.

    Attributes
    ----------
    mean
        Over points and cycles.
    cycles
        How many were followed.
    """

    mean: float
    cycles: int


def two_way(maps: Mapping[tuple[str, str], Correspondence]) -> Maps:
    """Look up maps in either direction; the inverse fills gaps of up to 5 % of the diameter."""
    inverses: dict[tuple[str, str], Correspondence] = {}

    def find(source: str, target: str) -> Correspondence | None:
        if (source, target) in maps:
            return maps[source, target]
        if (target, source) not in maps:
            return None
        if (source, target) not in inverses:
            inverses[source, target] = maps[target, source].inverse(fill=0.05)
        return inverses[source, target]

    return find


def cycle_error(shapes: Mapping[str, Shape], maps: Maps, *, seed: int = 0) -> CycleError:
    """Follow points round cycles of three shapes."""
    rng = np.random.default_rng(seed)
    triples = list(combinations(sorted(shapes), 3))
    chosen = rng.permutation(len(triples))[:_CYCLES]
    errors = []
    for number in sorted(chosen):
        first, second, third = triples[number]
        path = [maps(first, second), maps(second, third), maps(third, first)]
        if any(one is None for one in path):
            continue
        rows = rng.permutation(len(shapes[first]))[:_POINTS]  # (p,)
        current, alive = rows, np.ones(len(rows), bool)
        for one in path:
            assert one is not None
            following = one.indices[current]  # (p,)
            alive &= following >= 0
            current = np.maximum(following, 0)
        points = shapes[first].points
        if alive.any():
            away = np.linalg.norm(points[current] - points[rows], axis=1)[alive]
            errors.append(float(away.mean()) / shapes[first].diameter)
    if not errors:
        raise InputError(
            "got no cycle of three matched shapes, expected at least one; try --all-pairs"
        )
    return CycleError(float(np.mean(errors)), len(errors))


def make_consistent(
    plan: Plan, folder: Path, pairs: Sequence[PairRecord]
) -> tuple[CycleError, CycleError]:
    """Write consistent maps of a batch to `consistent/`; return cycle errors before and after."""
    done = [record for record in pairs if record.state == "done"]
    used = {name for record in done for name in (record.source, record.target)}
    shapes = {one.name: load(one.path) for one in plan.specimens if one.name in used}
    maps = {
        (record.source, record.target): Correspondence.load(
            folder / record.map, source=shapes[record.source], target=shapes[record.target]
        )
        for record in done
    }
    before = cycle_error(shapes, two_way(maps))
    found = synchronize(shapes, two_way(maps))
    (folder / FOLDER).mkdir(exist_ok=True)
    for source, target in maps:
        if (source, target) in found:
            path = folder / FOLDER / f"{source}__{target}.npz"
            found[source, target].save(path, force=True)
    return before, cycle_error(shapes, two_way(found))


def synchronize(
    shapes: Mapping[str, Shape], maps: Maps
) -> Mapping[tuple[str, str], Correspondence]:
    """Return maps between all ordered pairs of shapes, through one hub.

    Parameters
    ----------
    shapes
        By name.
    maps
        Between any of them.
    """
    names = sorted(shapes)
    trust = {name: _trust(name, names, maps) for name in names}
    hub = max(names, key=lambda name: trust[name])
    through = sorted((one for one in names if one != hub), key=lambda one: -trust[one])[:_THROUGH]
    places = {
        name: _places(hub, name, through, shapes, maps)
        if name != hub
        else (
            shapes[hub].points,
            np.ones(len(shapes[hub])),
        )
        for name in names
    }
    reachable = [name for name in names if np.isfinite(places[name][0]).all(axis=1).sum() >= 20]
    return {
        (source, target): _through_hub(
            shapes[source], shapes[target], *places[source], *places[target]
        )
        for source in reachable
        for target in reachable
        if source != target
    }


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
    for point in np.flatnonzero(known.any(axis=0)):
        here = known[:, point]
        places[point] = geometric_median(stacked[here, point], trust[here, point])
        odds[point] = min(1.0, float(trust[here, point].max()))
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
