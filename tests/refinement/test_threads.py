"""Threads are limited where they would fight, and given back afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ltenet.refinement import threads
from ltenet.refinement.threads import idle_cores, limited_threads


def test_a_limit_ends_with_its_block() -> None:
    before = torch.get_num_threads()
    with pytest.raises(AssertionError, match="inside"), limited_threads(1):
        raise AssertionError(f"inside: {torch.get_num_threads()}")
    with limited_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with limited_threads(before + 5):  # never more than are allowed
        assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("text", "idle"),
    [
        ("0.5 0.5 0.5 1/100 1", 4),  # we alone are running
        ("0.5 0.5 0.5 3/100 1", 2),
        ("9.0 9.0 9.0 40/100 1", 1),
        ("no numbers here at all", 4),
        (None, 4),
    ],
)
def test_busy_cores_are_left_alone(
    text: str | None, idle: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if text is not None:
        (tmp_path / "loadavg").write_text(text)
    monkeypatch.setattr(threads, "_RUNNING", tmp_path / "loadavg")
    monkeypatch.setattr(threads, "_own_cores", lambda: 4)
    assert idle_cores() == idle
