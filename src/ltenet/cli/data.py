"""`ltenet data`: shapes to learn from. What they are: docs/shapes.md."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from ltenet.cli.command import Command, OptionalName, OptionalPath, OutputPath, Result
from ltenet.cli.convert_smal import ConvertSmal
from ltenet.cli.output import as_json_text, table
from ltenet.cli.progress import progress
from ltenet.cli.sources import (
    DATA_VARIABLE,
    GENERATORS,
    chosen,
    data_folder,
    found_benchmarks,
    generated,
    open_source,
)
from ltenet.errors import UsageError

if TYPE_CHECKING:
    from ltenet.bodies.body_pairs import BodyGenerator
    from ltenet.data.shapeset import ShapeSet

Output = Annotated[Path, tyro.conf.arg(aliases=("-o",), metavar="PATH")]


@dataclass(frozen=True, kw_only=True)
class List(Command):
    """List the generators and the benchmarks that can be read."""

    data: OptionalPath = None
    """Folder of the benchmarks; LTENET_DATA by default."""

    def run(self) -> Result:
        """Look at the generators, the readers, and the folder if there is one."""
        from ltenet.bodies.body_pairs import own_generator
        from ltenet.data.readers import READERS

        templates: list[dict[str, Any]] = []
        for what in GENERATORS:
            generator = own_generator(what)
            if what == "thing":
                templates.append(_things(generator))
                continue
            templates += [
                {
                    "generator": what,
                    "template": name,
                    "vertices": len(template.mirror),
                    "faces": len(template.faces),
                    "species": list(generator.species(name)),
                }
                for name, template in generator.templates.items()
            ]
        folder = data_folder(self.data)
        found = found_benchmarks(folder) if folder is not None else {}
        benchmarks = [
            {
                "name": name,
                "found": name in found,
                "shapes": len(found[name]) if name in found else None,
                "pairs": len(found[name].pairs) if name in found else None,
            }
            for name in READERS
            if name != "folder"
        ]
        text = table(
            [
                (
                    t["generator"],
                    t["template"],
                    *("-" if t[key] is None else t[key] for key in ("vertices", "faces")),
                    ", ".join(t["species"]),
                )
                for t in templates
            ],
            header=("generator", "template", "vertices", "faces", "species"),
        )
        where = f"in {folder}" if folder else f"(no folder: give --data or {DATA_VARIABLE})"
        text += f"\n\nbenchmarks {where}\n" + table(
            [
                (b["name"], f"{b['shapes']} shapes, {b['pairs']} pairs" if b["found"] else "-")
                for b in benchmarks
            ]
        )
        data = {
            "generators": templates,
            "benchmarks": benchmarks,
            "folder": None if folder is None else str(folder),
        }
        return Result(data, text)


@dataclass(frozen=True, kw_only=True)
class Make(Command):
    """Write generated shapes with their ground truth.

    The folder can be opened again by name, in Python with `open_set(folder)`. The same seed and
    options give the same bytes.
    """

    what: tyro.conf.Positional[Literal["human", "animal", "thing"]]
    """Which generator."""
    output: Output
    """Folder to write to; it is made if it is not there."""
    count: Annotated[int, tyro.conf.arg(aliases=("-n",))] = 10
    """How many shapes."""
    seed: int = 0
    """Which stream of shapes."""
    index: int = 0
    """Index of the first shape in the stream."""
    format: Literal["ply", "npz", "obj", "off"] = "ply"
    """Format of the shapes."""
    template: OptionalName = None
    """Only shapes of this template."""
    category: OptionalName = None
    """Only shapes of this species."""
    force: bool = False
    """Replace files that are already there."""

    def run(self) -> Result:
        """Draw the shapes, then write them."""
        from ltenet.data.generated_set import write_generated
        from ltenet.files import check_output_folder, refuse_to_overwrite

        check_output_folder(self.output)
        refuse_to_overwrite(self.output / "manifest.json", force=self.force)
        shapes = generated(
            self.what,
            self.count,
            seed=self.seed,
            first=self.index,
            template=self.template,
            category=self.category,
        )
        files = write_generated(
            shapes,
            self.output,
            suffix=self.format,
            force=self.force,
            progress=lambda numbers: progress(list(numbers), "writing"),
        )
        data = {
            "folder": str(self.output),
            "shapes": [file.name for file in files[: len(shapes)]],
            "others": [file.name for file in files[len(shapes) :]],
            "manifest": str(files[-1]),
            "poses": dict(Counter(shapes.kinds).most_common()),
            "species": dict(Counter(shapes.categories).most_common()),
        }
        return Result(data, "\n".join(str(file) for file in files))


@dataclass(frozen=True, kw_only=True)
class _OfSet(Command):
    """What `sheet` and `info` have in common: a set, and which of its shapes."""

    what: tyro.conf.Positional[Annotated[str, tyro.conf.arg(metavar="SET")]]
    """human, animal, thing, a benchmark (see `ltenet data list`), or a folder of your own."""
    seed: int = 0
    """Which shapes, and which points on them."""
    template: OptionalName = None
    """Only generated shapes of this template."""
    category: OptionalName = None
    """Only shapes of this species or class."""
    data: OptionalPath = None
    """Folder of the benchmarks; LTENET_DATA by default."""
    force: bool = False
    """Replace the file if it is already there."""

    def _chosen_shapes(self, count: int) -> tuple[ShapeSet, list[int]]:
        """Open the set, and choose at most `count` shapes of the category."""
        from ltenet.data.set_statistics import choose_shapes

        shapes = open_source(
            self.what,
            data=self.data,
            count=count,
            seed=self.seed,
            template=self.template,
            category=self.category,
        )
        return shapes, choose_shapes(chosen(shapes, self.category), count, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class Sheet(_OfSet):
    """Draw a contact sheet of some shapes, chosen at random."""

    output: Output
    """PNG file to write."""
    count: Annotated[int, tyro.conf.arg(aliases=("-n",))] = 24
    """How many shapes; of a smaller set, all."""
    columns: int = 6
    """Shapes in a row."""
    tile: int = 240
    """Width and height of each picture, in pixels."""
    yaw: float = 35.0
    """Degrees by which the shapes are turned about the vertical; 0 shows the front."""
    pitch: float = 10.0
    """Degrees by which they are tipped towards the viewer."""

    def run(self) -> Result:
        """Open, choose, render, write."""
        from ltenet.drawing.rendering import contact_sheet, render, write_png
        from ltenet.files import check_output

        _check_at_least_one(count=self.count, columns=self.columns, tile=self.tile)
        check_output(self.output, force=self.force, suffixes=(".png",))
        shapes, indices = self._chosen_shapes(self.count)
        tiles = []
        for index in progress(indices, "drawing", total=len(indices)):
            shape = shapes.shape(index)
            size = self.tile, self.tile
            picture = render(shape.points, shape.faces, size=size, yaw=self.yaw, pitch=self.pitch)
            tiles.append(picture)
        captions = [_caption(shapes, index) for index in indices]
        sheet = contact_sheet(
            tiles, columns=min(self.columns, len(tiles)), captions=captions, background=(255,) * 3
        )
        write_png(self.output, sheet, force=self.force)
        data = {
            "file": str(self.output),
            "width": sheet.shape[1],
            "height": sheet.shape[0],
            "shapes": [shapes.names[index] for index in indices],
            "captions": captions,
        }
        return Result(data, str(self.output))


@dataclass(frozen=True, kw_only=True)
class Info(_OfSet):
    """Measure a set: counts, categories, poses, proportions, thickness, density."""

    output: OutputPath = None
    """JSON file to write as well."""
    count: Annotated[int, tyro.conf.arg(aliases=("-n",))] = 50
    """How many shapes to measure; of a smaller set, all."""

    def run(self) -> Result:
        """Open, choose, measure, write."""
        from ltenet.data.set_statistics import describe_set, measure_set
        from ltenet.files import atomic_path, check_output

        _check_at_least_one(count=self.count)
        if self.output is not None:
            check_output(self.output, force=self.force, suffixes=(".json",))
        shapes, indices = self._chosen_shapes(self.count)
        measures = measure_set(
            shapes,
            progress(indices, "measuring", total=len(indices)),
            seed=self.seed,
        )
        data = describe_set(shapes, indices, measures)
        if self.output is not None:
            with atomic_path(self.output, force=self.force) as temporary:
                temporary.write_text(as_json_text(data), encoding="utf-8", newline="\n")
        return Result(data, _info_text(data))


@dataclass(frozen=True)
class Data:
    """Shapes to learn from: list, make, draw and measure them."""

    command: (
        Annotated[List, tyro.conf.subcommand("list")]
        | Annotated[Make, tyro.conf.subcommand("make")]
        | Annotated[Sheet, tyro.conf.subcommand("sheet")]
        | Annotated[Info, tyro.conf.subcommand("info")]
        | Annotated[ConvertSmal, tyro.conf.subcommand("convert-smal")]
    )


COMMAND = Data


def _things(generator: BodyGenerator) -> dict[str, Any]:
    """One line for all templates of things, which are built on demand."""
    names = list(generator.templates)
    kinds = {kind for name in names for kind in generator.species(name) if name.startswith("thing")}
    return {
        "generator": "thing",
        "template": f"{names[0]} and {len(names) - 1} others",
        "vertices": None,
        "faces": None,
        "species": sorted(kinds),
    }


def _caption(shapes: ShapeSet, index: int) -> str:
    """Name of a real shape; pose of a human; species and pose of an animal."""
    kinds: Any = getattr(shapes, "kinds", None)
    if kinds is None:
        return shapes.names[index]
    category = shapes.categories[index]
    return kinds[index] if category in GENERATORS else f"{category} {kinds[index]}"


def _info_text(data: dict[str, Any]) -> str:
    counts = [(key, data[key]) for key in ("name", "shapes", "measured")]
    ranges = [(key, f"{low} to {high}") for key, (low, high) in data["sizes"].items()]
    shares = [
        (key, ", ".join(f"{name} {share}" for name, share in data[key].items()))
        for key in ("categories", "poses")
        if data[key]
    ]
    extents = [("extents", " x ".join(f"{side:.2f}" for side in data["extents"]))]
    measures = [
        (name, row["mean"], row["sd"], row["p5"], row["p95"])
        for name, row in data["measures"].items()
    ]
    header = ("measure", "mean", "sd", "p5", "p95")
    head = table([*counts, *ranges, *shares, *extents])
    return head + "\n\n" + table(measures, header=header)


def _check_at_least_one(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise UsageError(f"got --{name} {number}, expected at least 1; try without it")
