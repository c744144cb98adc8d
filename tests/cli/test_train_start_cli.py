"""`ltenet train --start`: weights to begin with instead of random ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from ltenet import cli
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig
from ltenet.training.checkpoint import read_checkpoint

SMALL = (
    "pairs.points=[64, 64]", "optim.batch_size=2", "optim.lr=1e-12", "optim.ema=0",
    "optim.weight_decay=0", "validation.pairs=2", "schedule.unit=steps", "schedule.length=1",
    "schedule.warmup=0", "workers=0",
)  # fmt: skip
CHANGES = [word for text in SMALL for word in ("--set", text)]


def test_training_goes_on_from_given_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(1)
    # Another network than the preset's: that of the weights counts.
    encoder = EncoderConfig(widths=(8, 12), dimension=16, neighbors=8)
    start = LTENet(ModelConfig(encoder=encoder, radius=0.7))
    start.save_pretrained(tmp_path / "start")
    assert cli.main(["train", "tiny", "--start", "start", *CHANGES, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["steps"] == 1
    trained = read_checkpoint(tmp_path / "runs" / "tiny" / "last.ckpt").model
    head = start.encoder.head.weight
    # Weights are stored in half precision, and the step is tiny.
    torch.testing.assert_close(trained["encoder.head.weight"], head, atol=1e-3, rtol=0)
    log = (tmp_path / "runs" / "tiny" / "log.jsonl").read_text("utf-8").splitlines()
    assert json.loads(log[0])["step"] == 0  # the start itself is validated
    assert LTENet.from_pretrained(tmp_path / "runs" / "tiny" / "best").config.radius == 0.7


@pytest.mark.parametrize("words", [["--resume", "run"], ["pointnet"]])
def test_only_new_runs_of_ours_begin_with_weights(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    LTENet(ModelConfig(encoder=EncoderConfig(widths=(8,), dimension=8))).save_pretrained("start")
    if "--resume" in words:
        assert cli.main(["train", "tiny", "--name", "run", *CHANGES]) == 0
    assert cli.main(["train", *words, "--start", "start"]) == 2
    assert "got --start and" in capfd.readouterr().err
