"""The worker may not eat the machine: what is too much fails, with a clear word."""

from __future__ import annotations

import multiprocessing
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from ltenet.errors import InputError
from ltenet.viewer import checking
from ltenet.viewer.jobs import Jobs
from ltenet.viewer.limits import LEAST_MEMORY, limit_memory, memory_limit, ran_out_of_memory

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")


def _greedy(connection: Connection) -> None:
    limit_memory(2**29)
    try:
        np.ones(2**28)  # 2 GB
        connection.send("had it")
    except MemoryError as error:
        connection.send("refused" if ran_out_of_memory(error) else "strange")


@linux_only
def test_a_greedy_process_is_refused() -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_greedy, args=(there,))
    process.start()
    assert here.poll(60)
    assert here.recv() == "refused"
    process.join()


@pytest.mark.slow
@linux_only
def test_a_file_that_needs_too_much_fails_and_the_next_one_has_a_worker(tmp_path: Path) -> None:
    """A sparse file of 264 MB, just below the limit, that is copied while it is read."""
    files = tmp_path / "large.npy", tmp_path / "small.npy"
    results = tmp_path / "results"
    results.mkdir()
    jobs = Jobs(results, memory=400 * 2**20)
    try:
        for _ in range(2):
            np.lib.format.open_memmap(files[0], mode="w+", shape=(11_000_000, 3)).flush()
            np.save(files[1], np.random.default_rng(0).random((50, 3)))
            job = jobs.add(
                *files, source_name="large", target_name="small", model="human", effort="quick"
            )
            deadline = time.monotonic() + 120
            while job.state in ("queued", "running") and time.monotonic() < deadline:
                time.sleep(0.05)
            assert job.state == "failed"
            assert "takes more than 0.4 GB of memory" in job.message
            assert not any(file.exists() for file in files)
    finally:
        jobs.close()


def test_the_limit_is_a_share_of_the_machine() -> None:
    assert LEAST_MEMORY <= memory_limit() < 2**45


def test_torch_says_it_in_its_own_words() -> None:
    said = (
        "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
    )
    assert ran_out_of_memory(RuntimeError(said))
    assert not ran_out_of_memory(RuntimeError("shapes do not match"))
    assert not ran_out_of_memory(ValueError("cannot allocate memory"))


def test_a_checker_that_is_stuck_has_a_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad, long = (tmp_path / f"{name}.xyz" for name in ("good", "bad", "long"))
    good.write_text("0 0 0\n1 2 3\n")
    long.write_text("1 2 3\n" * 200_000)  # far from read when the time is up
    bad.write_text("0 0 zero\n")
    checker = checking.Checker()
    try:
        assert checker.check(good, "mine") == 2
        with pytest.raises(InputError, match=r"^mine, line 1: got 'zero'"):
            checker.check(bad, "mine")
        with monkeypatch.context() as patch:
            patch.setattr(checking, "CHECK_SECONDS", 0.0)
            with pytest.raises(InputError, match=r"^mine: got a file that takes too much"):
                checker.check(long, "mine")
        assert checker.check(good, "mine") == 2
    finally:
        checker.close()
