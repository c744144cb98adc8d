"""Maps to and from files: all of it in `.npz`, partners and scores in `.csv`, partners in text.

`.npz` and `.csv` and `.txt` count from 0, `.map` and `.vts` from 1. Pickles are neither written nor
read, and the same map gives the same bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet import __version__
from ltenet.errors import InputError, UsageError
from ltenet.files import atomic_path
from ltenet.formats.arrays import read_archive
from ltenet.formats.text import failure, read_lines
from ltenet.maps import INDEX_BASES, read_map, write_map
from ltenet.shape import FloatArray, IntArray

#: What a map can be written as, by suffix.
SUFFIXES = (".npz", ".csv", *INDEX_BASES)

_HEADER = ["source", "target", "score"]
_FORMAT = 1
_WHOLE = ("indices", "neighbors", "target_size", "format")
_OPTIONAL = ("scores", "neighbors", "weights")


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
                f"{path}: index_base {index_base} came for .npz; it always counts from 0; "
                "leave it out, or choose .txt or .map"
            )
        _write_npz(path, record, force=force)
    elif suffix == ".csv":
        _write_csv(path, record, base=_base(path, index_base), force=force)
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
        return _read_csv(path, base=_base(path, index_base), count=count, size=size)
    if suffix in INDEX_BASES:
        return MapRecord(read_map(path, size=size, count=count, index_base=index_base), size)
    raise _unknown(path)


def _write_npz(path: Path, record: MapRecord, *, force: bool) -> None:
    details = {"version": __version__, **record.details}
    try:
        text = json.dumps(details, sort_keys=True, default=_plain)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{path}: the details of the map cannot be written ({error}); numbers, texts, lists "
            "and dictionaries are needed; turn other values into these"
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
    arrays: dict[str, Any] = dict(read_archive(path))
    missing = [name for name in ("indices", "target_size") if name not in arrays]
    if missing:
        raise failure(
            path,
            None,
            f"the arrays {', '.join(arrays) or 'of nothing'} came, {' and '.join(missing)} of a "
            "map are needed",
            "write it with Correspondence.save; a shape is no map",
        )
    for name in _WHOLE:
        if name in arrays and not np.issubdtype(arrays[name].dtype, np.integer):
            raise failure(
                path,
                None,
                f"{name} of type {arrays[name].dtype} came, whole numbers are needed",
                "write it with Correspondence.save",
            )
    if arrays["target_size"].ndim or int(arrays["target_size"]) < 1:
        raise failure(
            path,
            None,
            f"target_size {arrays['target_size']} came, one number from 1 is needed",
            "write it with Correspondence.save",
        )
    if int(arrays.get("format", _FORMAT)) > _FORMAT:
        raise failure(
            path,
            None,
            f"format {int(arrays['format'])} came, this version knows {_FORMAT}",
            "install a newer ltenet",
        )
    try:
        details = json.loads(str(arrays.get("details", "{}")))
        if not isinstance(details, dict):
            raise ValueError("no dictionary")
    except ValueError as error:
        raise failure(
            path, None, f"the details are no JSON object ({error})", "write the map again"
        ) from None
    return MapRecord(
        arrays["indices"],
        int(arrays["target_size"]),
        scores=arrays.get("scores"),
        neighbors=arrays.get("neighbors"),
        weights=arrays.get("weights"),
        details=details,
    )


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
        raise failure(
            path,
            lines.numbers[0] if lines.numbers else None,
            f"'{lines.texts[0] if lines.texts else ''}' came, the header {','.join(_HEADER)} is "
            "needed",
            "add it as the first line",
        )
    found: dict[int, tuple[int, float | None]] = {}
    for number, text in zip(lines.numbers[1:], lines.texts[1:], strict=True):
        words = [word.strip() for word in text.split(",")]
        try:
            source, target = int(words[0]) - base, int(words[1]) - base
            score = float(words[2]) if len(words) == 3 and words[2] else None
            if len(words) != len(header):
                raise ValueError
        except (ValueError, IndexError):
            raise failure(
                path,
                number,
                f"'{text}' came, {','.join(header)} as numbers are needed",
                "look at this line",
            ) from None
        reason = _reason(source, target, score, found, count, size)
        if reason:
            raise failure(
                path,
                number,
                f"'{text}': {reason}",
                f"check that map and shapes belong together, or count from {1 - base} with "
                "index_base",
            )
        found[source] = target, score
    if not found:
        raise failure(path, None, "no row came, one for each point is needed", "export it again")
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
                f"{len(known)} of {len(found)} rows have a score, all or none are needed",
                "fill in the empty ones",
            )
        scores = np.zeros(length)
        scores[list(found)] = known
    return MapRecord(indices, size, scores)


def _reason(
    source: int,
    target: int,
    score: float | None,
    found: Mapping[int, object],
    count: int | None,
    size: int | None,
) -> str:
    """Say what is wrong with a row, or nothing."""
    if source < 0 or (count is not None and source >= count):
        return "there is no such source point" + (f", there are {count}" if count else "")
    if source in found:
        return "the source point came before, once is needed"
    if target < -1 or (size is not None and target >= size):
        return "there is no such target point" + (f", there are {size}" if size else "")
    if score is not None and not 0 <= score <= 1:
        return "a score from 0 to 1 is needed"
    return ""


def _base(path: Path, index_base: int | None) -> int:
    if index_base not in (None, 0, 1):
        raise UsageError(
            f"{path}: index_base {index_base} came; 0 or 1 is needed; leave it out to go by suffix"
        )
    return index_base or 0


def _unknown(path: Path) -> UsageError:
    return UsageError(
        f"{path}: '{path.suffix}' is no suffix of a map; one of {', '.join(SUFFIXES)} is needed; "
        "choose .npz to keep everything"
    )
