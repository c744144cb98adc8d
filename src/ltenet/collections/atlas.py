"""An atlas: every shape in one vertex order, their unbiased mean, and the statistics of them all.

The first template is the specimen of median size. It is registered to every specimen. Further
templates are specimens that represent the others best, in the vertices of the first: greedy
k-medoids [Kaufman & Rousseeuw 1990]. Each votes for where its vertices are on every specimen, and
the geometric median of the votes, weighted by probability, decides. The mean is that of all
registrations after Procrustes analysis: it resembles no specimen more than another, and is no
template, because the mean of many poses is no body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltenet.collections.batch import Engine, Tell, run_batch
from ltenet.collections.joining import geometric_medians
from ltenet.collections.plan import Plan, Specimen
from ltenet.collections.records import PairRecord
from ltenet.collections.shape_model import Procrustes, generalized_procrustes
from ltenet.collections.work import store_of
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.io import load, save
from ltenet.io.formats.arrays import read_archive
from ltenet.matching.config import MatchConfig
from ltenet.matching.dense import Carrier
from ltenet.shape import Shape
from ltenet.transferring.wrapping import wrap

BATCH = "batch"
#: Fewest shapes of an atlas.
LEAST = 3
#: Folder of finished registrations, and the fewest matched vertices of one.
_KEPT, _KNOWN = "registrations", 20
#: Weight of a vote whose probability is zero.
_LEAST_TRUST = 1e-3
#: Verdict on maps that have no vote.
_UNRELATED = "unrelated"


class Registration(NamedTuple):
    """One specimen in the vertex order of the template.

    Attributes
    ----------
    name
        Of the specimen.
    points
        (V, 3) in the specimen's coordinates.
    distance
        Mean distance to the specimen's surface, in its diameters.
    record
        How well the best template and the specimen match.
    """

    name: str
    points: FloatArray
    distance: float
    record: PairRecord


class Votes(NamedTuple):
    """What templates say of one specimen.

    Attributes
    ----------
    places
        (T, V, 3) of the template's vertices on the specimen.
    trust
        (T, V) probabilities of these.
    records
        T records of the maps.
    """

    places: FloatArray
    trust: FloatArray
    records: tuple[PairRecord, ...]

    @property
    def key(self) -> str:
        """Hash of everything that the votes depend on."""
        return sha256("-".join(one.key for one in self.records).encode()).hexdigest()[:32]

    @property
    def best(self) -> PairRecord:
        """The most probable map."""
        return max(self.records, key=lambda record: record.mean_probability or 0.0)

    def joined(self) -> tuple[FloatArray, FloatArray]:
        """Return the places (V, 3) on which the templates agree, and their probability (V,)."""
        if len(self.places) == 1:
            return self.places[0], self.trust[0]
        weights = np.maximum(self.trust, _LEAST_TRUST)  # (T, V)
        joined = np.square(weights).sum(axis=0) / weights.sum(axis=0)  # (V,)
        return geometric_medians(self.places, weights), joined


class Atlas(NamedTuple):
    """Registered shapes and their mean.

    Attributes
    ----------
    mean
        Procrustes mean, with the faces of the first template.
    registered
        The specimens that could be registered.
    failed
        (name, error) of the others.
    procrustes
        The alignment of `registered`.
    first
        Name of the specimen that was the first template.
    """

    mean: Shape
    registered: tuple[Registration, ...]
    failed: tuple[tuple[str, str], ...]
    procrustes: Procrustes
    first: str = ""


def build_atlas(
    specimens: Sequence[Specimen],
    folder: Path,
    config: MatchConfig,
    *,
    rounds: int = 2,
    scale: bool = True,
    engine: Engine | None = None,
    tell: Tell = lambda what, done, before, total: None,
) -> Atlas:
    """Register every specimen to their mean.

    Parameters
    ----------
    specimens
        At least three.
    folder
        Of the atlas; maps are kept below it, so that a stopped run goes on where it was.
    config
        How shapes are matched.
    rounds
        How many templates follow the first; 0 keeps the specimen of median size alone.
    scale
        Whether size is removed from the mean.
    engine, tell
        As for `run_batch`.
    """
    store = store_of(folder / BATCH, config)
    described = [store.describe(one) for one in specimens]
    usable = [
        (one, record)
        for one, record in zip(specimens, described, strict=True)
        if record.state == "ready"
    ]
    if len(usable) < LEAST:
        reasons = "; ".join(record.error for record in described if record.error)
        raise InputError(
            f"got {len(usable)} readable shapes, expected at least {LEAST} for an atlas; try more "
            f"files {f'({reasons})' if reasons else ''}"
        )
    # Meshes first: only they have faces to give.
    meshes = [pair for pair in usable if pair[1].faces] or usable
    meshes.sort(key=lambda pair: (pair[1].radius or 0.0, pair[0].name))
    first = meshes[len(meshes) // 2][0]
    template = load(first.path)
    chosen = [one for one, _ in usable]
    unusable = [(record.name, record.error) for record in described if record.state != "ready"]
    templates, used = [template], [first.name]
    votes: dict[str, Votes] = {}
    for number in range(rounds + 1):
        votes, failed = gather(
            templates, chosen, folder, config, known=votes, engine=engine, tell=tell
        )
        if len(votes) < LEAST:
            raise InputError(
                f"got {len(votes)} shapes that match, expected at least {LEAST} for an atlas; "
                f"try shapes of one kind ({'; '.join(error for _, error in failed[:3])})"
            )
        if number == rounds:
            break
        following = _representative(votes, used, scale=scale)
        if following is None:
            break
        one = next(one for one in chosen if one.name == following)
        moved = _deformed(template, one, votes[following], folder / BATCH)
        templates.append(Shape(moved[0], template.faces, name=following))
        used.append(following)
    registered = finish(template, chosen, votes, folder, tell=tell)
    found = generalized_procrustes(np.stack([one.points for one in registered]), scale=scale)
    mean = Shape(found.mean, template.faces, name="mean")
    return Atlas(mean, tuple(registered), (*unusable, *failed), found, first.name)


def read_templates(folder: Path, mean: Shape) -> list[Shape]:
    """Return the templates of an atlas, in the vertex order of its mean; that itself if none is."""
    files = sorted((folder / BATCH).glob("template-*.npz"), key=lambda path: path.stem)
    shapes = [load(path) for path in files]
    fitting = [shape for shape in shapes if len(shape) == len(mean)]
    return fitting or [mean]


def gather(
    templates: Sequence[Shape],
    specimens: Sequence[Specimen],
    folder: Path,
    config: MatchConfig,
    *,
    known: Mapping[str, Votes] | None = None,
    engine: Engine | None = None,
    tell: Tell = lambda what, done, before, total: None,
) -> tuple[dict[str, Votes], list[tuple[str, str]]]:
    """Match templates of one vertex order to specimens.

    Parameters
    ----------
    templates
        In the order of their choice.
    specimens, folder, config, engine, tell
        As for `build_atlas`.
    known
        Votes of all templates but the last.

    Returns
    -------
    The votes by name of the specimen, and (name, error) of specimens without one.
    """
    batch = folder / BATCH
    batch.mkdir(parents=True, exist_ok=True)
    before = dict(known or {})
    numbers = range(len(templates) - 1, len(templates)) if known else range(len(templates))
    errors: dict[str, str] = {}
    for number in numbers:
        name = f"template-{number}"
        path = batch / f"{name}.npz"
        save(templates[number], path, force=True)
        store_of(batch, config).forget(path)
        plan = Plan(
            (Specimen(name, path), *specimens),
            tuple((0, place) for place in range(1, len(specimens) + 1)),
        )
        outcome = run_batch(plan, batch, config, engine=engine, resume=True, tell=tell)
        records = {record.target: record for record in outcome.pairs}
        for specimen in specimens:
            try:
                vote = _vote(templates[number], specimen, batch, records[specimen.name])
            except InputError as error:
                errors.setdefault(specimen.name, str(error))
                continue
            before[specimen.name] = _with(before.get(specimen.name), vote)
    votes = {one.name: before[one.name] for one in specimens if one.name in before}
    failed = [(one.name, errors.get(one.name, "")) for one in specimens if one.name not in votes]
    return votes, failed


def finish(
    template: Shape,
    specimens: Sequence[Specimen],
    votes: Mapping[str, Votes],
    folder: Path,
    *,
    tell: Tell = lambda what, done, before, total: None,
) -> list[Registration]:
    """Deform the first template onto each specimen that has votes."""
    registered = []
    for specimen in (one for one in specimens if one.name in votes):
        points, distance = _deformed(template, specimen, votes[specimen.name], folder / BATCH)
        best = votes[specimen.name].best
        registered.append(Registration(specimen.name, points, distance, best))
        tell("registrations", len(registered), 0, len(votes))
    return registered


def _vote(template: Shape, specimen: Specimen, batch: Path, record: PairRecord) -> Votes:
    """Read where one template's vertices are on a specimen."""
    if record.state != "done":
        raise InputError(record.error)
    if record.verdict == _UNRELATED:
        raise InputError(
            f"{specimen.name}: got a shape that seems unrelated to the template, expected one of "
            f"the same kind; try leaving it out ({record.doubts})"
        )
    shape = load(specimen.path)
    found = Correspondence.load(batch / record.map, source=template, target=shape)
    places = found.positions(shape)  # (V, 3)
    known = found.matched  # (V,)
    if known.sum() < _KNOWN:
        raise InputError(
            f"{specimen.name}: got {int(known.sum())} matched vertices, expected at least "
            f"{_KNOWN}; try a lower --threshold, or leave the shape out"
        )
    trust = np.ones(len(found)) if found.scores is None else found.scores  # (V,)
    if not known.all():
        carrier = Carrier(template.points[known], places[known], trust[known])
        places[~known] = carrier.carry(template.points[~known]).places
    return Votes(places[None], np.where(known, trust, 0.0)[None], (record,))


def _with(known: Votes | None, vote: Votes) -> Votes:
    if known is None:
        return vote
    return Votes(
        np.concatenate([known.places, vote.places]),
        np.concatenate([known.trust, vote.trust]),
        (*known.records, *vote.records),
    )


def _representative(votes: Mapping[str, Votes], used: Sequence[str], *, scale: bool) -> str | None:
    """Name of the specimen that, added to the used ones, represents all of them best."""
    names = list(votes)
    stacked = np.stack([votes[name].joined()[0] for name in names])  # (n, V, 3)
    aligned = generalized_procrustes(stacked, scale=scale).aligned  # (n, V, 3)
    rows = aligned.reshape(len(names), -1)  # (n, 3V)
    squares = np.square(rows).sum(axis=1)  # (n,)
    apart = np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0.0)  # (n, n)
    taken = [names.index(name) for name in used if name in names]
    nearest = apart[taken].min(axis=0) if taken else np.full(len(names), np.inf)  # (n,)
    costs = np.minimum(apart, nearest).sum(axis=1)  # (n,)
    free = [number for number in range(len(names)) if number not in taken]
    return names[min(free, key=lambda number: float(costs[number]))] if free else None


def _deformed(
    template: Shape, specimen: Specimen, votes: Votes, batch: Path
) -> tuple[FloatArray, float]:
    """Return the template's vertices (V, 3) on a specimen, and their mean distance from it."""
    kept = batch / _KEPT / f"{votes.key}.npz"
    if kept.is_file():
        arrays = read_archive(kept)
        return arrays["points"], float(arrays["distance"])
    wrapped = wrap(template, load(specimen.path), *votes.joined())
    kept.parent.mkdir(exist_ok=True)
    with atomic_path(kept, force=True) as temporary, temporary.open("wb") as stream:
        np.savez(stream, points=wrapped.points, distance=np.array(wrapped.distance))
    return wrapped.points, wrapped.distance
