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

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ltenet.io.formats.documents import DOCUMENT_LIMIT, parse_json, parse_toml
from ltenet.io.formats.tables import csv_rows
from ltenet.io.formats.text import failure, read_text, shown

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
        what = f"the key {shown(unknown[0])}" if unknown else f"numbering {shown(str(numbering))}"
        raise failure(
            path,
            None,
            f"got {what}, expected name, numbering (shared or own), shapes and pairs",
            "try correcting or removing it",
        )
    entries = _list(path, content, "shapes")
    shapes = [_shape(path, place, entry) for place, entry in enumerate(entries, start=1)]
    if not shapes:
        raise failure(path, None, "got no shapes, expected at least one", "try adding them")
    names = {entry.name for entry in shapes}
    if len(names) < len(shapes):
        raise failure(
            path, None, "got two shapes of one name, expected one each", "try adding 'name' to them"
        )
    pairs = [
        _pair(path, place, entry, names)
        for place, entry in enumerate(_list(path, content, "pairs"), start=1)
    ]
    return Manifest(str(content.get("name", path.stem)), shapes, pairs, numbering == "shared")


def _content(path: Path) -> dict[str, Any]:
    text = read_text(path, limit=DOCUMENT_LIMIT)
    suffix = path.suffix.lower()
    if suffix == ".csv":
        return _csv_content(path, text)
    content = parse_json(text, path) if suffix == ".json" else parse_toml(text, path)
    if not isinstance(content, dict):
        raise failure(
            path,
            None,
            "got a list, expected an object with the key 'shapes'",
            "try wrapping it in one",
        )
    return content


def _csv_content(path: Path, text: str) -> dict[str, Any]:
    rows = list(csv_rows(path, text))
    header = rows[0][1] if rows else []
    for number, cells in rows[1:]:
        if len(cells) != len(header):
            raise failure(
                path,
                number,
                f"got {len(cells)} columns, expected the {len(header)} of the header",
                "try correcting this line",
            )
    entries = [
        {key: cell for key, cell in zip(header, cells, strict=True) if cell}
        for _, cells in rows[1:]
    ]
    if "file" in header:
        return {"shapes": entries}
    if {"source", "target"} <= set(header):
        files = dict.fromkeys(
            entry[end] for entry in entries for end in ("source", "target") if end in entry
        )
        return {"shapes": [{"file": file, "name": file} for file in files], "pairs": entries}
    raise failure(
        path,
        1,
        "got a header without these columns, expected 'file', or 'source' and 'target'",
        "try naming the columns",
    )


def _list(path: Path, content: Mapping[str, Any], key: str) -> list[Any]:
    entries = content.get(key, [])
    if not isinstance(entries, list):
        raise failure(
            path,
            None,
            f"got '{key}' as {type(entries).__name__}, expected a list",
            "try brackets around it",
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
            f"got {shown(str(entry))} as shape {place}, expected a file, or an object of file, "
            "name, category and vts",
            "try correcting it",
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
            f"got {shown(str(entry))} as pair {place}, expected two names, or an object of "
            "source, target, map and index_base",
            "try correcting it",
        )
    for end in ("source", "target"):
        if not isinstance(entry[end], str) or entry[end] not in names:
            raise failure(
                path,
                None,
                f"got {shown(str(entry[end]))} in pair {place}, expected the name of a shape",
                "try adding it to 'shapes', or correcting the name",
            )
    base = entry.get("index_base")
    if base is not None and str(base)[:9] not in ("0", "1"):
        raise failure(
            path,
            None,
            f"got index_base {shown(str(base))} in pair {place}, expected 0 or 1",
            "try correcting it",
        )
    file = _file(path, entry["map"]) if "map" in entry else None
    return PairEntry(entry["source"], entry["target"], file, None if base is None else int(base))


def _file(manifest: Path, name: Any) -> Path:
    file = manifest.parent / str(name)
    try:
        there = file.is_file()
    except (OSError, ValueError):  # too long, or a null character
        there = False
    if not there:
        raise failure(
            manifest,
            None,
            f"got {shown(str(name))}, expected a file that exists",
            "try a path that begins at the folder of the manifest",
        )
    return file
