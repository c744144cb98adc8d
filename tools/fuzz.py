"""Feed damaged files to every reader: each must read them, or refuse them in ltenet's own words.

    python -m tools.fuzz [--inputs N] [--reader NAME] [--seed S] [--keep FOLDER] [--json]

A fault is an exception that is not ltenet's own ("raw"), more than `SECONDS` of processor time
("slow"), or more than `MEMORY` bytes ("memory"). Inputs run in batches in a forked process with
limits; when one kills its process, the next begins behind it. Input number N of a reader depends on
the seed and N alone, so a fault can be repeated. Exits 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ltenet.errors import LTENetError
from tools.fuzz_mutations import mutated
from tools.fuzz_readers import READERS, Reader, Seed

#: Processor time, and memory beyond what the process has, that a small file may take.
SECONDS = 5.0
MEMORY = 256 * 2**20
_BATCH = 500
#: Wall time without a word from the worker after which it is stuck where no signal reaches it.
_PATIENCE = 120.0


class Outcome(NamedTuple):
    """What an input led to: "read", "refused", "raw", "slow" or "memory", and why."""

    index: int
    kind: str
    reason: str = ""


@dataclass
class Tally:
    """How the inputs of a reader ended."""

    inputs: int = 0
    read: int = 0
    refused: int = 0
    raw: int = 0
    slow: int = 0
    memory: int = 0
    faults: list[str] = field(default_factory=list)

    def count(self, outcome: Outcome) -> None:
        """Add an outcome."""
        self.inputs += 1
        setattr(self, outcome.kind, getattr(self, outcome.kind) + 1)
        if outcome.reason and len(self.faults) < 20:
            self.faults.append(f"{outcome.kind} {outcome.index}: {outcome.reason}")


class _Slow(BaseException):
    """Not an Exception: readers that catch everything must not catch it."""


def fuzz(
    reader: Reader, name: str, inputs: int, *, seed: int = 0, keep: Path | None = None
) -> Tally:
    """Run one reader on `inputs` damaged files."""
    tally, seeds = Tally(), reader.seeds()
    index = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=_memory_folder()) as folder:
        # What the reader imports is not the file's doing, and must not count against the limits.
        with contextlib.suppress(LTENetError):
            reader.read(_written(seeds[0], seeds[0].content, Path(folder)))
        while index < inputs:
            stop = min(index + _BATCH, inputs)
            make = _maker(name, seeds, seed, Path(folder))
            for outcome in _batch(lambda path: reader.read(path), make, index, stop):
                tally.count(outcome)
                index = outcome.index + 1
                if keep is not None and outcome.kind in ("raw", "slow", "memory"):
                    kept = keep / f"{name}-{seed}-{outcome.index}"
                    kept.mkdir(parents=True, exist_ok=True)
                    _maker(name, seeds, seed, kept)(outcome.index)
    return tally


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _maker(name: str, seeds: list[Seed], seed: int, folder: Path) -> Callable[[int], Path]:
    """Return the function that writes input N and returns what to open."""

    def make(index: int) -> Path:
        random = Random(f"{seed} {name} {index}")
        chosen = random.choice(seeds)
        return _written(chosen, mutated(chosen.content, chosen.kind, random), folder)

    return make


def _written(seed: Seed, content: bytes, folder: Path) -> Path:
    """Leave one file, and what belongs beside it, in a folder; return what to open."""
    for old in folder.iterdir():
        old.unlink()
    for name, other in seed.beside.items():
        (folder / name).write_bytes(other)
    (folder / seed.name).write_bytes(content)
    return folder / (seed.opened or seed.name)


def _batch(
    read: Callable[[Path], Any], make: Callable[[int], Path], start: int, stop: int
) -> Iterator[Outcome]:
    """Run inputs in a child process; if it dies, the input that killed it is the last one."""
    source, sink = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(source)
            _work(read, make, range(start, stop), sink)
        finally:
            os._exit(0)  # the child must not go on as its parent
    os.close(sink)
    index, pending = start, b""
    while index < stop:
        ready, _, _ = select.select([source], [], [], _PATIENCE)
        data = os.read(source, 65536) if ready else b""
        if not data:
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            os.close(source)
            reason = f"the process ended with {os.waitstatus_to_exitcode(status)}"
            yield Outcome(index, "raw" if ready else "slow", reason)
            return
        *lines, pending = (pending + data).split(b"\n")
        for line in lines:
            yield Outcome(*json.loads(line))
            index += 1
    os.close(source)
    os.waitpid(child, 0)


def _work(
    read: Callable[[Path], Any], make: Callable[[int], Path], indices: range, sink: int
) -> None:
    """Run inputs under limits and write one outcome a line."""
    # What readers log and third parties print belongs to no one here.
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, _interrupt)
    for index in indices:
        path = make(index)
        outcome = Outcome(index, *_outcome(read, path))
        os.write(sink, json.dumps(outcome).encode() + b"\n")


def _outcome(read: Callable[[Path], Any], path: Path) -> tuple[str, str]:
    kind, reason = "read", ""
    limit = _virtual_memory() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        read(path)
    except _Slow:
        kind, reason = "slow", f"more than {SECONDS} s"
    except MemoryError as error:
        kind, reason = "memory", str(error) or "out of memory"
    except LTENetError as error:
        kind = "refused"
        if _has_memory_error(error):
            kind, reason = "memory", str(error) or "out of memory"
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(place.filename).name}:{place.lineno}"
        kind = "memory" if _has_memory_error(error) else "raw"
        reason = f"{type(error).__name__}: {str(error)[:200]} ({where})"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return kind, reason


def _has_memory_error(error: BaseException | None) -> bool:
    """Whether a reader ran out of memory, perhaps caught that, and said something else."""
    while error is not None:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _interrupt(number: int, frame: object) -> None:
    raise _Slow


def _virtual_memory() -> int:
    """Bytes that the process has mapped."""
    with open("/proc/self/statm", encoding="ascii") as status:
        return int(status.read().split()[0]) * resource.getpagesize()


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=300, help="files for each reader")
    parser.add_argument("--reader", choices=sorted(READERS), action="append")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files that led to faults")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # each thread would count as memory
    tallies: dict[str, Tally] = {}
    for name in options.reader or READERS:
        tally = fuzz(READERS[name], name, options.inputs, seed=options.seed, keep=options.keep)
        tallies[name] = tally
        kinds = ("inputs", "read", "refused", "raw", "slow", "memory")
        counts = ", ".join(f"{getattr(tally, kind)} {kind}" for kind in kinds)
        print(f"{name:16} {counts}", file=sys.stderr)
        for fault in tally.faults:
            print("  " + fault, file=sys.stderr)
    totals = {
        key: sum(getattr(tally, key) for tally in tallies.values())
        for key in ("inputs", "raw", "slow", "memory")
    }
    readers = {name: asdict(tally) for name, tally in tallies.items()}
    if options.json:
        print(json.dumps({**totals, "seed": options.seed, "readers": readers}, indent=1))
    return 1 if totals["raw"] + totals["slow"] + totals["memory"] else 0


if __name__ == "__main__":
    sys.exit(main())
