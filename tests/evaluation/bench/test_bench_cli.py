"""`ltenet bench` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ltenet.cli import main


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LTENET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


SMALL = ["generated-human", "--pairs", "2", "--points", "150", "--seeds", "0"]


@pytest.mark.slow
def test_one_method(capsys: pytest.CaptureFixture[str], own_cache: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    arguments = ["bench", *SMALL, "--method", "icp", "--option", "iterations=5", "-o", str(place)]
    assert main([*arguments, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["method"], result["pairs"], result["seeds"]) == ("icp", 2, [0])
    assert result == json.loads((place / "result.json").read_text())
    assert len(list(own_cache.rglob("*.npz"))) == 4
    assert main(arguments) == 2
    assert "got a folder with a result" in capsys.readouterr().err
    assert main([*arguments, "--force"]) == 0
    told = capsys.readouterr().out
    assert "generated-human, 2 pairs, shared samples, seeds 0; figures of the point" in told
    assert len(list(own_cache.rglob("*.npz"))) == 4


def test_several_methods(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bench", *SMALL, "--method", "nearest,embedding", "--model", "human"]
    assert main([*arguments, "--sampling", "independent", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["method"], row["model"]) for row in rows] == [
        ("nearest", None),
        ("embedding", "human"),
    ]
    assert main([*arguments, "--sampling", "independent"]) == 0
    assert "oracle, the nearest drawn point" in capsys.readouterr().out


@pytest.mark.slow
def test_the_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *SMALL, "--model", "human", "--no-cycle", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["model"], result["orient"], result["refine"]) == ("human", "auto", "coherent")
    assert result["cycle"] is None
    assert result["acc"]["0.2"]["mean"] > 50


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--method", "best"], 2, "got the method 'best'"),
        (["--seeds", "0,x"], 2, "whole numbers with commas"),
        (["--seeds", "0,,1"], 2, "expected words with commas between them"),
        (["--method", "icp", "--option", "iterations"], 2, "expected NAME=VALUE"),
        (["--method", "icp", "--refine", "ot"], 2, "expected an option that it has"),
        (["--by", "area", "--method", "icp"], 2, "expected independent samples by area"),
    ],
)
def test_mistakes(
    capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(["bench", *SMALL[:-2], *arguments]) == code
    assert message in capsys.readouterr().err


def test_data_that_are_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LTENET_DATA", raising=False)
    assert main(["bench", "faust", "--method", "icp"]) == 4
    assert "try --data DIR, or set LTENET_DATA" in capsys.readouterr().err
