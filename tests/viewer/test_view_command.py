"""`ltenet view` and `ltenet app` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ltenet.cli import main
from ltenet.correspondence import Correspondence
from ltenet.io import save
from ltenet.io.maps import write_map
from ltenet.shape import Shape


@pytest.fixture
def files(tmp_path: Path, people: tuple[Shape, Shape], rough_map: Correspondence) -> Path:
    for shape in people:
        save(shape, tmp_path / f"{shape.name}.ply")
    rough_map.save(tmp_path / "map.npz")
    write_map(tmp_path / "truth.txt", np.arange(len(people[0])))
    return tmp_path


def run(folder: Path, *more: str) -> int:
    names = ("walker.ply", "sitter.ply", "map.npz")
    return main(["view", *(str(folder / name) for name in names), *more])


@pytest.mark.slow
def test_a_report_and_a_picture(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report, png, truth = (str(files / name) for name in ("out.html", "out.png", "truth.txt"))
    assert run(files, "-o", report, "--png", png, "--truth", truth, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["matched"] == pytest.approx(0.95, abs=0.01)
    assert figures["within_1_percent"] == pytest.approx(0.95 * 0.9, abs=0.02)
    assert figures["bytes"] == Path(report).stat().st_size
    assert Path(report).read_text(encoding="utf-8").startswith("<!doctype html>")
    assert Path(png).read_bytes().startswith(b"\x89PNG")


def test_nothing_is_overwritten(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = files / "out.html"
    report.write_text("mine")
    assert run(files, "-o", str(report)) == 2
    assert "file that exists" in capsys.readouterr().err
    assert report.read_text() == "mine"
    assert run(files, "-o", str(report), "--force") == 0
    assert report.stat().st_size > 100_000


def test_something_must_be_written(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(files) == 2
    assert "-o report.html" in capsys.readouterr().err


def test_a_map_of_other_shapes_is_refused(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_map(files / "short.txt", np.arange(10))
    names = ("walker.ply", "sitter.ply", "short.txt")
    paths = [str(files / name) for name in names]
    assert main(["view", *paths, "-o", str(files / "x.html")]) == 3
    assert "short.txt" in capsys.readouterr().err


def test_the_app_names_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["app", "--no-browser"]) == 4
    assert "pip install 'ltenet[app]'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_port_that_cannot_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not installed: pip install 'ltenet[app]'")
    assert main(["app", "--no-browser", "--port", "70000"]) == 2
    assert "got port 70000" in capsys.readouterr().err
