"""Logs of runs: what a killed or diverged run leaves is read, what else is damaged is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ltenet.errors import InputError
from ltenet.training.runs import RunFolder
from ltenet.training.settings import dump_config, load_config
from ltenet.training.summary import sparkline, summarize_run

TRAIN = {"kind": "train", "step": 1, "minutes": 0.5, "pairs_per_second": 3.0, "total": 0.7}
SEEN = {"kind": "validation/independent", "step": 2, "error": 0.3, "accuracy_5": 40, "cycle": 0.2}


def run_with(folder: Path, *lines: str) -> RunFolder:
    (folder / "config.toml").write_text(dump_config(load_config("tiny")))
    (folder / "log.jsonl").write_text("\n".join(lines))
    return RunFolder(folder)


def test_an_unfinished_line_is_left_out(tmp_path: Path) -> None:
    run = run_with(tmp_path, json.dumps(TRAIN), json.dumps(SEEN), '{"kind": "tr')
    summary = summarize_run(run)
    assert (summary.steps, summary.minutes, summary.best_step) == (2, 0.5, 2)


def test_a_diverged_run_is_summarised(tmp_path: Path) -> None:
    run = run_with(tmp_path, json.dumps({**TRAIN, "total": float("nan")}), json.dumps(TRAIN), "")
    assert sparkline(summarize_run(run).curves["loss"].values) == "▁"
    assert sparkline([float("inf"), float("nan")]) == ""


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "3",
        "no JSON",
        "[" * 100_000,
        "{}",
        json.dumps({**TRAIN, "step": "one"}),
        json.dumps({key: value for key, value in TRAIN.items() if key != "total"}),
        json.dumps({**SEEN, "error": None}),
        json.dumps({**TRAIN, "step": 1e400}),
    ],
)
def test_damaged_logs_are_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"log\.jsonl"):
        summarize_run(run_with(tmp_path, line, json.dumps(TRAIN)))


def test_a_log_that_is_no_text_is_refused(tmp_path: Path) -> None:
    run = run_with(tmp_path, json.dumps(TRAIN))
    run.log.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        summarize_run(run)
