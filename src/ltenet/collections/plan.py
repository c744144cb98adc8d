"""What a batch matches: its specimens, the pairs of them, and the share of each shard.

Everything here follows from the files alone, so every process of a batch makes the same plan.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from ltenet.errors import InputError, UsageError
from ltenet.io.formats.arrays import holds_points
from ltenet.io.formats.tables import csv_rows
from ltenet.io.formats.text import read_text
from ltenet.io.shapes import LOADERS

Mode = Literal["all-pairs", "to", "sequence", "hubs"]
PairIndices = tuple[int, int]

#: Pairs are ordered in tiles of this many sources by as many targets, so that the shapes of a tile
#: stay in memory.
TILE = 8
_HEADER = ("source", "target")


class Specimen(NamedTuple):
    """A shape of a collection.

    Attributes
    ----------
    name
        Unique in the collection, fit for a file name.
    path
        Its file.
    """

    name: str
    path: Path


class Plan(NamedTuple):
    """What a batch does.

    Attributes
    ----------
    specimens
        All shapes, templates included, in natural order of their paths.
    pairs
        (source, target) as positions in `specimens`, in the order of work.
    templates
        Positions of the templates.
    left_out
        Files of the folder that no reader knows.
    """

    specimens: tuple[Specimen, ...]
    pairs: tuple[PairIndices, ...]
    templates: tuple[int, ...] = ()
    left_out: tuple[Path, ...] = ()


class Shard(NamedTuple):
    """Part `number` of `total`, from 1."""

    number: int = 1
    total: int = 1

    def of(self, pairs: Sequence[PairIndices]) -> Sequence[PairIndices]:
        """Return the pairs of this shard: a run of the plan's order, all of nearly equal length."""
        start, end = ((part * len(pairs)) // self.total for part in (self.number - 1, self.number))
        return pairs[start:end]


def parse_shard(text: str) -> Shard:
    """Read `I/N`."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    shard = Shard(int(found[1]), int(found[2])) if found else Shard(0, 0)
    if not 1 <= shard.number <= shard.total:
        raise UsageError(
            f"got --shard {text}, expected I/N with 1 <= I <= N; try 1/4 for the first of four"
        )
    return shard


def plan_folder(
    folder: Path,
    mode: Mode,
    *,
    templates: Sequence[Path] = (),
    skip: Path | None = None,
    least: int = 2,
    hubs: int = 0,
) -> Plan:
    """Plan the pairs of the shapes in a folder, at any depth.

    Parameters
    ----------
    folder
        Where the shapes are; hidden files are ignored.
    mode
        "all-pairs": each unordered pair once, from the earlier name to the later; "to": each shape
        to each template; "sequence": each shape to the next; "hubs": a few evenly spread shapes to
        all others.
    templates
        For "to"; they may be in the folder.
    skip
        A folder inside that is not searched: that of the results.
    least
        Fewest shapes; with 1 there may be no pair.
    hubs
        How many, for "hubs".
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder}: got no such folder, expected one with shapes, or a .csv of pairs; "
            "try checking the path"
        )
    files = sorted(
        (path for path in folder.rglob("*") if path.is_file() and _wanted(path, folder, skip)),
        key=_natural,
    )
    shapes = [path for path in files if _may_be_shape(path)]
    known = {path.resolve() for path in shapes}
    for path in templates:
        if not path.is_file():
            raise InputError(
                f"{path}: got no such file, expected a template; try checking the path"
            )
        if path.resolve() not in known:
            shapes.append(path)
            known.add(path.resolve())
    specimens = _named(shapes, folder)
    place = {path.resolve(): number for number, path in enumerate(shapes)}
    goals = tuple(dict.fromkeys(place[path.resolve()] for path in templates))
    count = len(shapes)
    if mode == "all-pairs":
        pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    elif mode == "sequence":
        pairs = [(i, i + 1) for i in range(count - 1)]
    elif mode == "hubs":
        chosen = dict.fromkeys((2 * k + 1) * count // (2 * hubs) for k in range(hubs))
        pairs = [(i, j) for i in chosen for j in range(count) if j not in chosen or i < j]
    else:
        pairs = [(i, j) for i in range(count) for j in goals if i not in goals]
    if count < least or (least > 1 and not pairs):
        raise InputError(
            f"{folder}: got {count} shapes, expected enough for a pair; try a folder with more "
            f"files that end with {', '.join(LOADERS)}"
        )
    left_out = tuple(path for path in files if path.resolve() not in known)
    return Plan(specimens, _tiled(pairs), goals, left_out)


def _may_be_shape(path: Path) -> bool:
    """Whether to read a file; archives of other things, such as templates, are none of ours."""
    suffix = path.suffix.lower()
    return suffix in LOADERS and (suffix != ".npz" or holds_points(path))


def plan_table(table: Path) -> Plan:
    """Plan the pairs that a `.csv` lists: columns source and target, paths relative to the file."""
    rows = [cells for _, cells in csv_rows(table, read_text(table))]
    if rows and tuple(cell.lower() for cell in rows[0]) == _HEADER:
        rows = rows[1:]
    for number, row in enumerate(rows, 1):
        if len(row) != 2 or not all(Path(cell).name for cell in row):
            raise InputError(
                f"{table}: got {len(row)} columns in row {number}, expected two paths, source and "
                "target; try a comma between them"
            )
    if not rows:
        raise InputError(
            f"{table}: got no pairs, expected a row for each; try source.ply,target.ply"
        )
    paths = sorted({table.parent / cell for row in rows for cell in row}, key=_natural)
    place = {path: number for number, path in enumerate(paths)}
    pairs = dict.fromkeys(
        (place[table.parent / source], place[table.parent / target]) for source, target in rows
    )
    return Plan(_named(paths, table.parent), _tiled(list(pairs)))


def _wanted(path: Path, folder: Path, skip: Path | None) -> bool:
    if skip is not None and skip.resolve() in path.resolve().parents:
        return False
    return not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Sort key by which scan2 precedes scan10."""
    # A table may name a file of 5,000 digits, more than Python turns into a number.
    words = re.split(r"(\d{1,18})", path.as_posix())
    return [(0, int(word), word) if word.isdecimal() else (1, 0, word) for word in words]


def _named(paths: Sequence[Path], folder: Path) -> tuple[Specimen, ...]:
    """Name specimens by their paths; the suffix stays only where two names would be equal."""
    inside = [_inside(path, folder) for path in paths]
    stems = [re.sub(r"[^\w.-]+", "_", path.with_suffix("").as_posix()) for path in inside]
    counts = Counter(stems)
    names = [
        stem if counts[stem] == 1 else re.sub(r"[^\w.-]+", "_", path.as_posix())
        for stem, path in zip(stems, inside, strict=True)
    ]
    unique: dict[str, None] = {}
    for name in names:
        number, candidate = 1, name
        while candidate in unique:
            number, candidate = number + 1, f"{name}-{number + 1}"
        unique[candidate] = None
    return tuple(Specimen(*pair) for pair in zip(unique, paths, strict=True))


def _inside(path: Path, folder: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else Path(path.name)


def _tiled(pairs: list[PairIndices]) -> tuple[PairIndices, ...]:
    return tuple(sorted(pairs, key=lambda pair: (pair[0] // TILE, pair[1] // TILE, *pair)))
