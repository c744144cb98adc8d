"""An atlas: every shape in the vertex order of an unbiased mean, and the statistics of them all.

The first template is the specimen of median size. It is registered to every specimen; the mean of
the registrations after Procrustes analysis is the next template, which resembles no specimen more
than another [Joshi et al. 2004]. Connectivity is that of the first template.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ltenet.collections.batch import Engine, Tell, run_batch
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
        How well the template and the specimen match.
    """

    name: str
    points: FloatArray
    distance: float
    record: PairRecord


class Atlas(NamedTuple):
    """Registered shapes and their mean.

    Attributes
    ----------
    mean
        The template: Procrustes mean with the faces of the first template.
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
        How often the mean becomes the template: 0 keeps the specimen of median size.
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
    for number in range(rounds + 1):
        registered, failed = register(
            template,
            f"template-{number}",
            chosen,
            folder,
            config,
            fine=number == rounds,
            engine=engine,
            tell=tell,
        )
        if len(registered) < LEAST:
            raise InputError(
                f"got {len(registered)} shapes that match, expected at least {LEAST} for an "
                f"atlas; try shapes of one kind ({'; '.join(error for _, error in failed[:3])})"
            )
        found = generalized_procrustes(np.stack([one.points for one in registered]), scale=scale)
        template = Shape(found.mean, template.faces, name="mean")
    return Atlas(template, tuple(registered), (*unusable, *failed), found, first.name)


def register(
    template: Shape,
    name: str,
    specimens: Sequence[Specimen],
    folder: Path,
    config: MatchConfig,
    *,
    fine: bool = True,
    engine: Engine | None = None,
    tell: Tell = lambda what, done, before, total: None,
) -> tuple[list[Registration], list[tuple[str, str]]]:
    """Match a template to specimens and deform it onto each.

    Without `fine`, the vertices go where the map says, which is enough for a mean.

    Returns
    -------
    The registrations, and (name, error) of specimens without one.
    """
    batch = folder / BATCH
    batch.mkdir(parents=True, exist_ok=True)
    path = batch / f"{name}.npz"
    save(template, path, force=True)
    store_of(batch, config).forget(path)
    plan = Plan(
        (Specimen(name, path), *specimens),
        tuple((0, number) for number in range(1, len(specimens) + 1)),
    )
    outcome = run_batch(plan, batch, config, engine=engine, resume=True, tell=tell)
    records = {record.target: record for record in outcome.pairs}
    registered, failed = [], []
    for number, specimen in enumerate(specimens, 1):
        record = records[specimen.name]
        if record.state != "done":
            failed.append((specimen.name, record.error))
            continue
        try:
            points, distance = _registered(template, specimen, batch, record, fine=fine)
        except InputError as error:
            failed.append((specimen.name, str(error)))
            continue
        registered.append(Registration(specimen.name, points, distance, record))
        tell("registrations", number, 0, len(specimens))
    return registered, failed


def _registered(
    template: Shape, specimen: Specimen, batch: Path, record: PairRecord, *, fine: bool
) -> tuple[FloatArray, float]:
    """Return the template's vertices (V, 3) on a specimen, and their mean distance from it."""
    kept = batch / _KEPT / f"{record.key}.npz"
    if fine and kept.is_file():
        arrays = read_archive(kept)
        return arrays["points"], float(arrays["distance"])
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
    if not fine:
        carrier = Carrier(template.points[known], places[known], trust[known])
        places[~known] = carrier.carry(template.points[~known]).places if (~known).any() else 0.0
        return places, 0.0
    wrapped = wrap(template, shape, places, trust)
    kept.parent.mkdir(exist_ok=True)
    with atomic_path(kept, force=True) as temporary, temporary.open("wb") as stream:
        np.savez(stream, points=wrapped.points, distance=np.array(wrapped.distance))
    return wrapped.points, wrapped.distance
