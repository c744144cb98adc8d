"""Landmarks from several templates joined into one place each, with an error bar.

One template biases landmarks towards its own shape; several make the bias visible and reduce it, as
in MALPACA [Zhang et al. 2022]. The joined place is the geometric median of those that the templates
vote for, weighted by probability, so one wrong map out of three changes little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from ltenet.collections.plan import Plan, Specimen
from ltenet.collections.records import PairRecord, write_table
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.geometry.arrays import FloatArray
from ltenet.io import load
from ltenet.io.landmarks import Landmarks, read_landmarks, write_landmarks
from ltenet.shape import Shape
from ltenet.transferring.landmarks import carry_landmarks
from ltenet.transferring.surface import Surface

FOLDER, TABLE = "landmarks", "landmarks.csv"
#: Iterations of Weiszfeld's algorithm, and the movement, in spreads, at which it ends.
_ROUNDS, _SETTLED = 100, 1e-9
#: Weight of a place whose probability is not known or zero.
_LEAST = 1e-3


class JoinedLandmarks(NamedTuple):
    """Landmarks of one specimen.

    Attributes
    ----------
    landmarks
        Joined, on the surface; NaN where no template reaches.
    spread
        (L,) weighted root-mean-square distance of the templates' places from the joined one; NaN
        where fewer than two templates reach.
    votes
        (L,) templates that reach.
    """

    landmarks: Landmarks
    spread: FloatArray
    votes: FloatArray


def geometric_median(places: FloatArray, weights: FloatArray) -> FloatArray:
    """Minimise ``sum_k w_k |x - y_k|`` over x, for (K, 3) finite places and (K,) weights: (3,)."""
    median: FloatArray = geometric_medians(places[:, None], weights[:, None])[0]
    return median


def geometric_medians(places: FloatArray, weights: FloatArray) -> FloatArray:
    """Find many geometric medians at once by Weiszfeld's algorithm [Weiszfeld 1937].

    Parameters
    ----------
    places
        (K, L, 3) the votes for each of L places; only those with a weight must be finite.
    weights
        (K, L) non-negative, at least one of each column positive.

    Returns
    -------
    (L, 3)
    """
    shares = weights / weights.sum(axis=0)  # (K, L)
    votes = np.where(shares[..., None] > 0, places, 0.0)  # (K, L, 3)
    centre = np.einsum("kl,kli->li", shares, votes)  # (L, 3)
    spread = np.square(votes - centre).sum(axis=2)  # (K, L)
    size = np.sqrt((shares * spread).sum(axis=0))  # (L,)
    # The best of the votes is optimal if the others do not pull it away [Vardi & Zhang 2000].
    costs = np.stack(
        [(shares * np.linalg.norm(votes - vote, axis=2)).sum(axis=0) for vote in votes]
    )  # (K, L)
    best = np.where(shares > 0, costs, np.inf).argmin(axis=0)  # (L,)
    found: FloatArray = np.take_along_axis(votes, best[None, :, None], axis=0)[0]  # (L, 3)
    offsets = votes - found  # (K, L, 3)
    away = np.linalg.norm(offsets, axis=2)  # (K, L)
    others = away > 1e-12 * size  # (K, L)
    strengths = np.where(others, shares, 0.0) / np.where(others, away, 1.0)  # (K, L)
    pull = np.einsum("kl,kli->li", strengths, offsets)  # (L, 3)
    own = np.where(others, 0.0, shares).sum(axis=0)  # (L,)
    force = np.linalg.norm(pull, axis=1)  # (L,)
    moving = np.flatnonzero((force > own) & (size > 0))  # (l,)
    step = (1 - own[moving] / force[moving]) / strengths[:, moving].sum(axis=0)  # (l,)
    found[moving] += step[:, None] * pull[moving]
    for _ in range(_ROUNDS):
        if not len(moving):
            break
        distances = np.linalg.norm(votes[:, moving] - found[moving], axis=2)  # (K, l)
        pulls = shares[:, moving] / np.maximum(distances, 1e-12 * size[moving])  # (K, l)
        moved = np.einsum("kl,kli->li", pulls, votes[:, moving]) / pulls.sum(axis=0)[:, None]
        change = np.linalg.norm(moved - found[moving], axis=1)  # (l,)
        found[moving] = moved
        moving = moving[change >= _SETTLED * size[moving]]
    return found


def join_landmarks(carried: Sequence[Landmarks], shape: Shape) -> JoinedLandmarks:
    """Join what several templates say of one shape.

    Parameters
    ----------
    carried
        The landmarks of each template on the shape, with the same names; NaN where a map is silent.
    shape
        Onto whose surface the joined places are projected.
    """
    names = carried[0].names
    if any(one.names != names for one in carried):
        raise InputError(
            "landmarks: got templates with different names of landmarks, expected the same names "
            "in the same order; try renaming them"
        )
    votes = np.stack([one.points for one in carried])  # (T, L, 3)
    known = np.asarray(np.isfinite(votes).all(axis=2))  # (T, L)
    trust = np.ones(known.shape)  # (T, L)
    for number, one in enumerate(carried):
        if one.probabilities is not None:
            trust[number] = np.nan_to_num(one.probabilities, nan=_LEAST)
    trust = np.maximum(trust, _LEAST) * known
    places = np.full((len(names), 3), np.nan)
    spread = np.full(len(names), np.nan)
    probability = np.full(len(names), np.nan)
    for place in np.flatnonzero(known.any(axis=0)):
        here = known[:, place]
        points, weights = votes[here, place], trust[here, place]  # (k, 3), (k,)
        places[place] = geometric_median(points, weights)
        probability[place] = np.average(weights, weights=weights)
    given = np.isfinite(places).all(axis=1)
    if given.any():
        places[given] = Surface(shape).nearest(places[given]).on(shape.points)
    for place in np.flatnonzero(known.sum(axis=0) >= 2):
        here = known[:, place]
        away = np.square(votes[here, place] - places[place]).sum(axis=1)  # (k,)
        spread[place] = np.sqrt(np.average(away, weights=trust[here, place]))
    remarks = tuple(
        f"spread={bar:.6g} of {count} templates" if count > 1 else "one template"
        for bar, count in zip(spread, known.sum(axis=0), strict=True)
    )
    joined = Landmarks(
        names,
        places,
        system=carried[0].system,
        descriptions=remarks,
        probabilities=probability if np.isfinite(probability).any() else None,
    )
    return JoinedLandmarks(joined, spread, known.sum(axis=0).astype(np.float64))


def spread_landmarks(
    plan: Plan,
    folder: Path,
    pairs: Sequence[PairRecord],
    files: Sequence[Path],
    *,
    suffix: str = ".csv",
) -> Path:
    """Carry the landmarks of the templates to every specimen that has a map; return their table.

    Parameters
    ----------
    plan
        That of a batch to templates.
    folder
        Of the batch: the landmarks of a specimen go to `landmarks/NAME` + `suffix` there.
    pairs
        Its records.
    files
        Landmarks, a file for each template in the same order.
    suffix
        Ending of the files, which chooses their format.
    """
    if len(files) != len(plan.templates):
        raise UsageError(
            f"got {len(files)} files of landmarks for {len(plan.templates)} templates, expected "
            "one for each, in the same order; try --landmarks FILE... after --to TEMPLATE..."
        )
    templates = {plan.specimens[place].name: place for place in plan.templates}
    shapes = {name: load(plan.specimens[place].path) for name, place in templates.items()}
    given = {
        name: read_landmarks(file, shapes[name])
        for name, file in zip(templates, files, strict=True)
    }
    (folder / FOLDER).mkdir(exist_ok=True)
    rows = []
    for specimen in plan.specimens:
        maps = {
            record.target: folder / record.map
            for record in pairs
            if record.source == specimen.name and record.target in templates and record.map
        }
        if specimen.name in templates or not maps:
            continue
        maps = {name: maps[name] for name in templates if name in maps}  # in the order of --to
        joined = _on(specimen, maps, shapes, given)
        path = folder / FOLDER / f"{specimen.name}{suffix}"
        write_landmarks(joined.landmarks, path, force=True)
        marks = joined.landmarks
        odds = marks.probabilities if marks.probabilities is not None else [None] * len(marks)
        for row in zip(marks.names, marks.points, joined.spread, odds, joined.votes, strict=True):
            name, place, bar, odd, votes = row
            cells = [None if value != value else float(value) for value in (*place, bar)]
            rows.append((specimen.name, name, *cells, odd, int(votes)))
    columns = ("specimen", "landmark", "x", "y", "z", "spread", "probability", "templates")
    write_table(folder / TABLE, columns, rows)
    return folder / TABLE


def _on(
    specimen: Specimen,
    maps: dict[str, Path],
    shapes: dict[str, Shape],
    given: dict[str, Landmarks],
) -> JoinedLandmarks:
    """Join the landmarks of the templates on one specimen."""
    shape = load(specimen.path)
    tree = KDTree(shape.points)
    carried = []
    for name, path in maps.items():
        found = Correspondence.load(path, source=shape, target=shapes[name])
        here = carry_landmarks(
            found, given[name], source=shape, target=shapes[name], to_source=True
        )
        probabilities = np.full(len(here), np.nan)  # (L,)
        placed = np.isfinite(here.points).all(axis=1)
        if found.scores is not None and placed.any():
            probabilities[placed] = found.scores[tree.query(here.points[placed])[1]]
        carried.append(replace(here, indices=None, probabilities=probabilities))
    return join_landmarks(carried, shape)
