"""The files of an atlas: shapes in one vertex order, modes, landmarks, groups and their tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet.collections.atlas import Atlas, Registration
from ltenet.collections.groups import GroupDifference, group_difference
from ltenet.collections.landmark_sets import write_landmark_tables
from ltenet.collections.records import write_table
from ltenet.collections.shape_model import (
    Quality,
    ShapeModel,
    align_to,
    principal_modes,
    quality,
    vertex_variance,
)
from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.io import save
from ltenet.io.formats.arrays import numbers, read_archive
from ltenet.io.formats.tables import csv_rows
from ltenet.io.formats.text import failure, read_text
from ltenet.io.landmarks import Landmarks, write_landmarks
from ltenet.shape import Shape
from ltenet.transferring.surface import Surface

ATLAS, MODEL, SPECIMENS, ADDED = "atlas.npz", "model.json", "specimens.csv", "added.csv"
REGISTERED, LANDMARKS, GROUPS = "registered", "landmarks", "groups"
#: Modes that are measured, and a robust z-score beyond which a specimen is an outlier.
_MEASURED, _OUTLIER = 20, 3.5
_COLUMNS = ("name", "size", "distance", "from_mean", "outlier", "verdict", "note", "error")


class Statistics(NamedTuple):
    """What an atlas says of its specimens.

    Attributes
    ----------
    model, quality
        The modes, and how good they are.
    variance
        (V,) of each vertex.
    from_mean
        (n,) root-mean-square distance of each aligned shape from the mean.
    outliers
        Names of specimens that are unusually far from the mean.
    """

    model: ShapeModel
    quality: Quality
    variance: FloatArray
    from_mean: FloatArray
    outliers: tuple[str, ...]


def analyse(atlas: Atlas) -> Statistics:
    """Compute the statistics of an atlas."""
    aligned = atlas.procrustes.aligned  # (n, V, 3)
    away = np.sqrt(np.square(aligned - aligned.mean(axis=0)).sum(axis=2).mean(axis=1))  # (n,)
    spread = 1.4826 * float(np.median(np.abs(away - np.median(away))))
    far = away > np.median(away) + _OUTLIER * max(spread, 1e-12)  # (n,)
    return Statistics(
        principal_modes(aligned),
        quality(aligned, modes=_MEASURED),
        vertex_variance(aligned),
        away,
        tuple(one.name for one, outlier in zip(atlas.registered, far, strict=True) if outlier),
    )


def write_atlas(atlas: Atlas, statistics: Statistics, folder: Path) -> list[Path]:
    """Write mean, registered shapes, model and tables; return the paths."""
    model = statistics.model
    arrays: dict[str, Any] = {
        "mean": atlas.mean.points,
        "aligned": atlas.procrustes.aligned,
        "registered": np.stack([one.points for one in atlas.registered]),
        "names": np.array([one.name for one in atlas.registered]),
        "sizes": atlas.procrustes.sizes,
        "center": model.mean,
        "modes": model.modes,
        "variances": model.variances,
        "scores": model.scores,
        "vertex_variance": statistics.variance,
    }
    if atlas.mean.faces is not None:
        arrays["faces"] = atlas.mean.faces
    with atomic_path(folder / ATLAS, force=True) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    save(atlas.mean, folder / "mean.ply", force=True)
    _write_registered(atlas.registered, atlas.mean, folder)
    figures = {
        "specimens": len(atlas.registered),
        "explained": model.explained.tolist(),
        **{name: values.tolist() for name, values in statistics.quality._asdict().items()},
        "outliers": list(statistics.outliers),
    }
    _write_json(folder / MODEL, figures)
    notes = dict(atlas.notes)
    rows: list[Sequence[Any]] = [
        (
            one.name,
            size,
            one.distance,
            away,
            one.name in statistics.outliers or None,
            one.record.verdict,
            notes.pop(one.name, None),
            None,
        )
        for one, size, away in zip(
            atlas.registered, atlas.procrustes.sizes, statistics.from_mean, strict=True
        )
    ]
    empty = (None,) * 5
    rows += [(name, *empty, notes.pop(name, None), error) for name, error in atlas.failed]
    rows += [(name, *empty, note, None) for name, note in notes.items()]
    write_table(folder / SPECIMENS, _COLUMNS, rows)
    return [folder / name for name in (ATLAS, "mean.ply", REGISTERED, MODEL, SPECIMENS)]


def spread_to_all(
    atlas: Atlas, landmarks: Landmarks, shapes: Mapping[str, Shape], folder: Path, *, suffix: str
) -> list[Path]:
    """Carry landmarks on the mean to every specimen, with error bars; return the tables of all.

    The error bar adds up, by squares, how far the templates disagree there and the distance between
    the registered surface and the specimen's own, where the landmark ends.
    """
    places = Surface(atlas.mean).nearest(landmarks.points)
    (folder / LANDMARKS).mkdir(exist_ok=True)
    found, bars = [], []
    for one in atlas.registered:
        there = Surface(shapes[one.name]).nearest(places.on(one.points))
        points = there.on(shapes[one.name].points)  # (L, 3)
        spread = np.zeros(len(one.points)) if one.spread is None else one.spread  # (V,)
        errors = np.hypot(there.distances, places.on(spread[:, None])[:, 0])  # (L,)
        remarks = tuple(f"error={bar:.6g}" for bar in errors)
        carried = Landmarks(landmarks.names, points, descriptions=remarks)
        write_landmarks(carried, folder / LANDMARKS / f"{one.name}{suffix}", force=True)
        found.append(points)
        bars.append(errors)
    names = [one.name for one in atlas.registered]
    return write_landmark_tables(
        folder, LANDMARKS, names, landmarks.names, np.stack(found), np.stack(bars)
    )


def read_groups(path: Path) -> dict[str, str]:
    """Read a table with the columns name and group."""
    rows = [cells for _, cells in csv_rows(path, read_text(path)) if any(cells)]
    if rows and [cell.lower() for cell in rows[0]] == ["name", "group"]:
        rows = rows[1:]
    if not rows or any(len(row) != 2 or not all(row) for row in rows):
        raise InputError(
            f"{path}: got a table with other columns, expected name and group; try a row such as "
            "scan1,female for each shape"
        )
    return {row[0]: row[1] for row in rows}


def compare_groups(atlas: Atlas, groups: Mapping[str, str], folder: Path) -> GroupDifference:
    """Test where groups differ, and write the result: a table per vertex and the mean shapes."""
    rows = [number for number, one in enumerate(atlas.registered) if one.name in groups]
    unknown = sorted(set(groups) - {one.name for one in atlas.registered})
    if unknown and not rows:
        raise InputError(
            f"groups: got {unknown[0]} and other names that no shape has, expected names of "
            f"shapes; try {atlas.registered[0].name}"
        )
    labels = [groups[atlas.registered[number].name] for number in rows]
    found = group_difference(atlas.procrustes.aligned[rows], labels)
    (folder / GROUPS).mkdir(exist_ok=True)
    columns = ("vertex", "statistic", "p", "p_family_wise", "p_discovery")
    values = (found.statistic, found.p_values, found.family_wise, found.discovery)
    table = zip(range(len(found.statistic)), *(column.tolist() for column in values), strict=True)
    write_table(folder / GROUPS / "vertices.csv", columns, table)
    for name, mean in zip(found.names, found.means, strict=True):
        safe = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name)
        save(Shape(mean, atlas.mean.faces), folder / GROUPS / f"mean-{safe}.ply", force=True)
    return found


class Projection(NamedTuple):
    """A new shape in an atlas.

    Attributes
    ----------
    name
        Of the shape.
    scores
        (K,) in the modes.
    mahalanobis
        Root of the sum of squared scores over variances, by the root of their number: 1 is usual.
    residual
        Root-mean-square distance that the modes do not explain.
    """

    name: str
    scores: FloatArray
    mahalanobis: float
    residual: float


def read_model(folder: Path) -> tuple[Shape, ShapeModel]:
    """Read mean and modes of an atlas."""
    if not (folder / ATLAS).is_file():
        raise InputError(
            f"{folder}: got a folder without {ATLAS}, expected that of an atlas; try making it "
            "first, without --add"
        )
    path = folder / ATLAS
    arrays = read_archive(path)
    names = ("center", "modes", "variances", "scores")
    found = {name: arrays.get(name) for name in ("mean", *names)}
    held = {name: numbers(path, name, array) for name, array in found.items() if array is not None}
    sizes = {name: array.shape for name, array in held.items()}
    vertices, modes = sizes.get("mean", ()), sizes.get("variances", ())
    expected = {
        "mean": vertices,
        "center": vertices,
        "modes": (*modes, *vertices),
        "variances": modes,
        "scores": (sizes.get("scores", ())[:1] + modes),
    }
    if sizes != expected or len(vertices) != 2 or len(modes) != 1:
        raise failure(
            path,
            None,
            f"got arrays of shapes {sizes}, expected mean, center, modes, variances and scores of "
            "one model",
            "try making the atlas again",
        )
    mean = Shape(held["mean"], arrays.get("faces"), name="mean")  # type: ignore[arg-type]
    return mean, ShapeModel(*(held[name].astype(np.float64) for name in names))


def project(
    registered: Sequence[Registration], mean: Shape, model: ShapeModel, folder: Path, *, scale: bool
) -> list[Projection]:
    """Project new registrations into the modes, and write them beside the atlas."""
    found = []
    for one in registered:
        aligned = align_to(one.points, mean.points, scale=scale)(one.points)  # (V, 3)
        scores = model.project(aligned[None])[0]  # (K,)
        rest = aligned - model.shapes(scores[None])[0]  # (V, 3)
        standard = np.square(scores) / model.variances  # (K,)
        found.append(
            Projection(
                one.name,
                scores,
                float(np.sqrt(standard.mean())),
                float(np.sqrt(np.square(rest).sum(axis=1).mean())),
            )
        )
    _write_registered(registered, mean, folder)
    modes = [f"mode{number}" for number in range(1, len(model.modes) + 1)]
    rows = [(one.name, one.mahalanobis, one.residual, *one.scores.tolist()) for one in found]
    write_table(folder / ADDED, ("name", "mahalanobis", "residual", *modes), rows)
    return found


def _write_registered(registered: Sequence[Registration], mean: Shape, folder: Path) -> None:
    (folder / REGISTERED).mkdir(exist_ok=True)
    for one in registered:
        save(Shape(one.points, mean.faces), folder / REGISTERED / f"{one.name}.ply", force=True)


def _write_json(path: Path, figures: Mapping[str, Any]) -> None:
    with atomic_path(path, force=True) as temporary:
        temporary.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8", newline="\n")
