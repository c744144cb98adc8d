"""Killed verbs leave outputs whole; the next run ends as if undisturbed."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import pytest

from tools.kill import aims


def test_aims_are_spread_over_all_renames() -> None:
    few = aims(8, 2, 5.0, Random(0))
    assert [(aim.rename, aim.after) for aim in few[::2]] == [
        *((0, False), (0, True)),
        *((1, False), (1, True)),
    ]
    assert all(aim.seconds is not None and 0 <= aim.seconds <= 5 for aim in few[1::2])
    many = [aim.rename for aim in aims(10, 31, 5.0, Random(0))[::2]]
    assert many == [0, 6, 12, 18, 24]


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["match", "transfer", "train", "adapt", "batch", "atlas"])
def test_a_killed_verb_leaves_nothing_half_written(verb: str) -> None:
    # A process of its own: forking one that has used threads may hang.
    command = [sys.executable, "-m", "tools.kill", "--rounds", "4", "--verb", verb, "--json"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    found = json.loads(told.stdout)[verb]
    assert found["killed"] > 0
    assert found["faults"] == []
