"""Match one pair of a batch, in whichever process: read, match, write, record."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ltenet.collections.plan import Specimen
from ltenet.collections.records import PairRecord, Timed
from ltenet.collections.store import Store
from ltenet.correspondence import Correspondence
from ltenet.errors import LTENetError
from ltenet.matching.config import MatchConfig
from ltenet.matching.summary import summarize
from ltenet.memory import give_freed_memory_back

PREPARED, MAPS = "prepared", "maps"
#: Where the details of a map keep the key of its pair.
BATCH_KEY = "batch_key"


@lru_cache(maxsize=1)
def store_of(folder: Path, config: MatchConfig) -> Store:
    """Return the store of a batch, one for each process."""
    return Store(folder / PREPARED, config)


def prepare_shapes(folder: Path, config: MatchConfig, specimens: Sequence[Specimen]) -> int:
    """Prepare some shapes; the pairs of those that cannot be prepared tell why."""
    store = store_of(folder, config)
    for specimen in specimens:
        store.describe(specimen)
    return len(specimens)


def match_pairs(
    folder: Path, config: MatchConfig, pairs: Sequence[tuple[Specimen, Specimen]]
) -> list[Timed]:
    """Match some pairs."""
    store = store_of(folder, config)
    return [match_pair(store, folder, *pair) for pair in pairs]


def match_pair(store: Store, folder: Path, source: Specimen, target: Specimen) -> Timed:
    """Match a pair unless its map is there already; never raises for the sake of one pair."""
    start = time.perf_counter()
    name = map_name(source, target)
    key = ""
    try:
        key = store.key(source, target)
        found = finished_map(folder / name, key)
        if found is None:
            first = store.prepared(source, mirror=store.config.mirror)
            matched = store.matcher.match_prepared(first, store.prepared(target))
            found = replace(matched, details={**matched.details, BATCH_KEY: key})
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            found.save(folder / name, force=True)
        record = _record(found, source, target, name, key)
    except LTENetError as error:
        record = PairRecord(source.name, target.name, "failed", error=str(error), key=key)
    except Exception as error:  # whatever one pair leads to must not stop the others
        message = f"unexpected {type(error).__name__}: {error}"
        record = PairRecord(source.name, target.name, "crashed", error=message, key=key)
    give_freed_memory_back()
    return Timed(record, time.perf_counter() - start)


def map_name(source: Specimen, target: Specimen) -> str:
    """File of a map, relative to the folder of the batch."""
    return f"{MAPS}/{source.name}__{target.name}.npz"


def finished_map(path: Path, key: str) -> Correspondence | None:
    """Return a map that a run wrote before it could record it."""
    if not path.is_file():
        return None
    try:
        found = Correspondence.load(path)
    except LTENetError:
        return None
    return found if found.details.get(BATCH_KEY) == key else None


def _record(
    found: Correspondence, source: Specimen, target: Specimen, name: str, key: str
) -> PairRecord:
    summary = summarize(found)
    probability = summary.mean_probability
    return PairRecord(
        source.name,
        target.name,
        "done",
        verdict=summary.verdict,
        mean_probability=None if probability is None else round(probability, 6),
        matched=round(summary.matched, 6),
        coverage=round(summary.coverage, 6),
        model=summary.model or "",
        doubts="; ".join(summary.doubts),
        map=name,
        key=key,
    )
