"""Tasks run side by side on one thread each, and the threads are given back afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest
import torch

from ltenet.refinement.threads import side_by_side, single_thread


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_a_limit_ends_with_its_block(threads: int) -> None:
    with pytest.raises(AssertionError, match="inside: 1"), single_thread():
        raise AssertionError(f"inside: {torch.get_num_threads()}")
    assert torch.get_num_threads() == threads


def test_results_come_in_order_and_each_task_has_one_thread(threads: int) -> None:
    def task(number: int) -> tuple[int, int]:
        return number, torch.get_num_threads()

    found = side_by_side(*(partial(task, number) for number in range(7)))
    assert found == [(number, 1) for number in range(7)]
    assert torch.get_num_threads() == threads
    fresh: list[int] = []
    other = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
    other.start()
    other.join()
    assert fresh == [threads]
    assert side_by_side() == []


def test_as_many_tasks_run_at_a_time_as_there_are_threads() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        meeting = threading.Barrier(2, timeout=30)
        assert len(side_by_side(meeting.wait, meeting.wait)) == 2  # neither waits in vain
        inner = partial(side_by_side, meeting.wait, meeting.wait)
        assert len(side_by_side(inner)[0]) == 2  # a task alone may share out both threads
        with single_thread():
            assert len(side_by_side(meeting.wait, meeting.wait)) == 2
    finally:
        torch.set_num_threads(before)


def test_the_error_of_a_task_is_raised_and_the_threads_are_given_back(threads: int) -> None:
    def fail() -> None:
        raise ValueError("of a task")

    with pytest.raises(ValueError, match="of a task"):
        side_by_side(fail, fail)
    assert torch.get_num_threads() == threads
