"""How the cores are used: whole tasks side by side, each on one thread of torch.

Refinement is thousands of operations of well under a millisecond. With two threads each of them
ends at a barrier where one thread spins until the scheduler runs the other. Next to a busy process
that makes a match several times slower, while a single thread slows down by the share of that
process. So the two shapes of a pair, and the ways to match it, are what runs in parallel. The
results then depend neither on the number of threads nor on the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

import torch

Result = TypeVar("Result")

#: Threads that the blocks below may share out among tasks; new threads start without.
_allowed: ContextVar[int | None] = ContextVar("allowed threads", default=None)


@contextmanager
def single_thread() -> Iterator[None]:
    """Use one thread of torch in this block, except for tasks that run side by side."""
    before = torch.get_num_threads()
    token = _allowed.set(_allowed.get() or before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _allowed.reset(token)


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Use one thread of numpy's and scipy's linear algebra, which know nothing of torch's limit."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


def side_by_side(*tasks: Callable[[], Result]) -> list[Result]:
    """Run independent tasks on one thread each, and return their results in order.

    As many run at a time as torch may use threads here. A task that has others beside it runs its
    own tasks in turn.
    """
    workers = min(_allowed.get() or torch.get_num_threads(), len(tasks))
    with single_thread():
        if workers < 2:
            return [task() for task in tasks]
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(lambda task: task(), tasks))


def by_blocks(task: Callable[[slice], Result], rows: int, size: int) -> list[Result]:
    """Run a task for each block of at most `size` rows, side by side; results in order."""
    starts = range(0, rows, size)
    return side_by_side(*(partial(task, slice(start, min(start + size, rows))) for start in starts))
