"""The fuzzer finds faults where there are some, and none in the readers."""

from __future__ import annotations

import json
import mmap
import os
import signal
from pathlib import Path
from random import Random

import pytest

from ltenet.errors import InputError
from tools import fuzz
from tools.fuzz_mutations import KINDS, mutated
from tools.fuzz_readers import READERS, Reader, Seed

SEED = Seed("a.txt", b"1 2 3\n4 5 6\n", "text", {})


def reader_that(act: object) -> Reader:
    calls = iter(range(10**6))

    def read(path: Path) -> None:
        if next(calls) == 3:  # the first call reads a valid file
            act()  # type: ignore[operator]
        raise InputError("got nothing, expected something; try again")

    return Reader(read, lambda: [SEED])


def key_error() -> None:
    raise KeyError("raw")


def endless() -> None:
    while True:
        pass


def greedy() -> None:
    bytearray(2**36)


def greedy_and_caught() -> None:
    try:
        bytearray(2**40)
    except MemoryError:
        raise InputError("got it, expected less; try again") from None


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (key_error, "raw"),
        (endless, "slow"),
        (greedy, "memory"),
        (greedy_and_caught, "memory"),
        (killed, "raw"),
    ],
)
def test_faults_are_found_and_isolated(
    act: object, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only what never ends may run out of time, however busy the machine is.
    monkeypatch.setattr(fuzz, "SECONDS", 0.2 if kind == "slow" else 20.0)
    tally = fuzz.fuzz(reader_that(act), "bad", 3)
    assert (tally.inputs, tally.refused, getattr(tally, kind)) == (3, 2, 1)
    assert tally.faults[0].startswith(f"{kind} 2:")


def test_what_a_reader_loads_does_not_count_against_the_limits() -> None:
    loaded: list[mmap.mmap] = []

    def read(path: Path) -> None:
        if not loaded:
            loaded.append(mmap.mmap(-1, 2 * fuzz.MEMORY))  # as large libraries do

    tally = fuzz.fuzz(Reader(read, lambda: [SEED]), "heavy", 3)
    assert (tally.read, tally.memory) == (3, 0)


def test_the_same_number_gives_the_same_input(tmp_path: Path) -> None:
    make = fuzz._maker("name", [SEED], 7, tmp_path)
    first = make(3).read_bytes()
    assert make(4).read_bytes() != first or make(5).read_bytes() != first
    assert make(3).read_bytes() == first


@pytest.mark.parametrize("name", list(READERS))
def test_seeds_are_valid_and_mutations_change_them(name: str, tmp_path: Path) -> None:
    seeds = READERS[name].seeds()
    for seed in seeds:
        for file, content in {**seed.beside, seed.name: seed.content}.items():
            (tmp_path / file).write_bytes(content)
        READERS[name].read(tmp_path / (seed.opened or seed.name))
        assert seed.kind in KINDS
        assert any(mutated(seed.content, seed.kind, Random(i)) != seed.content for i in range(5))


@pytest.mark.slow
def test_no_reader_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz.main(["--inputs", "300", "--seed", "11", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["raw"], found["slow"], found["memory"]) == (0, 0, 0)
    assert found["inputs"] == 300 * len(READERS)
    for name, tally in found["readers"].items():
        assert tally["read"] > 0, name
        # These are never refused: what a killed process left is passed over, and begun anew.
        assert (tally["refused"] > 0) is (name not in ("journal", "batch")), name
