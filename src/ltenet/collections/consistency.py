"""Maps that agree round every cycle, and how far the given ones are from it.

Composing maps from A to B to C and back to A should lead each point to where it began. Maps that
were found pair by pair do not. Here all shapes get one common frame of reference: the points of a
hub, the specimen whose maps are the most probable (see `synchronizing`). Every pair is then matched
through the hub, so cycles close up to interpolation. The given maps need not be those of all pairs:
a few hubs that reach every shape are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from ltenet.collections.plan import Plan
from ltenet.collections.records import PairRecord, write_table
from ltenet.collections.synchronizing import HELD, Maps, synchronize
from ltenet.collections.work import BATCH_KEY, finished_map
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.io import load
from ltenet.matching.dense import Carrier
from ltenet.shape import Shape

#: Folder of consistent maps, and the table of them in it.
FOLDER, TABLE = "consistent", "pairs.csv"
#: Points of a cycle's first shape that are followed, and cycles that are followed at most.
_POINTS, _CYCLES = 200, 200
#: A place this near to a vertex, in diameters, is that vertex.
_EXACT = 1e-9
#: Fewest partners of a map that is followed.
_FOLLOWED = 20
#: Shapes whose cycles are listed: those with the most maps, and as many others.
_AMONG = 80


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


class Consistent(NamedTuple):
    """What a batch with consistent maps ends with.

    Attributes
    ----------
    before, after
        Cycle errors of the given maps and of the consistent ones; None if there is no cycle, as
        with a single hub.
    pairs
        How many consistent maps there are.
    unreached
        Names of shapes that no path from the hub reaches.
    """

    before: CycleError | None
    after: CycleError | None
    pairs: int
    unreached: tuple[str, ...]


def two_way(maps: Mapping[tuple[str, str], Correspondence]) -> Maps:
    """Look up maps in either direction; the inverse fills gaps of up to 5 % of the diameter."""

    @lru_cache(maxsize=HELD)
    def inverse(source: str, target: str) -> Correspondence:
        return maps[target, source].inverse(fill=0.05)

    def find(source: str, target: str) -> Correspondence | None:
        if (source, target) in maps:
            return maps[source, target]
        return inverse(source, target) if (target, source) in maps else None

    return find


class StoredMaps(Mapping[tuple[str, str], Correspondence]):
    """The maps of a batch, read when they are asked for.

    Parameters
    ----------
    folder
        Of the batch.
    records
        Of pairs that are done.
    shapes
        By name.
    """

    def __init__(
        self, folder: Path, records: Sequence[PairRecord], shapes: Mapping[str, Shape]
    ) -> None:
        self._paths = {(one.source, one.target): folder / one.map for one in records}
        self._shapes = shapes
        self._read = lru_cache(maxsize=HELD)(self._load)

    def _load(self, source: str, target: str) -> Correspondence:
        ends = self._shapes[source], self._shapes[target]
        return Correspondence.load(self._paths[source, target], source=ends[0], target=ends[1])

    def __getitem__(self, pair: tuple[str, str]) -> Correspondence:
        return self._read(*pair)

    def __contains__(self, pair: object) -> bool:
        return pair in self._paths

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def cycle_error(
    shapes: Mapping[str, Shape],
    maps: Maps,
    *,
    linked: Callable[[str, str], bool] = lambda source, target: True,
    seed: int = 0,
) -> CycleError:
    """Follow points round cycles of three shapes; `linked` tells which of them have a map."""
    rng = np.random.default_rng(seed)
    names = sorted(shapes)
    if len(names) > _AMONG:
        links = {name: sum(linked(name, other) for other in names) for name in names}
        names.sort(key=lambda name: -links[name])
        others = rng.permutation(np.array(names[_AMONG // 2 :]))[: _AMONG // 2]
        names = sorted([*names[: _AMONG // 2], *map(str, others)])
    triples = [
        (a, b, c)
        for a, b, c in combinations(names, 3)
        if linked(a, b) and linked(b, c) and linked(c, a)
    ]
    chosen = rng.permutation(len(triples))[:_CYCLES]
    errors = []
    for number in sorted(chosen):
        first, second, third = triples[number]
        rows = rng.permutation(len(shapes[first]))[:_POINTS]  # (p,)
        places = start = shapes[first].points[rows]  # (p, 3)
        for source, target in ((first, second), (second, third), (third, first)):
            found = maps(source, target)
            if found is None or found.matched.sum() < _FOLLOWED:
                break
            places = _follow(places, found, shapes[source], shapes[target])
        else:
            away = np.linalg.norm(places - start, axis=1)  # (p,)
            if np.isfinite(away).any():
                errors.append(float(np.nanmean(away)) / shapes[first].diameter)
    if not errors:
        raise InputError(
            "got no cycle of three matched shapes, expected at least one; try --all-pairs"
        )
    return CycleError(float(np.mean(errors)), len(errors))


def _follow(places: FloatArray, found: Correspondence, source: Shape, target: Shape) -> FloatArray:
    """Map (p, 3) places on a source; NaN if unknown, or if the nearest vertex has no partner.

    Between vertices a map is locally affine: cycles of nearest vertices would measure how densely
    the shapes are sampled.
    """
    matched, positions = found.matched, found.positions(target)  # (N,), (N, 3)
    onward = np.full(places.shape, np.nan)  # (p, 3)
    alive = np.flatnonzero(np.isfinite(places).all(axis=1))  # (a,)
    if not len(alive):
        return onward
    distance, nearest = KDTree(source.points).query(places[alive])  # (a,)
    exact = distance <= _EXACT * source.diameter  # (a,)
    onward[alive[exact]] = positions[nearest[exact]]
    between = alive[~exact & matched[nearest]]  # (b,)
    if len(between):
        carrier = Carrier(source.points[matched], positions[matched], np.ones(int(matched.sum())))
        onward[between] = carrier.carry(places[between]).places
    return onward


def make_consistent(
    plan: Plan,
    folder: Path,
    pairs: Sequence[PairRecord],
    *,
    every: bool = False,
    tell: Callable[[str, int, int, int], None] = lambda what, done, before, total: None,
) -> Consistent:
    """Write consistent maps of a batch to `consistent/`.

    Parameters
    ----------
    plan, folder, pairs
        The batch, where it is, and its records.
    every
        Write the maps of all pairs, from the earlier shape to the later, not of those in `pairs`.
    tell
        Told how far the work is.
    """
    done = [record for record in pairs if record.state == "done"]
    used = {name for record in done for name in (record.source, record.target)}
    shapes = {one.name: load(one.path) for one in plan.specimens if one.name in used}
    maps = StoredMaps(folder, done, shapes)
    before = _cycles(
        shapes,
        two_way(maps),
        linked=lambda a, b: (a, b) in maps or (b, a) in maps,
        needed=not every,
    )
    trust = dict.fromkeys(shapes, 0.0)
    for record in done:
        for name in (record.source, record.target):
            trust[name] += record.mean_probability or 0.0
    found = synchronize(shapes, two_way(maps), trust=trust)
    key = sha256("-".join(sorted(record.key for record in done)).encode()).hexdigest()[:32]
    wanted = combinations(shapes, 2) if every else maps
    chosen = [pair for pair in wanted if pair in found]
    (folder / FOLDER).mkdir(exist_ok=True)
    rows = []
    for number, pair in enumerate(chosen, 1):
        path = folder / FOLDER / f"{pair[0]}__{pair[1]}.npz"
        one = finished_map(path, key)
        if one is None:
            made = found[pair]
            one = replace(made, details={**made.details, BATCH_KEY: key})
            one.save(path, force=True)
        odds = 0.0 if one.scores is None else float(one.scores.mean())
        rows.append((*pair, odds, float(one.matched.mean()), f"{FOLDER}/{path.name}"))
        tell("consistent maps", number, 0, len(chosen))
    columns = ("source", "target", "mean_probability", "matched", "map")
    write_table(folder / FOLDER / TABLE, columns, sorted(rows))
    reached = {name: shapes[name] for name in found.reached}
    after = _cycles(reached, two_way(found), needed=not every)
    unreached = tuple(one.name for one in plan.specimens if one.name not in reached)
    return Consistent(before, after, len(chosen), unreached)


def _cycles(
    shapes: Mapping[str, Shape],
    maps: Maps,
    *,
    linked: Callable[[str, str], bool] = lambda source, target: True,
    needed: bool,
) -> CycleError | None:
    try:
        return cycle_error(shapes, maps, linked=linked)
    except InputError:
        if needed:
            raise
        return None
