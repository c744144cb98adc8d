"""Batches of pairs made ahead of time in other processes; the same ones for any number of them.

Batch b always holds the pairs b * batch_size and on, and worker w makes the batches w, w + workers
and so on. Every worker has its own pipe: the parent asks for a bounded number of batches ahead and
reads them in order. A pipe that closes tells either side that the other is gone.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count as count_from
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import NamedTuple, Protocol, TypeVar

from ltenet.errors import LTENetError, UsageError

Pair = TypeVar("Pair")
Pair_co = TypeVar("Pair_co", covariant=True)

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
_PATIENCE = 5.0  # seconds that a worker gets to finish its pair before it is ended


class Drawable(Protocol[Pair_co]):
    """Anything whose items are found by index; it must be picklable to be used by workers."""

    def draw(self, index: int) -> Pair_co:
        """Make item number `index`."""


class _Failure(NamedTuple):
    """What a worker sends in place of a batch."""

    error: BaseException | None
    details: str


class _Worker(NamedTuple):
    process: SpawnProcess
    pipe: Connection


def load_batches(
    pairs: Drawable[Pair],
    *,
    batch_size: int,
    start: int = 0,
    stop: int | None = None,
    workers: int = 0,
    prefetch: int = 2,
    shard: int = 0,
    shards: int = 1,
) -> Iterator[list[Pair]]:
    """Iterate over batches of pairs, in order.

    Close the iterator (or let it be collected) to end the workers; an interrupt ends them too.

    Parameters
    ----------
    pairs
        Where they come from, usually `TrainingPairs`.
    batch_size
        Pairs in a batch over all shards.
    start
        First batch, to resume where another run stopped.
    stop
        The batch to stop before; None goes on forever.
    workers
        Processes that make batches, each with one thread; 0 makes them here. Workers are started
        afresh: a script that uses them needs ``if __name__ == "__main__"``.
    prefetch
        Batches that each worker may be ahead.
    shard, shards
        For several training processes: number `shard` of `shards` gets every `shards`-th pair of
        each batch, beginning with its own number.

    Returns
    -------
    Iterator over lists of pairs.
    """
    for name, value, least in (
        ("batch_size", batch_size, 1),
        ("start", start, 0),
        ("workers", workers, 0),
        ("prefetch", prefetch, 1),
        ("shards", shards, 1),
        ("shard", shard, 0),
    ):
        if value < least:
            raise UsageError(
                f"got {name}={value}, expected at least {least}; try the default by leaving it out"
            )
    if shard >= shards or shards > batch_size:
        raise UsageError(
            f"got shard {shard} of {shards} with batches of {batch_size}, expected shards from 0 "
            "with at least one pair of every batch each; try a larger batch or fewer shards"
        )
    layout = _Layout(batch_size, shard, shards)
    batches = iter(count_from(start)) if stop is None else iter(range(start, stop))
    if workers == 0:
        return (layout.batch(pairs, batch) for batch in batches)
    return _load_with_workers(pairs, layout, batches, workers, prefetch)


class _Layout(NamedTuple):
    """Which pairs belong to a batch."""

    batch_size: int
    shard: int
    shards: int

    def batch(self, pairs: Drawable[Pair], batch: int) -> list[Pair]:
        first = batch * self.batch_size
        indices = range(first + self.shard, first + self.batch_size, self.shards)
        return [pairs.draw(index) for index in indices]


def _load_with_workers(
    pairs: Drawable[Pair], layout: _Layout, batches: Iterator[int], workers: int, prefetch: int
) -> Iterator[list[Pair]]:
    pool: list[_Worker] = []
    try:
        with _single_threaded():
            pool.extend(_started(pairs, layout) for _ in range(workers))
        turns = count_from()
        asked = 0  # batches asked for so far; number n belongs to worker n modulo workers
        for batch in batches:
            _ask(pool[asked % workers], batch)
            asked += 1
            if asked >= workers * prefetch:
                yield _answer(pool[next(turns) % workers])
        for turn in turns:  # only a finite range comes here
            if turn >= asked:
                return
            yield _answer(pool[turn % workers])
    finally:
        _shut_down(pool)


def _started(pairs: Drawable[Pair], layout: _Layout) -> _Worker:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_work, args=(there, pairs, layout), daemon=True)
    try:
        process.start()
    except BaseException:
        here.close()
        raise
    finally:
        there.close()  # so that the pipe ends when the worker does
    return _Worker(process, here)


def _work(pipe: Connection, pairs: Drawable[object], layout: _Layout) -> None:
    """Answer requests for batches until the parent closes the pipe or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted and ends its workers
    try:
        while True:
            batch = pipe.recv()
            try:
                answer: object = layout.batch(pairs, batch)
            except Exception as error:
                answer = _Failure(error, traceback.format_exc())
            try:
                pipe.send(answer)
            except (BrokenPipeError, ConnectionResetError):
                return
            except Exception:  # what cannot be pickled still has its words
                details = answer.details if isinstance(answer, _Failure) else traceback.format_exc()
                pipe.send(_Failure(None, details))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _ask(worker: _Worker, batch: int) -> None:
    # A worker that is gone is noticed, with its exit code, when its answer is read.
    try:
        worker.pipe.send(batch)
    except (BrokenPipeError, ConnectionResetError):
        return


def _answer(worker: _Worker) -> list[Pair]:
    try:
        answer = worker.pipe.recv()
    except (EOFError, ConnectionResetError):
        worker.process.join(_PATIENCE)
        raise LTENetError(
            f"got exit code {worker.process.exitcode} from a loading process, expected it to stay "
            "alive; try freeing memory, putting the script under if __name__ == '__main__', or "
            "workers=0 to see the error"
        ) from None
    if isinstance(answer, _Failure):
        told = LTENetError(f"in a loading process:\n{answer.details}")
        if answer.error is None:
            raise told
        raise answer.error from told
    batch: list[Pair] = answer
    return batch


def _shut_down(pool: list[_Worker]) -> None:
    for worker in pool:
        worker.pipe.close()
    for worker in pool:
        worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.process.close()


@contextmanager
def _single_threaded() -> Iterator[None]:
    """Let processes started meanwhile use one thread each: libraries read it when they load."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
