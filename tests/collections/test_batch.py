"""Batches: each shape prepared once, resumable, sharded, and unharmed by bad files."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ltenet.cli import main
from ltenet.cli.batch import pace_line
from ltenet.collections import store as store_module
from ltenet.collections.batch import _read, merge, run_batch
from ltenet.collections.plan import Plan, Shard, parse_shard, plan_folder, plan_table
from ltenet.collections.records import Journal, PairRecord, ShapeRecord, Timed, read_journals
from ltenet.collections.store import Store
from ltenet.collections.unusual import with_notes
from ltenet.collections.work import store_of
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.io import load, save
from ltenet.matching.config import MatchConfig
from ltenet.matching.keeping import read_prepared, write_prepared
from ltenet.matching.matcher import Matcher, match
from ltenet.shape import Shape
from tests.collections.conftest import person

OPTIONS = ["--model", "human", "--points", "300", "--orient", "none", "--refine", "none"]


def contents(folder: Path) -> dict[str, bytes]:
    """What two runs must agree on: maps and tables without times."""
    files = [*folder.glob("maps/*.npz"), *folder.glob("*.csv"), *folder.glob("*.json")]
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files
        if not path.name.startswith("times")
    }


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_plans_name_and_order_what_they_find(tmp_path: Path) -> None:
    for name in ("s10.ply", "s2.ply", "s2.obj", ".hidden.ply", "photo.jpg"):
        (tmp_path / name).write_text("x")
    np.savez(tmp_path / "template_human.npz", faces=[[0, 1, 2]])  # as `ltenet data make` writes it
    plan = plan_folder(tmp_path, "sequence")
    assert [one.name for one in plan.specimens] == ["s2.obj", "s2.ply", "s10"]
    assert plan.pairs == ((0, 1), (1, 2))
    assert [path.name for path in plan.left_out] == ["photo.jpg", "template_human.npz"]
    assert len(plan_folder(tmp_path, "all-pairs").pairs) == 3
    to = plan_folder(tmp_path, "to", templates=[tmp_path / "s10.ply"])
    assert to.pairs == ((0, 2), (1, 2))
    assert to.templates == (2,)
    with pytest.raises(InputError, match=r"got 0 shapes, expected enough for a pair; try"):
        plan_folder(_made(tmp_path / "empty"), "all-pairs")
    with pytest.raises(InputError, match="no such file, expected a template"):
        plan_folder(tmp_path, "to", templates=[tmp_path / "none.ply"])


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_tables_of_pairs(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("source,target\na.ply,b.ply\nb.ply,a.ply\na.ply,b.ply\n")
    plan = plan_table(table)
    assert [one.name for one in plan.specimens] == ["a", "b"]
    assert plan.pairs == ((0, 1), (1, 0))
    table.write_text("a.ply\n")
    with pytest.raises(InputError, match="got 1 columns in row 1, expected two paths"):
        plan_table(table)
    table.write_text("source,target\n")
    with pytest.raises(InputError, match="got no pairs"):
        plan_table(table)


def test_shards_divide_the_pairs() -> None:
    pairs = [(0, number) for number in range(11)]
    parts = [Shard(number, 4).of(pairs) for number in range(1, 5)]
    assert [pair for part in parts for pair in part] == pairs
    assert {len(part) for part in parts} == {2, 3}
    for wrong in ("0/2", "3/2", "1", "a/b"):
        with pytest.raises(UsageError, match="expected I/N"):
            parse_shard(wrong)


@pytest.mark.slow
def test_a_prepared_shape_on_disk_gives_the_same_map(tmp_path: Path) -> None:
    """Orientations, frames, several parts and the graph of a mesh survive the file, bit for bit."""
    matcher = Matcher(MatchConfig(points=1500, refine="none"))
    shapes = person(0, points=None), person(1, points=1200)
    prepared = [matcher.prepare(shape) for shape in shapes]
    kept = []
    for number, one in enumerate(prepared):
        write_prepared(tmp_path / f"{number}.npz", one, matcher.networks)
        kept.append(read_prepared(tmp_path / f"{number}.npz", matcher.networks, name="kept"))
    matcher.networks[0].model.train()  # a network that is asked again would answer otherwise
    again = matcher.match_prepared(*kept)
    matcher.networks[0].model.eval()
    direct = matcher.match_prepared(*prepared)
    np.testing.assert_array_equal(again.indices, direct.indices)
    np.testing.assert_array_equal(again.scores, direct.scores)
    np.testing.assert_array_equal(again.weights, direct.weights)
    assert dict(again.details) == dict(direct.details)
    assert [way.frame.certainty for way in kept[0][0]] == [
        way.frame.certainty for way in prepared[0][0]
    ]


def test_a_batch_equals_single_matches(people: Path, tmp_path: Path, quick: MatchConfig) -> None:
    plan = plan_folder(people, "all-pairs")
    outcome = run_batch(plan, tmp_path / "out", quick)
    assert outcome.computed == len(outcome.pairs) == 6
    assert {record.state for record in outcome.pairs} == {"done"}
    alone = match(people / "p0.ply", people / "p3.ply", config=quick)
    together = Correspondence.load(tmp_path / "out/maps/p0__p3.npz")
    np.testing.assert_array_equal(together.indices, alone.indices)
    np.testing.assert_array_equal(together.scores, alone.scores)


def test_a_batch_matches_mirror_images(people: Path, tmp_path: Path) -> None:
    config = MatchConfig(model="human", points=300, orient="none", refine="none", mirror=True)
    run_batch(plan_folder(people, "sequence"), tmp_path / "out", config)
    alone = match(people / "p0.ply", people / "p1.ply", config=config)
    together = Correspondence.load(tmp_path / "out/maps/p0__p1.npz")
    np.testing.assert_array_equal(together.indices, alone.indices)


def test_shapes_are_embedded_once(
    people: Path, tmp_path: Path, quick: MatchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    real = store_module.load
    monkeypatch.setattr(store_module, "load", lambda path: read.append(path) or real(path))
    run_batch(plan_folder(people, "all-pairs"), tmp_path / "out", quick)
    assert sorted(path.name for path in read) == ["p0.ply", "p1.ply", "p2.ply", "p3.ply"]
    again = run_batch(plan_folder(people, "all-pairs"), tmp_path / "out", quick, resume=True)
    assert again.computed == 0
    assert len(read) == 4


class KilledError(Exception):
    pass


@pytest.mark.slow
def test_a_batch_that_is_stopped_anywhere_ends_the_same(
    people: Path, tmp_path: Path, quick: MatchConfig
) -> None:
    plan = plan_folder(people, "all-pairs")
    run_batch(plan, tmp_path / "whole", quick)
    out, counted = tmp_path / "out", 0
    for stop in range(4):

        def tell(what: str, done: int, before: int, total: int, stop: int = stop) -> None:
            if what == "pairs" and done - before > stop:
                raise KilledError

        try:
            counted += run_batch(plan, out, quick, resume=True, tell=tell).computed
        except KilledError:
            counted += stop + 1
    # As if killed after a map was written and before its line was: both halves of the line.
    journal = next(out.glob("journal/*.jsonl"))
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:20])
    before = {path: path.stat().st_mtime_ns for path in out.glob("maps/*.npz")}
    run_batch(plan, out, quick, resume=True)
    assert contents(out) == contents(tmp_path / "whole")
    assert counted == 6
    assert before == {path: path.stat().st_mtime_ns for path in out.glob("maps/*.npz")}


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_half_done(people: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ltenet", "batch", str(people), "--all-pairs", *OPTIONS]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([*command, "-o", str(tmp_path / "out")], env=environment)
    deadline = time.monotonic() + 120
    while not list((tmp_path / "out").glob("maps/*.npz")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for out, more in ((tmp_path / "out", ["--resume"]), (tmp_path / "whole", [])):
        subprocess.run([*command, "-o", str(out), *more], env=environment, check=True)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_shards_merge_to_the_whole(people: Path, tmp_path: Path, quick: MatchConfig) -> None:
    plan = plan_folder(people, "all-pairs")
    run_batch(plan, tmp_path / "whole", quick)
    out = tmp_path / "out"
    run_batch(plan, out, quick, shard=Shard(1, 2))
    early = merge(plan, out, quick)
    assert sorted(record.state for record in early.pairs) == ["done"] * 3 + ["missing"] * 3
    run_batch(plan, out, quick, shard=Shard(2, 2))
    assert {record.state for record in merge(plan, out, quick).pairs} == {"done"}
    expected = contents(tmp_path / "whole")
    assert {name: data for name, data in contents(out).items() if "-of-" not in name} == expected
    with pytest.raises(UsageError, match=r"without batch\.json, expected that of a batch"):
        merge(plan, tmp_path, quick)


@pytest.mark.slow
def test_an_array_of_processes_and_a_merge(people: Path, tmp_path: Path) -> None:
    """The loop of docs/scaling.md: what a Slurm array does, on one machine."""
    command = [sys.executable, "-m", "ltenet", "batch", str(people), "--all-pairs", *OPTIONS]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    out = [*command, "-o", str(tmp_path / "out"), "--threads", "1"]
    shards = [subprocess.Popen([*out, "--shard", f"{i}/3"], env=environment) for i in (1, 2, 3)]
    assert [shard.wait(timeout=300) for shard in shards] == [0, 0, 0]
    merged = subprocess.run([*out[:-2], "--merge", "--json"], env=environment, capture_output=True)
    assert merged.returncode == 0
    assert json.loads(merged.stdout)["states"] == {"done": 6}
    subprocess.run([*command, "-o", str(tmp_path / "whole")], env=environment, check=True)
    found = {n: data for n, data in contents(tmp_path / "out").items() if "-of-" not in n}
    assert found == contents(tmp_path / "whole")


def test_bad_files_get_a_line_and_the_rest_goes_on(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "shapes"
    shutil.copytree(people, folder)
    (folder / "broken.ply").write_bytes(b"ply\nthis is no header\n")
    (folder / "readme.md").write_text("not a shape")
    save(Shape(np.random.default_rng(0).random((20, 3))), folder / "tiny.ply")
    shutil.copy(folder / "p1.ply", folder / "p9.ply")
    save(Shape(1000 * load(folder / "p2.ply").points + 5), folder / "q.ply")
    arguments = ["batch", str(folder), "-o", str(tmp_path / "out"), *OPTIONS, "--json"]
    assert main([*arguments, "--to", str(folder / "p0.ply")]) == 5
    captured = capsys.readouterr()
    figures = json.loads(captured.out)
    assert figures["states"] == {"done": 5, "failed": 2}
    assert {one["source"] for one in figures["failures"]} == {"broken", "tiny"}
    assert "got 2 of 7 pairs without a map" in captured.err
    shapes = {row["name"]: row for row in rows(tmp_path / "out/shapes.csv")}
    assert "another unit?" in shapes["q"]["note"]
    assert shapes["p9"]["note"] == "the same as p1"
    assert "expected at least 50" in shapes["tiny"]["error"]
    assert "broken.ply" in shapes["broken"]["error"]
    assert shapes["readme.md"]["state"] == "left out"
    manifest = {row["source"]: row for row in rows(tmp_path / "out/manifest.csv")}
    assert manifest["tiny"]["state"] == "failed"
    assert manifest["q"]["state"] == "done"
    # What failed for its input fails again without work; the exit code stays.
    assert main([*arguments, "--to", str(folder / "p0.ply"), "--resume"]) == 5
    assert json.loads(capsys.readouterr().out)["computed"] == 0


def test_unusual_shapes_are_noted() -> None:
    def ready(name: str, kind: str, turned: float) -> ShapeRecord:
        return ShapeRecord(name, f"{name}.ply", "ready", radius=1.0, kind=kind, turned=turned)

    records = [ready(name, "human", 5.0) for name in "abc"]
    records += [ready("dog", "animal", 3.0), ready("lying", "human", 90.0)]
    notes = {record.name: record.note for record in with_notes(records, list("12345"))}
    assert notes["dog"] == "looks like an animal, most others like a person"
    assert notes["lying"] == "turned by 90 degrees, unlike most others"
    assert notes["a"] == ""
    few = with_notes(records[:3], list("123"))
    assert [record.note for record in few] == ["one of only 3 shapes"] * 3


def test_other_options_need_another_folder(
    people: Path, tmp_path: Path, quick: MatchConfig
) -> None:
    plan, out = plan_folder(people, "sequence"), tmp_path / "out"
    run_batch(plan, out, quick)
    with pytest.raises(UsageError, match=r"got a batch that is there already.*--resume"):
        run_batch(plan, out, quick)
    other = MatchConfig(model="human", points=200, orient="none", refine="none")
    with pytest.raises(UsageError, match="got a batch of other options"):
        run_batch(plan, out, other, resume=True)
    assert run_batch(plan, out, other, force=True).computed == 3
    details = Correspondence.load(out / "maps/p0__p1.npz").details
    assert details["points"] == 200


def test_a_changed_file_is_matched_again(people: Path, tmp_path: Path, quick: MatchConfig) -> None:
    folder = tmp_path / "shapes"
    shutil.copytree(people, folder)
    plan = plan_folder(folder, "sequence")
    run_batch(plan, tmp_path / "out", quick)
    save(person(7), folder / "p3.ply", force=True)
    store_of.cache_clear()  # a new process hashes files anew
    assert run_batch(plan, tmp_path / "out", quick, resume=True).computed == 1


@pytest.mark.slow
def test_crashes_are_tried_again(
    people: Path, tmp_path: Path, quick: MatchConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan: Plan = plan_folder(people, "sequence")
    with monkeypatch.context() as patched:

        def crash(*_: object) -> None:
            raise RuntimeError("no memory left")

        patched.setattr(Matcher, "match_prepared", crash)
        outcome = run_batch(plan, tmp_path / "out", quick)
    assert {record.state for record in outcome.pairs} == {"crashed"}
    assert outcome.pairs[0].error == "unexpected RuntimeError: no memory left"
    assert run_batch(plan, tmp_path / "out", quick, resume=True).computed == 3


def test_a_damaged_prepared_shape_is_made_again(
    people: Path, tmp_path: Path, quick: MatchConfig
) -> None:
    plan = plan_folder(people, "sequence")
    store = Store(tmp_path, quick)
    path = store.prepare(plan.specimens[0])
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2])
    assert store.prepare(plan.specimens[0]).read_bytes() == good
    with np.load(path) as arrays:  # whole as an archive, and yet without what it needs
        np.savez(path, **{key: value for key, value in arrays.items() if key != "parts"})
    store.prepared(plan.specimens[0])
    assert path.read_bytes() == good


@pytest.mark.parametrize(
    "line",
    [
        b'{"source": ["a"], "target": "b", "state": "done", "seconds": 1}',
        b'{"source": "a", "target": "b", "state": "done", "seconds": 1' + b"0" * 400 + b"}",
        b"[" * 100_000,
        b'{"seconds": null}',
    ],
)
def test_lines_that_are_no_records_are_passed_over(tmp_path: Path, line: bytes) -> None:
    journal = Journal(tmp_path, Shard())
    journal.append(Timed(PairRecord("a", "b", "done"), 1.0))
    journal.close()
    path = next(tmp_path.glob("*/*.jsonl"))
    path.write_bytes(line + b"\n" + path.read_bytes())
    assert list(read_journals(tmp_path)) == [("a", "b")]


def test_a_damaged_description_is_no_batch(tmp_path: Path) -> None:
    for content in (b"[" * 100_000, b"\xff", b"", b"9" * 5000):
        (tmp_path / "batch.json").write_bytes(content)
        assert _read(tmp_path / "batch.json") is None


def test_journals_keep_the_last_word(tmp_path: Path) -> None:
    journal = Journal(tmp_path, Shard())
    for state in ("crashed", "done", "crashed"):
        journal.append(Timed(PairRecord("a", "b", state), 1.0))
    journal.close()
    assert read_journals(tmp_path)["a", "b"].record.state == "done"


def test_progress_has_rate_and_time_left() -> None:
    assert pace_line("pairs", 1, 100, 0, 0.0) == "1 of 100 pairs"
    assert pace_line("pairs", 21, 100, 20, 10.0) == "21 of 100 pairs, 2 a second, 0 min 40 s left"
    assert pace_line("pairs", 2, 7202, 1, 1.0).endswith("2 h 0 min left")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "got a folder without a choice of pairs"),
        (["--all-pairs", "--sequence"], "got more than one choice of pairs"),
        (["--all-pairs", "--shard", "1/2", "--workers", "2"], "more than one way to share"),
        (["--all-pairs", "--merge", "--workers", "2"], "got --merge with options of work"),
        (["--all-pairs", "--landmarks", "a.csv"], "got 1 files of landmarks for 0 templates"),
        (["--all-pairs", "--workers", "-1"], "expected at least 0"),
    ],
)
def test_options_that_contradict(
    arguments: list[str],
    message: str,
    people: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["batch", str(people), "-o", str(tmp_path / "out"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (".,b.ply", "expected two paths"),
        ("a.ply," + "x" * 200_000, "not CSV"),
        ("a.ply", "1 columns"),
    ],
)
def test_hostile_tables_of_pairs(tmp_path: Path, row: str, words: str) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(f"source,target\n{row}\n")
    with pytest.raises(InputError, match=words):
        plan_table(table)


def test_names_of_many_digits_are_sorted(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text(f"a{'9' * 5000}.ply,a2.ply\na10.ply,a2.ply\n")
    assert [one.path.name for one in plan_table(table).specimens][:2] == ["a2.ply", "a10.ply"]
