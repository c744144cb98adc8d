"""Run a batch: prepare every shape once, match its pairs, and record each as it ends.

A batch that was stopped anywhere goes on where it was and ends with the same tables and maps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ltenet import __version__
from ltenet.collections.plan import Plan, Shard, Specimen
from ltenet.collections.records import (
    Journal,
    PairRecord,
    ShapeRecord,
    Timed,
    read_journals,
    remove_journals,
    write_manifest,
    write_shapes,
)
from ltenet.collections.store import Store
from ltenet.collections.unusual import with_notes
from ltenet.collections.work import match_pair, store_of
from ltenet.configuration import to_dict
from ltenet.errors import InputError, LTENetError, UsageError
from ltenet.files import atomic_path, check_output_folder, sweep_tree
from ltenet.io.formats.documents import read_json
from ltenet.matching.config import MatchConfig

if TYPE_CHECKING:
    from ltenet.collections.cluster import Cluster

#: Called with what is counted, how many are done, how many were done before, and of how many.
Tell = Callable[[str, int, int, int], None]

_RECORD = "batch.json"


class Engine(NamedTuple):
    """What runs a batch: this process, Dask workers on this machine, or a running scheduler."""

    workers: int = 0
    scheduler: str | None = None

    @property
    def serial(self) -> bool:
        """Whether this process does the work itself."""
        return self.workers == 0 and self.scheduler is None


class Outcome(NamedTuple):
    """What a batch or shard ends with.

    Attributes
    ----------
    pairs
        A record of each pair.
    shapes
        A record of each shape; empty for a shard.
    computed
        Pairs that this run matched; the others were done before.
    manifest
        The table of the pairs.
    """

    pairs: tuple[PairRecord, ...]
    shapes: tuple[ShapeRecord, ...]
    computed: int
    manifest: Path


def run_batch(
    plan: Plan,
    folder: Path,
    config: MatchConfig,
    *,
    shard: Shard | None = None,
    engine: Engine | None = None,
    resume: bool = False,
    force: bool = False,
    prepare_only: bool = False,
    tell: Tell = lambda what, done, before, total: None,
) -> Outcome:
    """Match the pairs of a plan, or of one shard of it.

    Parameters
    ----------
    plan
        The specimens and their pairs.
    folder
        For maps, tables and prepared shapes; made if it does not exist.
    config
        How each pair is matched.
    shard
        The part to run; all by default. Shards share nothing but the folder.
    engine
        Who does the work; this process by default.
    resume
        Go on with a batch that is there. Shards always do.
    force
        Match every pair again.
    prepare_only
        Stop when every shape of the shard is prepared.
    tell
        Told how far the work is.
    """
    engine = engine or Engine()
    check_output_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    store = store_of(folder, config)
    _begin(folder, store, resume=resume or shard is not None, force=force)
    part = shard or Shard()
    pairs = [(plan.specimens[i], plan.specimens[j]) for i, j in part.of(plan.pairs)]
    known = _known(folder, store, pairs)
    waiting = [pair for pair in pairs if (pair[0].name, pair[1].name) not in known]
    needed = list(dict.fromkeys(one for pair in waiting for one in pair))
    fresh: list[Timed] = []
    with _working(engine, folder, config) as workers:
        done = 0
        for count in workers.prepare(needed):
            done += count
            tell("shapes", done, 0, len(needed))
        if not prepare_only:
            journal = Journal(folder, part)
            try:
                for timed in workers.match(waiting):
                    journal.append(timed)
                    fresh.append(timed)
                    tell("pairs", len(known) + len(fresh), len(known), len(pairs))
            finally:
                journal.close()
    sweep_tree(folder)  # a worker that was lost may have left half a file
    found = [*known.values(), *fresh]
    if shard is None and not prepare_only:
        return _finished(plan, folder, store, found, len(fresh))
    suffix = f"-{part.number}-of-{part.total}"
    manifest = write_manifest(folder, found, suffix=suffix)
    return Outcome(tuple(one.record for one in found), (), len(fresh), manifest)


def merge(plan: Plan, folder: Path, config: MatchConfig) -> Outcome:
    """Join the records of all shards; pairs without one are listed as missing."""
    store = store_of(folder, config)
    if not (folder / _RECORD).is_file():
        raise UsageError(
            f"{folder}: got a folder without {_RECORD}, expected that of a batch; try running its "
            "shards first"
        )
    _begin(folder, store, resume=True, force=False)
    pairs = [(plan.specimens[i], plan.specimens[j]) for i, j in plan.pairs]
    known = _known(folder, store, pairs)
    missing = [
        Timed(PairRecord(source.name, target.name, "missing", error="not matched yet"), 0.0)
        for source, target in pairs
        if (source.name, target.name) not in known
    ]
    return _finished(plan, folder, store, [*known.values(), *missing], 0)


def _begin(folder: Path, store: Store, *, resume: bool, force: bool) -> None:
    """Refuse a folder that holds another batch; write down what this one is."""
    sweep_tree(folder)
    record = {
        "version": __version__,
        "options": to_dict(store.config),
        "digest": store.match_digest,
    }
    path = folder / _RECORD
    if path.is_file():
        same = _read(path) == record
        if force:
            remove_journals(folder)
        elif not same:
            raise UsageError(
                f"{folder}: got a batch of other options, weights or version, expected the same; "
                "try another folder, or --force to match every pair again"
            )
        elif not resume:
            raise UsageError(
                f"{folder}: got a batch that is there already, expected a new folder; try "
                "--resume to go on with it, or --force to begin again"
            )
        if same:
            return
    with atomic_path(path, force=True) as temporary:
        temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8", newline="\n")


def _read(path: Path) -> object:
    """Return what the folder says about its batch, None where that is damaged."""
    try:
        return read_json(path)
    except InputError:
        return None


def _known(
    folder: Path, store: Store, pairs: Sequence[tuple[Specimen, Specimen]]
) -> dict[tuple[str, str], Timed]:
    """Return the pairs that are done, or known to fail, with the present files and options."""
    records = read_journals(folder)
    known = {}
    for source, target in pairs:
        timed = records.get((source.name, target.name))
        if timed is None or not timed.record.final:
            continue
        record = timed.record
        same = record.key == _key(store, source, target)
        if same and (record.state != "done" or (folder / record.map).is_file()):
            known[source.name, target.name] = timed
    return known


def _key(store: Store, source: Specimen, target: Specimen) -> str:
    try:
        return store.key(source, target)
    except (LTENetError, OSError):
        return ""


def _content(store: Store, specimen: Specimen) -> str:
    try:
        return store.content(specimen.path)
    except (LTENetError, OSError):
        return ""


def _finished(
    plan: Plan, folder: Path, store: Store, found: Sequence[Timed], computed: int
) -> Outcome:
    """Write the tables of a whole batch."""
    shapes = with_notes(
        [store.describe(one) for one in plan.specimens],
        [_content(store, one) for one in plan.specimens],
    )
    shapes += [
        ShapeRecord(path.name, str(path), "left out", error=why_left_out(path))
        for path in plan.left_out
    ]
    write_shapes(folder, shapes)
    manifest = write_manifest(folder, found)
    return Outcome(tuple(one.record for one in found), tuple(shapes), computed, manifest)


class _Here:
    """Work of this process."""

    def __init__(self, folder: Path, config: MatchConfig) -> None:
        self._folder, self._store = folder, store_of(folder, config)

    def prepare(self, specimens: Sequence[Specimen]) -> Iterator[int]:
        """Prepare shapes; yield 1 for each."""
        for specimen in specimens:
            self._store.describe(specimen)
            yield 1

    def match(self, pairs: Sequence[tuple[Specimen, Specimen]]) -> Iterator[Timed]:
        """Match pairs; yield each record as soon as it is there."""
        for pair in pairs:
            yield match_pair(self._store, self._folder, *pair)


@contextmanager
def _working(engine: Engine, folder: Path, config: MatchConfig) -> Iterator[_Here | Cluster]:
    if engine.serial:
        yield _Here(folder, config)
        return
    from ltenet.collections.cluster import Cluster

    with Cluster(folder, config, workers=engine.workers, scheduler=engine.scheduler) as cluster:
        yield cluster


def why_left_out(path: Path) -> str:
    """Say why a file of the folder is no shape."""
    return "no points in it" if path.suffix.lower() == ".npz" else f"no reader for '{path.suffix}'"
