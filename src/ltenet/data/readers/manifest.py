"""Manifests: a JSON, TOML or CSV file that lists shapes and, if wanted, pairs.

JSON and TOML have the same keys; paths are relative to the manifest::

    {
      "name": "my-scans",
      "numbering": "shared",                                   optional: vertices correspond
      "shapes": [
        "cat.ply",                                             a file alone, or
        {"file": "dogs/rex.obj", "name": "rex",                name: the stem by default
         "category": "dog", "vts": "dogs/rex.vts"}             both optional
      ],
      "pairs": [                                               optional: all pairs in a category
        ["cat", "rex"],                                        names of shapes, or
        {"source": "cat", "target": "rex", "map": "cat_rex.map", "index_base": 1}
      ]
    }

A CSV file has a header: either `file` with any of `name`, `category`, `vts` (one shape per line),
or `source,target` with any of `map`, `index_base` (one pair per line, by the files of its shapes).
"""

from __future__ import annotations

import csv
import importlib
import io as streams
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ltenet.errors import InputError, MissingError
from ltenet.formats.text import failure, read_bytes

MANIFEST_SUFFIXES = (".json", ".toml", ".csv")


class ShapeEntry(NamedTuple):
    """One shape of a manifest."""

    name: str
    file: Path
    category: str
    vts: Path | None


class PairEntry(NamedTuple):
    """One pair of a manifest, by the names of its shapes."""

    source: str
    target: str
    map: Path | None
    index_base: int | None


class Manifest(NamedTuple):
    """What a manifest says, with all paths resolved and all names known."""

    name: str
    shapes: list[ShapeEntry]
    pairs: list[PairEntry]
    shared_numbering: bool


def read_manifest(path: Path) -> Manifest:
    """Read a manifest and check that it fits together and that its files exist."""
    content = _content(path)
    unknown = sorted(set(content) - {"name", "numbering", "shapes", "pairs"})
    numbering = content.get("numbering", "own")
    if unknown or numbering not in ("shared", "own"):
        what = f"the key '{unknown[0]}'" if unknown else f"the numbering '{numbering}'"
        raise failure(
            path,
            None,
            f"{what} came, the keys are name, numbering (shared or own), shapes and pairs",
            "correct it or remove it",
        )
    entries = _list(path, content, "shapes")
    shapes = [_shape(path, place, entry) for place, entry in enumerate(entries, start=1)]
    if not shapes:
        raise failure(path, None, "no shapes came, a list of at least one is needed", "add them")
    names = {entry.name for entry in shapes}
    if len(names) < len(shapes):
        raise failure(
            path, None, "two shapes have the same name, each needs its own", "add 'name' to them"
        )
    pairs = [
        _pair(path, place, entry, names)
        for place, entry in enumerate(_list(path, content, "pairs"), start=1)
    ]
    return Manifest(str(content.get("name", path.stem)), shapes, pairs, numbering == "shared")


def _content(path: Path) -> dict[str, Any]:
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
        if path.suffix.lower() == ".csv":
            return _csv_content(path, text)
        content = json.loads(text) if path.suffix.lower() == ".json" else _toml(path, text)
    except InputError:
        raise
    except ValueError as error:  # of json, tomllib and the decoder alike
        raise failure(
            path, getattr(error, "lineno", None), f"not readable ({error})", "correct this place"
        ) from None
    if not isinstance(content, dict):
        raise failure(
            path, None, "a list came, an object with the key 'shapes' is needed", "wrap it in one"
        )
    return content


def _toml(path: Path, text: str) -> Any:
    try:
        toml = importlib.import_module("tomllib")
    except ImportError:
        raise MissingError(
            f"{path}: this Python cannot read TOML; Python 3.11 or newer is needed; "
            "write the manifest as JSON"
        ) from None
    return toml.loads(text)


def _csv_content(path: Path, text: str) -> dict[str, Any]:
    rows = list(csv.DictReader(streams.StringIO(text), skipinitialspace=True))
    header = set(rows[0]) if rows else set()
    for number, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise failure(
                path, number, "the line has another number of columns than the header", "correct it"
            )
    entries = [{key: value for key, value in row.items() if value} for row in rows]
    if "file" in header:
        return {"shapes": entries}
    if {"source", "target"} <= header:
        files = dict.fromkeys(
            entry[end] for entry in entries for end in ("source", "target") if end in entry
        )
        return {"shapes": [{"file": file, "name": file} for file in files], "pairs": entries}
    raise failure(
        path, 1, "the header has neither 'file' nor 'source' and 'target'", "name the columns"
    )


def _list(path: Path, content: Mapping[str, Any], key: str) -> list[Any]:
    entries = content.get(key, [])
    if not isinstance(entries, list):
        raise failure(
            path, None, f"'{key}' is a {type(entries).__name__}, a list is needed", "use brackets"
        )
    return entries


def _shape(path: Path, place: int, entry: Any) -> ShapeEntry:
    if isinstance(entry, str):
        entry = {"file": entry}
    known = {"file", "name", "category", "vts"}
    if not isinstance(entry, dict) or "file" not in entry or set(entry) - known:
        raise failure(
            path,
            None,
            f"shape {place} is {entry!r}, a file or an object of file, name, category and vts is "
            "needed",
            "correct it",
        )
    file = _file(path, entry["file"])
    vts = _file(path, entry["vts"]) if "vts" in entry else None
    name, category = str(entry.get("name", file.stem)), str(entry.get("category", "shape"))
    return ShapeEntry(name, file, category, vts)


def _pair(path: Path, place: int, entry: Any, names: set[str]) -> PairEntry:
    if isinstance(entry, list) and len(entry) == 2:
        entry = {"source": entry[0], "target": entry[1]}
    known = {"source", "target", "map", "index_base"}
    if not isinstance(entry, dict) or not {"source", "target"} <= set(entry) <= known:
        raise failure(
            path,
            None,
            f"pair {place} is {entry!r}, two names or an object of source, target, map and "
            "index_base is needed",
            "correct it",
        )
    for end in ("source", "target"):
        if entry[end] not in names:
            raise failure(
                path,
                None,
                f"pair {place} names {entry[end]!r}, which is none of the shapes",
                "add it to 'shapes' or correct the name",
            )
    base = entry.get("index_base")
    if base is not None and str(base) not in ("0", "1"):
        raise failure(
            path, None, f"pair {place} has index_base {base!r}, 0 or 1 is needed", "correct it"
        )
    file = _file(path, entry["map"]) if "map" in entry else None
    return PairEntry(entry["source"], entry["target"], file, None if base is None else int(base))


def _file(manifest: Path, name: Any) -> Path:
    file = manifest.parent / str(name)
    if not file.is_file():
        raise failure(
            manifest, None, f"it names {name!r}, which is not there", "paths begin at the manifest"
        )
    return file
