"""Where several templates of one vertex order say that their vertices are on each specimen."""

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
from ltenet.collections.work import store_of
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.io import load, save
from ltenet.matching.config import MatchConfig
from ltenet.matching.dense import Carrier
from ltenet.shape import Shape

#: Folder of the maps of an atlas.
BATCH = "batch"
#: Fewest matched vertices of a map that has a vote.
_KNOWN = 20
#: Weight of a vote whose probability is zero.
_LEAST_TRUST = 1e-3
#: Verdict on maps that have no vote.
_UNRELATED = "unrelated"


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

    def spread(self) -> FloatArray:
        """(V,) weighted root-mean-square distance of the votes from where they agree."""
        weights = np.maximum(self.trust, _LEAST_TRUST)  # (T, V)
        away = np.square(self.places - self.joined()[0]).sum(axis=2)  # (T, V)
        spread: FloatArray = np.sqrt((weights * away).sum(axis=0) / weights.sum(axis=0))
        return spread


def read_templates(folder: Path, mean: Shape) -> list[Shape]:
    """Return the templates of an atlas, in the vertex order of its mean; that itself if none is."""
    shapes = [load(path) for path in _template_files(folder)]
    fitting = [shape for shape in shapes if len(shape) == len(mean)]
    return fitting or [mean]


def forget_templates(folder: Path, count: int) -> None:
    """Remove what an earlier run with more templates left: their vertices may be others."""
    for path in _template_files(folder)[count:]:
        path.unlink()


def _template_files(folder: Path) -> list[Path]:
    return sorted((folder / BATCH).glob("template-*.npz"), key=lambda path: (len(path.stem), path))


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
            record = records[specimen.name]
            if record.state != "done":
                errors.setdefault(specimen.name, record.error)
                continue
            try:
                vote = _vote(templates[number], specimen, batch, record)
            except InputError as error:
                errors.setdefault(specimen.name, str(error))
                continue
            before[specimen.name] = _with(before.get(specimen.name), vote)
    votes = {one.name: before[one.name] for one in specimens if one.name in before}
    failed = [(one.name, errors.get(one.name, "")) for one in specimens if one.name not in votes]
    return votes, failed


def _vote(template: Shape, specimen: Specimen, batch: Path, record: PairRecord) -> Votes:
    """Read where one template's vertices are on a specimen."""
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
