"""Generated bodies as a `ShapeSet`, and as files with their truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ltenet import __version__, io
from ltenet.bodies.body_pairs import What, own_generator
from ltenet.bodies.generated import GeneratedBody, Template
from ltenet.data.readers.common import checked_index, no_pairs
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.errors import UsageError
from ltenet.files import atomic_path
from ltenet.io.maps import write_map
from ltenet.shape import Shape

Format = Literal["ply", "npz", "obj", "off"]

#: Shows how far a long loop is; it yields what it is given.
Progress = Callable[[Iterable[int]], Iterator[int]]


class GeneratedSet(ShapeSet):
    """Consecutive bodies of a generator's stream; truth holds inside a template.

    Parameters
    ----------
    what
        "human", "animal" or "thing".
    count
        How many, at least 1.
    seed
        Which stream, from 0.
    first
        Index of the first body in the stream, from 0.
    template, category
        Only bodies of this template, of this species.
    progress
        Wraps the loop that draws the bodies.

    Attributes
    ----------
    bodies
        The bodies themselves.
    kinds
        Pose family of each.
    """

    def __init__(
        self,
        what: What,
        count: int,
        *,
        seed: int = 0,
        first: int = 0,
        template: str | None = None,
        category: str | None = None,
        progress: Progress = iter,
    ) -> None:
        _check_numbers(count=count, seed=seed, first=first)
        generator = own_generator(what)
        self.templates: Mapping[str, Template] = generator.templates
        species = {name: generator.species(name) for name in self.templates}
        _check_choice(what, species, template, category)
        self.bodies: tuple[GeneratedBody, ...] = tuple(
            generator.draw(seed, index, template=template, category=category)
            for index in progress(range(first, first + count))
        )
        self.name = what
        self.seed, self.first = seed, first
        self.names = tuple(f"{what}_s{seed}_{index:06d}" for index in range(first, first + count))
        self.categories = tuple(body.category for body in self.bodies)
        self.kinds = tuple(body.family for body in self.bodies)
        self.pairs = no_pairs()

    def shape(self, index: int) -> Shape:
        """Body number `index` of the set."""
        body = self.bodies[checked_index(self, index)]
        return Shape(
            points=body.vertices.astype(np.float64),
            faces=self.templates[body.template].faces.astype(np.int64),
            name=self.names[index],
        )

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Identity inside a template, None across templates."""
        first, second = self.bodies[source], self.bodies[target]
        return identity_truth(len(first.vertices)) if first.template == second.template else None


def write_generated(
    shapes: GeneratedSet,
    folder: Path,
    *,
    suffix: Format = "ply",
    force: bool = False,
    progress: Progress = iter,
) -> list[Path]:
    """Write a set so that `open_set(folder)` reads it back with its truth.

    Beside one file per shape the folder gets `manifest.json`, `template_NAME.npz` with faces,
    mirror, side, front and opposite of each template, and `origin.json` with template, species and
    pose family of each shape. With several templates, `template_NAME.vts` keeps their numberings
    apart. The same set gives the same bytes.

    Returns
    -------
    The files, `manifest.json` last: where it is, all others are complete.

    Raises
    ------
    UsageError
        If one of the files exists and `force` is not given; nothing is written then.
    """
    used = [name for name in shapes.templates if name in {body.template for body in shapes.bodies}]
    shape_files = [folder / f"{name}.{suffix}" for name in shapes.names]
    template_files = {name: folder / f"template_{name}.npz" for name in used}
    vts_files = {name: folder / f"template_{name}.vts" for name in used if len(used) > 1}
    origin, manifest = folder / "origin.json", folder / "manifest.json"
    files = [*shape_files, *template_files.values(), *vts_files.values(), origin, manifest]
    _refuse_existing(files, force=force)
    _make_folder(folder)
    for index in progress(range(len(shapes))):
        _write_shape(shapes, index, shape_files[index], force=force)
    for name, file in template_files.items():
        _write_template(shapes.templates[name], file, force=force)
    for name, file in vts_files.items():
        write_map(file, _block(shapes, used, name), force=force)
    _write_json(origin, _origin(shapes), force=force)
    _write_json(manifest, _manifest(shapes, shape_files, vts_files), force=force)
    return files


def _write_shape(shapes: GeneratedSet, index: int, file: Path, *, force: bool) -> None:
    if file.suffix != ".npz":
        io.save(shapes.shape(index), file, force=force)
        return
    body = shapes.bodies[index]
    with atomic_path(file, force=force) as temporary:
        faces = shapes.templates[body.template].faces
        np.savez_compressed(temporary, vertices=body.vertices, faces=faces)


def _write_template(template: Template, file: Path, *, force: bool) -> None:
    with atomic_path(file, force=force) as temporary:
        np.savez_compressed(
            temporary,
            faces=template.faces,
            mirror=template.mirror,
            side=template.side,
            front=template.front,
            opposite=template.opposite,
        )


def _block(shapes: GeneratedSet, used: list[str], name: str) -> np.ndarray[Any, Any]:
    """(S,) own vertices inside the block of this template, -1 in those of the others."""
    counts = {other: len(shapes.templates[other].mirror) for other in used}
    blocks = [
        np.arange(counts[other]) if other == name else np.full(counts[other], -1) for other in used
    ]
    return np.concatenate(blocks)


def _origin(shapes: GeneratedSet) -> dict[str, Any]:
    return {
        "generator": shapes.name,
        "seed": shapes.seed,
        "version": __version__,
        "frame": "metres, y up, facing +z, left +x",
        "shapes": [
            {
                "name": name,
                "index": shapes.first + place,
                "template": body.template,
                "species": body.category,
                "pose": body.family,
            }
            for place, (name, body) in enumerate(zip(shapes.names, shapes.bodies, strict=True))
        ],
    }


def _manifest(
    shapes: GeneratedSet, files: list[Path], vts_files: dict[str, Path]
) -> dict[str, Any]:
    entries = []
    for file, body in zip(files, shapes.bodies, strict=True):
        # Pairs are made inside a category: it must not span two numberings.
        species = body.category
        category = species if shapes.name == "human" else f"{body.template}/{species}"
        entry = {"file": file.name, "category": category}
        if vts_files:
            entry["vts"] = vts_files[body.template].name
        entries.append(entry)
    content: dict[str, Any] = {"name": f"{shapes.name}_s{shapes.seed}"}
    if not vts_files:
        content["numbering"] = "shared"
    return content | {"shapes": entries}


def _write_json(file: Path, content: dict[str, Any], *, force: bool) -> None:
    with atomic_path(file, force=force) as temporary:
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        temporary.write_text(text, encoding="utf-8", newline="\n")


def _refuse_existing(files: list[Path], *, force: bool) -> None:
    existing = [] if force else [file for file in files if file.exists()]
    if existing:
        raise UsageError(
            f"{existing[0]}: got a folder with {len(existing)} of the {len(files)} files to write, "
            "expected one without them; try another folder, or --force"
        )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder}: got a folder that cannot be made ({error.strerror or error}), expected a "
            "writable place; try another"
        ) from error


def _check_numbers(*, count: int, seed: int, first: int) -> None:
    if count < 1:
        raise UsageError(f"got a count of {count} shapes, expected at least 1; try 10")
    for what, number in (("seed", seed), ("first index", first)):
        if number < 0:
            raise UsageError(f"got the {what} {number}, expected a whole number from 0; try 0")


def _check_choice(
    what: str, species: dict[str, tuple[str, ...]], template: str | None, category: str | None
) -> None:
    if template is not None and template not in species:
        raise UsageError(
            f"got the template '{template}', expected for {what} one of {', '.join(species)}; try "
            "leaving it out to draw from all"
        )
    offered = {name: species[name] for name in ([template] if template else species)}
    known = list(dict.fromkeys(kind for kinds in offered.values() for kind in kinds))
    if category is not None and category not in known:
        where = f"the template {template}" if template else what
        raise UsageError(
            f"got the category '{category}', expected for {where} one of {', '.join(known)}; try "
            "leaving it out to draw from all"
        )
