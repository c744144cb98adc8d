"""Maps to and from files: all of it in `.npz`, partners and scores in `.csv`, partners in text.

`.npz`, `.csv` and `.txt` count from 0, `.map` and `.vts` from 1. Pickles are neither written nor
read, and the same map gives the same bytes.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet import __version__
from ltenet.errors import InputError, UsageError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.formats.arrays import numbers, read_archive
from ltenet.io.formats.documents import parse_json
from ltenet.io.formats.text import Lines, failure, read_lines, shown, whole_number
from ltenet.io.maps import INDEX_BASES, checked_base, read_map, write_map

#: What a map can be written as, by suffix.
SUFFIXES = (".npz", ".csv", *INDEX_BASES)

_HEADER = ["source", "target", "score"]
_FORMAT = 1
_OPTIONAL = ("scores", "neighbors", "weights")

#: Source points that a `.csv` may mean when the source is not known: some, and more per row.
_LEAST_POINTS = 1_000_000
_POINTS_PER_ROW = 64


class MapRecord(NamedTuple):
    """What a file says about a map; the fields of `Correspondence`.

    Attributes
    ----------
    indices
        (N,) int64, from 0, -1 for unmatched.
    target_size
        Number of target points, or None where the file does not say.
    scores, neighbors, weights
        (N,), (N, K) and (N, K), or None.
    details
        Plain values.
    """

    indices: IntArray
    target_size: int | None
    scores: FloatArray | None = None
    neighbors: IntArray | None = None
    weights: FloatArray | None = None
    details: Mapping[str, Any] = {}


def is_map(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a map rather than a shape, by its suffix or first line; False if unsure."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in (".map", ".vts"):
        return True
    try:
        if suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                return "indices.npy" in archive.namelist()
        if suffix in SUFFIXES:
            with path.open("rb") as stream:
                words = stream.readline(1000).decode("utf-8").replace(",", " ").split()
            return len(words) == 1 or words == _HEADER
    except (OSError, ValueError, zipfile.BadZipFile):
        pass
    return False


def write_record(
    path: str | os.PathLike[str],
    record: MapRecord,
    *,
    index_base: int | None = None,
    force: bool = False,
) -> None:
    """Write a map; the suffix chooses the format, `index_base` what a text format counts from."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        if index_base not in (None, 0):
            raise UsageError(
                f"{path}: got --index-base {index_base}, expected 0, which .npz always counts "
                "from; try .txt or .map"
            )
        _write_npz(path, record, force=force)
    elif suffix == ".csv":
        _write_csv(path, record, base=checked_base(path, index_base or 0), force=force)
    elif suffix in INDEX_BASES:
        write_map(path, record.indices, index_base=index_base, force=force)
    else:
        raise _unknown(path)


def read_record(
    path: str | os.PathLike[str],
    *,
    count: int | None = None,
    size: int | None = None,
    index_base: int | None = None,
) -> MapRecord:
    """Read a map; numbers are checked against `count` source and `size` target points if given."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return _read_npz(path)
    if suffix == ".csv":
        return _read_csv(path, base=checked_base(path, index_base or 0), count=count, size=size)
    if suffix in INDEX_BASES:
        return MapRecord(read_map(path, size=size, count=count, index_base=index_base), size)
    raise _unknown(path)


def _write_npz(path: Path, record: MapRecord, *, force: bool) -> None:
    details = {"version": __version__, **record.details}
    try:
        text = json.dumps(details, sort_keys=True, default=_plain)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{path}: got details of a map that JSON cannot hold ({error}), expected numbers, "
            "texts, lists and dictionaries; try converting the other values"
        ) from None
    arrays: dict[str, Any] = {
        "format": np.array(_FORMAT),
        "indices": record.indices,
        "target_size": np.array(record.target_size),
        "details": np.array(text),
    }
    for name in _OPTIONAL:
        if getattr(record, name) is not None:
            arrays[name] = getattr(record, name)
    with atomic_path(path, force=force) as temporary, temporary.open("wb") as stream:
        # numpy dates the members of the archive 1980, so equal maps are equal files.
        np.savez_compressed(stream, **arrays)


def _plain(value: object) -> Any:
    """Turn numpy values into Python's for the sake of JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} is no plain value")


def _read_npz(path: Path) -> MapRecord:
    arrays = read_archive(path)
    missing = [name for name in ("indices", "target_size") if name not in arrays]
    if missing:
        raise failure(
            path,
            None,
            f"got the arrays {shown(', '.join(arrays))}, expected {' and '.join(missing)} of a map",
            "try a map written by `ltenet match`; a shape is not a map",
        )
    version = _scalar(path, arrays, "format") if "format" in arrays else _FORMAT
    if version > _FORMAT:
        raise failure(path, None, f"got format {version}, expected {_FORMAT}", "try a newer ltenet")
    found: dict[str, Any] = {
        name: numbers(path, name, arrays[name], whole=name in ("indices", "neighbors"))
        for name in ("indices", *_OPTIONAL)
        if name in arrays
    }
    return MapRecord(
        target_size=_scalar(path, arrays, "target_size"),
        details=_details(path, arrays.get("details")),
        **found,
    )


def _scalar(path: Path, arrays: Mapping[str, Any], name: str) -> int:
    value = numbers(path, name, arrays[name], whole=True)
    if value.ndim or int(value) < 1:
        raise failure(
            path,
            None,
            f"got {name} {shown(str(value))}, expected one number from 1",
            "try writing the map again",
        )
    return int(value)


def _details(path: Path, text: Any) -> dict[str, Any]:
    details = None
    if text is None:
        return {}
    if text.dtype.kind == "U" and not text.ndim:
        details = parse_json(str(text), path)
    if not isinstance(details, dict):
        raise failure(
            path,
            None,
            "got details of another kind, expected the text of a JSON object",
            "try writing the map again",
        )
    return details


def _write_csv(path: Path, record: MapRecord, *, base: int, force: bool) -> None:
    scores = [""] * len(record.indices)
    if record.scores is not None:
        scores = [repr(score) for score in record.scores.tolist()]
    rows = zip(record.indices.tolist(), scores, strict=True)
    lines = [",".join(_HEADER)]
    lines += [f"{i},{index + base},{score}" for i, (index, score) in enumerate(rows, start=base)]
    with atomic_path(path, force=force) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _read_csv(path: Path, *, base: int, count: int | None, size: int | None) -> MapRecord:
    """Rows may come in any order and may leave out points, which are then unmatched."""
    lines = read_lines(path)
    header = [word.strip().lower() for word in lines.texts[0].split(",")] if lines.texts else []
    if header not in (_HEADER, _HEADER[:2]):
        raise lines.failure(
            0,
            f"got {shown(lines.texts[0]) if lines.texts else 'nothing'}, expected the header "
            f"{','.join(_HEADER)}",
            "try adding it as the first line",
        )
    rows = lines.part(1)
    # Without the source the largest number decides how long the map is; one row must not make
    # it larger than a file of this many rows can mean.
    longest = count if count is not None else _LEAST_POINTS + _POINTS_PER_ROW * len(rows.texts)
    found: dict[int, tuple[int, float | None]] = {}
    for index, text in enumerate(rows.texts):
        words = [word.strip() for word in text.split(",")]
        source, target, score = _row(rows, index, words, header)
        source, target = source - base, target - base
        reason = _reason(source, target, score, found, longest, size)
        if reason:
            raise rows.failure(
                index,
                f"got {shown(text)}, expected {reason}",
                f"try the shapes that the map was made for, or --index-base {1 - base}",
            )
        found[source] = target, score
    if not found:
        raise failure(path, None, "got no rows, expected one per point", "try exporting it again")
    length = max(found) + 1 if count is None else count
    indices = np.full(length, -1, np.int64)
    indices[list(found)] = [target for target, _ in found.values()]
    known = [score for _, score in found.values() if score is not None]
    scores = None
    if known:
        if len(known) != len(found):
            raise failure(
                path,
                None,
                f"got scores in {len(known)} of {len(found)} rows, expected all or none",
                "try filling in the empty ones",
            )
        scores = np.zeros(length)
        scores[list(found)] = known
    return MapRecord(indices, size, scores)


def _row(
    lines: Lines, index: int, words: list[str], header: list[str]
) -> tuple[int, int, float | None]:
    """Source, target and score of a row, as the file counts."""
    source, target = ([whole_number(word) for word in words] + [None, None])[:2]
    score = None
    try:
        if len(words) == 3 and words[2]:
            score = float(words[2])
    except ValueError:
        source = None
    if source is None or target is None or len(words) != len(header):
        raise lines.failure(
            index,
            f"got {shown(lines.texts[index])}, expected {','.join(header)} as numbers",
            "try correcting this line",
        )
    return source, target, score


def _reason(
    source: int,
    target: int,
    score: float | None,
    found: Mapping[int, object],
    count: int,
    size: int | None,
) -> str:
    """Say what is wrong with a row, or nothing."""
    if not 0 <= source < count:
        return f"one of {count} source points"
    if source in found:
        return "each source point once"
    if target < -1 or (size is not None and target >= size):
        return "a target point" if size is None else f"one of {size} target points"
    if score is not None and not 0 <= score <= 1:
        return "a score from 0 to 1"
    return ""


def _unknown(path: Path) -> UsageError:
    return UsageError(
        f"{path}: got the suffix '{path.suffix}', expected that of a map, one of "
        f"{', '.join(SUFFIXES)}; try .npz to keep everything"
    )
