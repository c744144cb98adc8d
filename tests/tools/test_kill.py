"""Killed verbs leave outputs whole; the next run ends as if undisturbed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


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
