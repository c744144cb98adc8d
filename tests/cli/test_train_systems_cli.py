"""`ltenet train` with another system than ours, from the preset to a map of two files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ltenet import cli, io
from ltenet.correspondence import Correspondence
from ltenet.shape import Shape

SMALL = (
    "pairs.what=animal", "pairs.points=[64, 64]", "optim.batch_size=2", "validation.pairs=0",
    "schedule.unit=steps", "schedule.length=2", "schedule.warmup=0", "workers=0",
    "network.pointnet.trunk=[8]", "network.pointnet.code=[8]", "network.pointnet.head=[8]",
)  # fmt: skip


def test_a_system_is_trained_resumed_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    changes = [word for text in SMALL for word in ("--set", text)]
    assert cli.main(["train", "pointnet", *changes, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["steps"] == 2
    longer = ["--set", "schedule.length=3", "--json"]
    assert cli.main(["train", "--resume", "pointnet", *longer]) == 0
    assert json.loads(capfd.readouterr().out)["steps"] == 3
    assert cli.main(["info", "runs/pointnet/best", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["system"] == "pointnet"
    assert told["use"].endswith("--method pointnet --model runs/pointnet/best")
    points = np.random.default_rng(0).normal(size=(70, 3))
    for name in ("a.ply", "b.ply"):
        io.save(Shape(points), tmp_path / name)
    words = ["match", "a.ply", "b.ply", "-o", "map.npz", "--method", "pointnet"]
    assert cli.main([*words, "--model", "runs/pointnet/best"]) == 0
    found = Correspondence.load(tmp_path / "map.npz")
    assert found.details["model"] == "runs/pointnet/best"
    assert (found.indices == np.arange(70)).mean() > 0.9  # a copy, whatever the features


def test_a_system_that_does_not_exist_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", "tiny", "--set", "system=magic"]) == 2
    assert "got the system 'magic', expected ltenet or one of corrnet3d" in capfd.readouterr().err
    assert not (tmp_path / "runs" / "tiny").exists()
