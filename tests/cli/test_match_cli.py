"""`ltenet match` as a newcomer calls it: what it says first, what it refuses, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ltenet import cli, io
from ltenet.cli.match import Match
from ltenet.correspondence import Correspondence
from ltenet.matching.config import MatchConfig
from ltenet.shape import Shape


class Run(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Run]


@pytest.fixture
def call(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: Any) -> Call:
    """Match two clouds of 60 points; the network's part is done by a stand-in."""
    from ltenet.matching import matcher

    rng = np.random.default_rng(0)
    for name in ("a.ply", "b.ply"):
        io.save(Shape(rng.normal(size=(60, 3))), tmp_path / name)

    def matched(self: Any, source: Shape, target: Shape, *, pairs: Any = None) -> Correspondence:
        details: dict[str, Any] = {"model": "human", "energy": 0.5, "calibrated": True}
        details |= {"given": [] if pairs is None else np.stack(pairs).tolist()}
        details |= {"orientation_reversed": True, "outliers": [3, 0]}
        self.seconds = {"embed": 1.0}
        indices = np.where(np.arange(60) < 48, np.arange(60) // 2, -1)
        scores = np.where(indices < 0, 0.01, 0.9)
        return Correspondence(
            indices, 60, scores=scores, details=details, source=source, target=target
        )

    def both(self: Any, source: Shape, target: Shape, *, pairs: Any = None) -> matcher.Both:
        found = matched(self, source, target, pairs=pairs)
        if pairs is not None:  # they decide
            return matcher.Both(found, None)
        details = {**found.details, "symmetry": "ambiguous", "other_probability": 0.4}
        other = replace(found, indices=found.indices[::-1], details=details)
        return matcher.Both(replace(found, details=details), other)

    monkeypatch.setattr(matcher.Matcher, "match", matched)
    monkeypatch.setattr(matcher.Matcher, "match_both", both)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Run:
        code = cli.main(["match", "a.ply", "b.ply", *map(str, arguments)])
        return Run(code, *capfd.readouterr())

    return run


def test_options_come_from_one_list(capfd: pytest.CaptureFixture[str]) -> None:
    own = {option.name for option in fields(Match)}
    assert own.isdisjoint(option.name for option in fields(MatchConfig))
    assert cli.main(["match", "--help"]) == 0
    shown = capfd.readouterr().out
    for option in fields(MatchConfig):
        assert f"--{option.name.replace('_', '-')} " in shown
    assert "SOURCE TARGET" in shown
    assert "ltenet match scan.ply template.obj -o map.npz" in shown


def test_points_may_be_all() -> None:
    command: Any = cli._parse(["match", "a", "b", "--points", "all", "--seed", "3"])
    assert command.matching == MatchConfig(points=None, seed=3)
    command = cli._parse(["match", "a", "b", "--points", "100"])
    assert command.matching == MatchConfig(points=100)


@pytest.mark.slow
def test_the_first_line_is_what_the_map_is_worth(call: Call, tmp_path: Path) -> None:
    run = call("-o", "map.npz", "--report", "map.html")
    assert run.code == 0, run.err
    assert run.out.splitlines()[0] == (
        "reliable, mean probability 0.90, weights human, matched 80.0%, coverage 40.0%; "
        "the map reverses orientation; 3 outliers of the source left out"
    )
    told = json.loads(call("--json", "-o", "map.txt").out)
    assert told["coverage"] == pytest.approx(0.4)
    assert told["mean_probability"] == pytest.approx(0.9)
    assert told["doubts"] == ["the map reverses orientation"]
    viewed = cli.main(["view", "a.ply", "b.ply", "map.npz", "--png", "x.png", "--json"])
    assert viewed == 0
    report = (tmp_path / "map.html").read_text(encoding="utf-8")
    for name in ("verdict", "mean probability", "weights", "matched", "coverage", "doubts"):
        assert f'"name": "{name}"' in report or f'"name":"{name}"' in report


def test_known_pairs_come_from_a_file(call: Call, tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("source,target\n3,7\n40,1\n", encoding="utf-8")
    run = call("--pairs", "known.csv", "-o", "map.npz")
    assert run.code == 0, run.err
    assert Correspondence.load(tmp_path / "map.npz").details["given"] == [[3, 40], [7, 1]]
    (tmp_path / "known.csv").write_text("3,99\n", encoding="utf-8")
    run = call("--pairs", "known.csv", "-o", "other.npz")
    assert run.code == 3
    assert "target points 99 to 99, expected 0 to 59" in run.err
    assert not (tmp_path / "other.npz").exists()


def test_the_other_map_is_kept_where_sides_cannot_be_told(call: Call, tmp_path: Path) -> None:
    run = call("-o", "map.npz", "--other", "other.npz", "--json")
    figures = json.loads(run.out)
    assert (figures["symmetry"], figures["other_probability"]) == ("ambiguous", 0.4)
    assert figures["written"] == {"map": "map.npz", "other": "other.npz"}
    maps = [Correspondence.load(tmp_path / name).indices for name in ("map.npz", "other.npz")]
    np.testing.assert_array_equal(maps[0], maps[1][::-1])
    (tmp_path / "known.csv").write_text("3,40\n", encoding="utf-8")
    run = call("-o", "sure.npz", "--other", "none.npz", "--pairs", "known.csv")
    assert run.code == 0
    assert "no other map is about as plausible: none.npz is not written" in run.err
    assert not (tmp_path / "none.npz").exists()


def test_a_map_that_is_not_saved_says_so(call: Call) -> None:
    run = call()
    assert run.code == 0
    assert "the map will not be saved: add -o map.npz" in run.err
    assert "reliable" in run.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "map.jpg"), "expected .npz, .csv"),
        (("-o", "nowhere/map.npz"), "does not exist"),
        (("-o", "a.ply"), "got the suffix"),
        (("--png", "x.jpg"), "expected .png"),
        (("--other", "x.jpg"), "expected .npz, .csv"),
        (("--other", "x.npz", "--method", "icp"), "got --other with --method icp"),
        (("--pairs", "x.csv", "--method", "icp"), "got --pairs with --method icp"),
        (("--report", "x.txt"), "expected .html"),
        (("-o", "map.npz", "--index-base", "1"), "--index-base 1"),
        (("--threads", "0"), "--threads 0"),
        (("--threshold", "2"), "threshold of 2"),
        (("--points", "3"), "at least 50"),
    ],
)
def test_refused_before_the_work(
    call: Call, options: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: object) -> None:
        raise AssertionError("began to work")

    monkeypatch.setattr("ltenet.io.load", work)
    run = call(*options)
    assert run.code == 2
    assert words in run.err


def test_nothing_is_replaced_without_force(call: Call, tmp_path: Path) -> None:
    (tmp_path / "map.npz").write_text("mine")
    run = call("-o", "map.npz")
    assert run.code == 2
    assert "--force" in run.err
    assert (tmp_path / "map.npz").read_text() == "mine"
    assert call("-o", "map.npz", "--force").code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="these signals are not known there")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130)])
def test_signals_end_a_verb_alike(tmp_path: Path, name: str, code: int) -> None:
    script = (
        "import sys, time\n"
        "from ltenet import cli, files\n"
        "import ltenet.cli.version as verb\n"
        "def run(self):\n"
        "    with files.atomic_path(sys.argv[1]) as temporary:\n"
        "        temporary.write_text('half')\n"
        "        print('ready', file=sys.stderr, flush=True)\n"
        "        time.sleep(60)\n"
        "verb.Version.run = run\n"
        "sys.exit(cli.main(['version']))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "out.npz")],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    process.send_signal(getattr(signal, name))
    with process.stderr:
        assert "interrupted" in process.stderr.read()
    assert process.wait(timeout=30) == code
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="nohup is not known there")
def test_nohup_keeps_its_word() -> None:
    script = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from ltenet import cli\n"
        "from ltenet.cli.command import Result\n"
        "import ltenet.cli.version as verb\n"
        "def run(self):\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "    return Result({}, 'on')\n"
        "verb.Version.run = run\n"
        "sys.exit(cli.main(['version']))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "ltenet", "version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert run.returncode == 3
    assert "No space left" in run.stderr
    assert "unexpected" not in run.stderr
    assert "Exception" not in run.stderr


@pytest.mark.parametrize(
    ("typed", "meant"), [("mach", "match"), ("veiw", "view"), ("trian", "train")]
)
def test_an_unknown_verb_suggests_the_nearest(
    typed: str, meant: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([typed, "a.ply"]) == 2
    assert f"try `ltenet {meant}`" in capfd.readouterr().err


def test_info_describes_weights(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["info", "human", "--json", "--runs", str(tmp_path)]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["parameters"] > 1_000_000
    assert told["orientation"]
    assert told["calibration"]
    assert "human bodies" in told["card"]
    assert cli.main(["info", "human-unsupervised", "--runs", str(tmp_path)]) == 0
    assert "probabilities are a guess" in capfd.readouterr().out
    assert cli.main(["info", "nothing", "--runs", str(tmp_path)]) == 4
    assert "ltenet info human" in capfd.readouterr().err


def test_weights_without_their_companions_say_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from ltenet.matching.matcher import Matcher
    from ltenet.method.model import LTENet, find_weights

    LTENet.from_pretrained(find_weights("human")).save_pretrained(tmp_path / "alone")
    from ltenet.cli.output import logging_to_stderr

    with logging_to_stderr(verbose=False):
        Matcher(MatchConfig(model=str(tmp_path / "alone")))
        told = capfd.readouterr().err
        assert "no orientation network" in told
        assert "not calibrated" in told
        Matcher(MatchConfig(model=str(tmp_path / "alone"), orient="none", threshold=0.0))
        assert capfd.readouterr().err == ""


def test_import_stays_light() -> None:
    code = "import sys, ltenet.cli.match, ltenet.cli.bench; sys.exit('torch' in sys.modules)"
    start = time.perf_counter()
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert time.perf_counter() - start < 20  # a busy machine is slow, torch is slower


def test_another_method_gives_the_same_kind_of_map_and_report(call: Call, tmp_path: Path) -> None:
    run = call("--method", "icp", "--option", "iterations=3", "-o", "map.npz", "--report", "m.html")
    assert run.code == 0, run.err
    assert run.out.splitlines()[0].startswith("not rated, matched 100.0%, coverage")
    found = Correspondence.load(tmp_path / "map.npz")
    assert found.details["method"] == "icp"
    assert found.details["options"] == {"iterations": "3"}
    assert found.matched.all()
    assert (tmp_path / "m.html").is_file()
    told = json.loads(call("--method", "nearest", "--json").out)
    assert (told["method"], told["energy"], told["verdict"]) == ("nearest", None, "not rated")
    assert set(told["seconds"]) == {"load", "match"}


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--method", "best"), 2, "got the method 'best', expected one of ltenet"),
        (("--method", "icp", "--orient", "none"), 2, "got --orient none with --method icp"),
        (("--method", "icp", "--option", "speed=3"), 2, "expected options of that method"),
        (("--option", "iterations=3"), 2, "got --option iterations=3 without --method"),
        (("--method", "corrnet3d"), 4, "corrnet3d: got no weights"),
        (("--method", "corrnet3d", "--model", "x"), 4, "x: got no config.json there"),
    ],
)
def test_options_of_other_methods(
    call: Call, options: tuple[str, ...], code: int, words: str
) -> None:
    run = call(*options)
    assert run.code == code
    assert words in run.err
