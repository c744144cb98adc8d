from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ltenet.cli as cli
from ltenet import __version__, io
from ltenet.cli.command import Command, Result
from ltenet.cli.output import table
from ltenet.data.readers import open_set
from ltenet.errors import InputError, MissingError, PartialFailure, UsageError
from ltenet.shape import Shape


class Run:
    """What a call of the command line left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Ltenet = Callable[..., Run]


@pytest.fixture
def ltenet(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ltenet:
    """Call the command line in this process."""
    monkeypatch.delenv("LTENET_DATA", raising=False)

    def call(*arguments: object) -> Run:
        code = cli.main([str(argument) for argument in arguments])
        return Run(code, *capfd.readouterr())

    return call


@pytest.fixture
def behaving(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Result]], None]:
    """Give the verb `version` another behaviour."""

    def install(behaviour: Callable[[], Result]) -> None:
        @dataclass(frozen=True, kw_only=True)
        class Behaving(Command):
            """As the test says."""

            def run(self) -> Result:
                return behaviour()

        monkeypatch.setattr("ltenet.cli.version.COMMAND", Behaving)

    return install


# The frame.


def test_version_and_help(ltenet: Ltenet) -> None:
    run = ltenet("--version")
    assert (run.code, run.out, run.err) == (0, f"ltenet {__version__}\n", "")
    run = ltenet("--help")
    assert run.code == 0
    assert all(name in run.out for name in cli.VERBS)


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_explains_itself(ltenet: Ltenet, verb: str) -> None:
    run = ltenet(verb, "--help")
    assert run.code == 0
    assert f"usage: ltenet {verb}" in run.out
    assert run.err == ""
    # What Python calls an option that is left out is of no use to a user.
    for words in ("default: None", "{None", "default: )"):
        assert words not in " ".join(run.out.replace("│", " ").split())


@pytest.mark.parametrize(
    "arguments",
    [(), ("nothing",), ("data",), ("data", "list", "--nothing"), ("data", "make", "cow")],
)
def test_wrong_usage_is_2_and_leaves_stdout_alone(
    ltenet: Ltenet, arguments: tuple[str, ...]
) -> None:
    run = ltenet(*arguments)
    assert run.code == 2
    assert run.out == ""
    assert "--help" in run.err


def test_versions(ltenet: Ltenet) -> None:
    run = ltenet("version", "--json")
    assert run.code == 0
    assert run.json["ltenet"] == __version__
    assert run.json["numpy"] == np.__version__


@pytest.mark.parametrize(
    ("error", "code"), [(UsageError, 2), (InputError, 3), (MissingError, 4), (PartialFailure, 5)]
)
def test_own_errors_have_their_exit_code(
    ltenet: Ltenet, behaving: Any, error: type[Exception], code: int
) -> None:
    def fail() -> Result:
        raise error("a came; b is needed; try c")

    behaving(fail)
    run = ltenet("version", "--json")
    assert (run.code, run.out) == (code, "")
    assert run.err == "error: a came; b is needed; try c\n"


def test_unexpected_errors_are_short_unless_verbose(ltenet: Ltenet, behaving: Any) -> None:
    def fail() -> Result:
        raise RuntimeError("broken")

    behaving(fail)
    run = ltenet("version")
    assert (run.code, run.out) == (1, "")
    assert "unexpected RuntimeError: broken" in run.err
    assert "--verbose" in run.err
    assert "Traceback" not in run.err
    assert "Traceback" in ltenet("version", "-v").err


def test_interruption_is_130(ltenet: Ltenet, behaving: Any) -> None:
    def fail() -> Result:
        raise KeyboardInterrupt

    behaving(fail)
    run = ltenet("version")
    assert (run.code, run.out, run.err) == (130, "", "interrupted\n")


def test_logging_goes_to_stderr(ltenet: Ltenet, behaving: Any) -> None:
    def talk() -> Result:
        logging.getLogger("ltenet.somewhere").warning("mind %s", "this")
        logging.getLogger("ltenet.somewhere").info("by the way")
        return Result({"fine": True}, "fine")

    behaving(talk)
    run = ltenet("version", "--json")
    assert run.json == {"fine": True}
    assert run.err == "warning: mind this\n"
    assert "info: by the way" in ltenet("version", "-v").err
    assert logging.getLogger("ltenet").handlers == []


def test_numbers_that_are_not_finite_never_reach_json(ltenet: Ltenet, behaving: Any) -> None:
    behaving(lambda: Result({"bad": float("nan")}, "bad"))
    run = ltenet("version", "--json")
    assert (run.code, run.out) == (1, "")


def test_tables_align() -> None:
    text = table([("a", 1, 0.5), ("long", 20, 0.25)], header=("name", "n", "x"))
    assert text == "name   n      x\na      1  0.500\nlong  20  0.250"


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **options
    )


def test_as_a_program() -> None:
    before = os.times()
    run = python("-m", "ltenet", "--help")
    after = os.times()
    assert run.returncode == 0
    assert "data" in run.stdout
    own_work = after.children_user + after.children_system
    own_work -= before.children_user + before.children_system
    assert own_work < 1.0
    assert python("-m", "ltenet", "data", "make").returncode == 2
    environment = {key: value for key, value in os.environ.items() if key != "LTENET_DATA"}
    run = python("-m", "ltenet", "data", "info", "tosca", env=environment)
    assert (run.returncode, run.stdout) == (4, "")
    assert run.stderr.startswith("error: ")


def test_a_closed_pipe_is_quiet() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ltenet", "version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 0


# data list


def test_list(ltenet: Ltenet, tmp_path: Path) -> None:
    run = ltenet("data", "list", "--json")
    assert run.code == 0
    templates = {entry["template"]: entry for entry in run.json["generators"]}
    assert templates["human"]["vertices"] > 4000
    assert "horse" in templates["capsule"]["species"]
    assert not any(entry["found"] for entry in run.json["benchmarks"])
    assert "LTENET_DATA" in ltenet("data", "list").out
    run = ltenet("data", "list", "--data", tmp_path / "nothing")
    assert run.code == 4


@pytest.mark.slow
def test_list_finds_benchmarks(
    ltenet: Ltenet, benchmark_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LTENET_DATA", str(benchmark_data))
    run = ltenet("data", "list", "--json")
    found = {entry["name"]: entry for entry in run.json["benchmarks"]}
    assert (found["tosca"]["shapes"], found["tosca"]["pairs"]) == (41, 286)
    assert not found["scape"]["found"]
    assert "41 shapes, 286 pairs" in ltenet("data", "list").out


# data make


def content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.mark.parametrize("suffix", ["ply", "npz", "obj", "off"])
def test_make_writes_what_open_set_reads(ltenet: Ltenet, tmp_path: Path, suffix: str) -> None:
    folder = tmp_path / "deep" / "made"
    made = ("data", "make", "human", "--count", 2, "--seed", 5, "--format", suffix, "-o", folder)
    run = ltenet(*made, "--json")
    assert run.code == 0
    assert run.json["shapes"] == [f"human_s5_00000{k}.{suffix}" for k in (0, 1)]
    shapes = open_set(folder)
    assert shapes.names == ("human_s5_000000", "human_s5_000001")
    assert shapes.categories == ("human", "human")
    assert shapes.pairs.tolist() == [[0, 1], [1, 0]]
    truth = shapes.truth(0, 1)
    assert truth is not None
    assert np.array_equal(truth.source, truth.target)
    with np.load(folder / "template_human.npz") as template:
        assert set(template.files) == {"faces", "mirror", "side", "front", "opposite"}
        assert len(template["mirror"]) == len(truth.source) == len(shapes.shape(0))
        assert np.array_equal(shapes.shape(1).faces, template["faces"])
    if suffix == "npz":
        with np.load(folder / "human_s5_000000.npz") as body:
            assert set(body.files) == {"vertices", "faces"}


def test_make_is_reproducible_and_overwrites_nothing(ltenet: Ltenet, tmp_path: Path) -> None:
    made = ("data", "make", "animal", "-n", 2, "--seed", 3, "--template", "dog", "-o")
    one, two = tmp_path / "one", tmp_path / "two"
    assert ltenet(*made, one).code == ltenet(*made, two).code == 0
    before = content(one)
    assert before == content(two)
    run = ltenet(*made, one)
    assert run.code == 2
    assert "exists" in run.err
    assert "force" in run.err
    (one / "manifest.json").unlink()
    assert ltenet(*made, one).code == 2
    (one / "manifest.json").write_text("old")
    assert ltenet(*made, one, "--force").code == 0
    assert content(one) == before
    assert not list(one.glob(".*"))


def test_make_continues_a_stream(ltenet: Ltenet, tmp_path: Path) -> None:
    ltenet("data", "make", "human", "-n", 2, "--format", "npz", "-o", tmp_path / "all")
    ltenet("data", "make", "human", "-n", 1, "--index", 1, "--format", "npz", "-o", tmp_path / "b")
    name = "human_s0_000001.npz"
    assert content(tmp_path / "all")[name] == content(tmp_path / "b")[name]


def test_templates_are_kept_apart(ltenet: Ltenet, tmp_path: Path) -> None:
    run = ltenet("data", "make", "animal", "-n", 8, "--format", "npz", "-o", tmp_path, "--json")
    assert run.code == 0
    shapes = open_set(tmp_path)
    origin = json.loads((tmp_path / "origin.json").read_text())
    templates = [entry["template"] for entry in origin["shapes"]]
    assert len(set(templates)) > 1
    other = next(k for k, name in enumerate(templates) if name != templates[0])
    across, inside = shapes.truth(0, other), shapes.truth(0, 0)
    assert across is not None
    assert len(across.source) == 0
    assert inside is not None
    assert np.array_equal(inside.target, np.arange(len(shapes.shape(0))))
    assert all(
        category.startswith(f"{template}/")
        for category, template in zip(shapes.categories, templates, strict=True)
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("human", "--count", 0), "at least 1"),
        (("human", "--count", -3), "at least 1"),
        (("human", "--seed", -1), "seed"),
        (("human", "--index", -1), "index"),
        (("human", "--template", "dog"), "template 'dog'"),
        (("animal", "--template", "human"), "dog, capsule"),
        (("animal", "--category", "unicorn"), "unicorn"),
        (("animal", "--template", "gorilla", "--category", "cat"), "template gorilla"),
    ],
)
def test_make_refuses_friendly(
    ltenet: Ltenet, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    run = ltenet("data", "make", *options, "-o", tmp_path / "made")
    assert (run.code, run.out) == (2, "")
    assert words in run.err
    assert not (tmp_path / "made").exists()


def test_make_into_a_file(ltenet: Ltenet, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    run = ltenet("data", "make", "human", "-n", 1, "-o", tmp_path / "file")
    assert run.code == 2
    assert (tmp_path / "file").read_text() == "mine"


# data sheet


def png_size(file: Path) -> tuple[int, int]:
    header = file.read_bytes()[:24]
    assert header.startswith(b"\x89PNG")
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")


def test_sheet_of_generated_shapes(ltenet: Ltenet, tmp_path: Path) -> None:
    file = tmp_path / "sheet.png"
    small = ("-n", 3, "--columns", 2, "--tile", 48, "--seed", 1)
    run = ltenet("data", "sheet", "animal", "-o", file, *small, "--json")
    assert run.code == 0
    assert (run.json["width"], run.json["height"]) == png_size(file)
    assert len(run.json["captions"]) == 3
    assert all(len(caption.split()) == 2 for caption in run.json["captions"])
    before = file.read_bytes()
    assert ltenet("data", "sheet", "animal", "-o", file, *small).code == 2
    run = ltenet("data", "sheet", "animal", "-o", file, *small, "--force")
    assert (run.code, run.out) == (0, f"{file}\n")
    assert file.read_bytes() == before


def test_sheet_of_a_folder(ltenet: Ltenet, tmp_path: Path, tetrahedron: Shape) -> None:
    (tmp_path / "set").mkdir()
    for name in "abc":
        io.save(tetrahedron, tmp_path / "set" / f"{name}.ply")
    file = tmp_path / "sheet.png"
    run = ltenet("data", "sheet", tmp_path / "set", "-n", 2, "-o", file, "--tile", 32, "--json")
    assert run.code == 0
    assert len(run.json["shapes"]) == 2
    assert set(run.json["shapes"]) < set("abc")


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("unicorns",), 2, "known set"),
        (("tosca",), 4, "LTENET_DATA"),
        (("tosca", "--data", "nowhere"), 4, "nowhere"),
        (("./nowhere",), 4, "nowhere"),
        (("human", "--count", 0), 2, "--count"),
        (("human", "--columns", 0), 2, "--columns"),
        (("human", "--category", "cat"), 2, "cat"),
        (("tosca", "--template", "dog"), 2, "template"),
    ],
)
def test_sheet_and_info_refuse_friendly(
    ltenet: Ltenet, tmp_path: Path, options: tuple[object, ...], code: int, words: str
) -> None:
    verbs = ["sheet"] if "--columns" in options else ["sheet", "info"]
    for verb in verbs:
        suffix = {"sheet": "png", "info": "json"}[verb]
        run = ltenet("data", verb, *options, "-o", tmp_path / f"out.{suffix}")
        assert (run.code, run.out) == (code, "")
        assert words in run.err
        assert not list(tmp_path.iterdir())


def test_sheet_of_a_benchmark(ltenet: Ltenet, benchmark_data: Path, tmp_path: Path) -> None:
    options = ("-o", tmp_path / "a.png", "--data", benchmark_data, "-n", 2, "--tile", 32)
    run = ltenet("data", "sheet", "tosca", "--category", "wolf", *options, "--json")
    assert run.code == 0
    assert all(name.startswith("wolf") for name in run.json["shapes"])
    run = ltenet("data", "sheet", "tosca", "--category", "cow", *options, "--force")
    assert run.code == 2
    assert "wolf" in run.err


# data info


def test_info(ltenet: Ltenet, tmp_path: Path) -> None:
    file = tmp_path / "human.json"
    run = ltenet("data", "info", "human", "-n", 2, "-o", file, "--json")
    assert run.code == 0
    assert json.loads(file.read_text()) == run.json
    assert run.json["measured"] == sum(run.json["poses"].values()) == 2
    assert run.json["categories"] == {"human": 2}
    thickness = run.json["measures"]["thickness_p50"]
    assert thickness["p5"] <= thickness["mean"] <= thickness["p95"]
    assert ltenet("data", "info", "human", "-n", 2, "-o", file).code == 2


def test_info_of_clouds_and_of_one_shape(ltenet: Ltenet, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(50, 3))
    (tmp_path / "set").mkdir()
    io.save(Shape(points), tmp_path / "set" / "cloud.ply")
    run = ltenet("data", "info", tmp_path / "set", "--json")
    assert run.code == 0
    assert "thickness_p50" not in run.json["measures"]
    assert run.json["spread"]["distances"] is None
    assert run.json["sizes"] == {"vertices": [50, 50], "faces": [0, 0]}
    run = ltenet("data", "info", tmp_path / "set")
    assert "axis_1" in run.out
