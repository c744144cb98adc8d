"""What is known of each shape and pair of a batch: journals while it runs, tables at its end.

Each shard appends to a journal of its own, one JSON object a line. A process that is killed loses
at most the line it was writing. The tables hold nothing that differs between two runs: times are in
a table of their own.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ltenet.collections.plan import Shard
from ltenet.files import atomic_path

State = Literal["done", "failed", "crashed", "missing"]

MANIFEST, SHAPES, TIMES = "manifest.csv", "shapes.csv", "times.csv"
_JOURNALS = "journal"


class PairRecord(NamedTuple):
    """The outcome of a pair.

    Attributes
    ----------
    source, target
        Names of the specimens.
    state
        "done"; "failed": the input cannot be matched; "crashed": something unexpected, tried again
        by the next run; "missing": not matched yet.
    verdict, mean_probability, matched, coverage, model, doubts
        As in `MapSummary`; empty unless done.
    map
        File of the map, relative to the folder of the batch.
    error
        Why there is none.
    key
        Hash of both files, the weights, the options and the version.
    """

    source: str
    target: str
    state: State
    verdict: str = ""
    mean_probability: float | None = None
    matched: float | None = None
    coverage: float | None = None
    model: str = ""
    doubts: str = ""
    map: str = ""
    error: str = ""
    key: str = ""

    @property
    def final(self) -> bool:
        """Whether matching the same pair again would give the same."""
        return self.state in ("done", "failed")


class ShapeRecord(NamedTuple):
    """What a batch knows of a specimen.

    Attributes
    ----------
    name, file
        Of the specimen.
    state
        "ready", "failed", or "left out" for files that no reader knows.
    points, faces
        How many.
    radius
        Root-mean-square distance to the centre, in the file's unit.
    kind
        What the orientation networks take it for.
    turned
        Degrees between the file's axes and the body's, None if nobody looked.
    note
        What is unusual about it in this collection.
    error
        Why it cannot be used.
    """

    name: str
    file: str
    state: Literal["ready", "failed", "left out"]
    points: int | None = None
    faces: int | None = None
    radius: float | None = None
    kind: str = ""
    turned: float | None = None
    note: str = ""
    error: str = ""


class Timed(NamedTuple):
    """A record and the seconds that it took."""

    record: PairRecord
    seconds: float


class Journal:
    """Appends records of one shard, each on the disk before the next pair begins."""

    def __init__(self, folder: Path, shard: Shard) -> None:
        path = folder / _JOURNALS / f"{shard.number}-of-{shard.total}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("ab")
        if self._stream.tell() and not path.read_bytes().endswith(b"\n"):
            self._stream.write(b"\n")  # ends the line that a killed process left

    def append(self, timed: Timed) -> None:
        """Add a line."""
        line = {**timed.record._asdict(), "seconds": round(timed.seconds, 3)}
        self._stream.write(json.dumps(line).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


#: What a line leads to that is no record.
_UNREADABLE = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(OverflowError, RecursionError),
)


def read_journals(folder: Path) -> dict[tuple[str, str], Timed]:
    """Return the latest record of each pair, of all shards; final ones win."""
    found: dict[tuple[str, str], Timed] = {}
    for path in sorted((folder / _JOURNALS).glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            try:
                values = json.loads(line)
                seconds = float(values.pop("seconds"))
                timed = Timed(PairRecord(**values), seconds)
                hash(timed.record)
            except _UNREADABLE:
                continue  # the line that a killed process was writing
            pair = timed.record.source, timed.record.target
            if pair not in found or timed.record.final or not found[pair].record.final:
                found[pair] = timed
    return found


def remove_journals(folder: Path) -> None:
    """Forget every record."""
    for path in (folder / _JOURNALS).glob("*.jsonl"):
        path.unlink()


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as `.csv`; None becomes an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    with atomic_path(path, force=True) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8", newline="\n")


def write_manifest(folder: Path, timed: Sequence[Timed], *, suffix: str = "") -> Path:
    """Write `manifest.csv` and `times.csv`, sorted by pair; return the manifest's path."""
    ordered = sorted(timed, key=lambda one: (one.record.source, one.record.target))
    path = folder / MANIFEST.replace(".csv", f"{suffix}.csv")
    write_table(path, PairRecord._fields, [one.record for one in ordered])
    times = folder / TIMES.replace(".csv", f"{suffix}.csv")
    rows = [(one.record.source, one.record.target, round(one.seconds, 3)) for one in ordered]
    write_table(times, ("source", "target", "seconds"), rows)
    return path


def write_shapes(folder: Path, records: Sequence[ShapeRecord]) -> Path:
    """Write `shapes.csv`; return its path."""
    write_table(folder / SHAPES, ShapeRecord._fields, records)
    return folder / SHAPES


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else value
