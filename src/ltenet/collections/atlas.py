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
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltenet.collections.batch import Engine, Tell
from ltenet.collections.plan import Specimen
from ltenet.collections.records import PairRecord
from ltenet.collections.shape_model import Procrustes, generalized_procrustes
from ltenet.collections.unusual import with_notes
from ltenet.collections.votes import BATCH, Votes, forget_templates, gather
from ltenet.collections.work import store_of
from ltenet.errors import InputError
from ltenet.files import atomic_path, sweep_tree
from ltenet.geometry.arrays import FloatArray
from ltenet.io import load
from ltenet.io.formats.arrays import read_archive
from ltenet.matching.config import MatchConfig
from ltenet.shape import Shape
from ltenet.transferring.wrapping import wrap

#: Fewest shapes of an atlas.
LEAST = 3
#: Folder of finished registrations.
_KEPT = "registrations"


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
    spread
        (V,) how far the votes of the templates are from where they agree; None if unknown.
    """

    name: str
    points: FloatArray
    distance: float
    record: PairRecord
    spread: FloatArray | None = None


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
    notes
        (name, note) of shapes that differ from the others.
    """

    mean: Shape
    registered: tuple[Registration, ...]
    failed: tuple[tuple[str, str], ...]
    procrustes: Procrustes
    first: str = ""
    notes: tuple[tuple[str, str], ...] = ()


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
    sweep_tree(folder)
    store = store_of(folder / BATCH, config)
    described = [store.describe(one) for one in specimens]
    contents = [
        store.content(one.path) if record.state == "ready" else ""
        for one, record in zip(specimens, described, strict=True)
    ]
    notes = tuple((one.name, one.note) for one in with_notes(described, contents) if one.note)
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
    meshes = sorted(
        [pair for pair in usable if pair[1].faces] or usable,
        key=lambda pair: (pair[1].radius or 0.0, pair[0].name),
    )
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
    forget_templates(folder, len(templates))
    registered = finish(template, chosen, votes, folder, tell=tell)
    found = generalized_procrustes(np.stack([one.points for one in registered]), scale=scale)
    mean = Shape(found.mean, template.faces, name="mean")
    return Atlas(mean, tuple(registered), (*unusable, *failed), found, first.name, notes)


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
        spread = votes[specimen.name].spread()
        registered.append(Registration(specimen.name, points, distance, best, spread))
        tell("registrations", len(registered), 0, len(votes))
    return registered


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
