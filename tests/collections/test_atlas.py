"""Atlases: from a folder of shapes to a mean, modes, landmarks and groups."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ltenet.cli import main
from ltenet.collections.atlas import Atlas, Registration, _representative, build_atlas
from ltenet.collections.atlas_files import (
    analyse,
    compare_groups,
    project,
    read_groups,
    read_model,
    spread_to_all,
    write_atlas,
)
from ltenet.collections.plan import Specimen, plan_folder
from ltenet.collections.records import PairRecord
from ltenet.collections.shape_model import generalized_procrustes
from ltenet.collections.votes import Votes, _vote, forget_templates, read_templates
from ltenet.errors import InputError
from ltenet.io import load, save
from ltenet.io.landmarks import Landmarks, read_landmarks
from ltenet.matching.config import MatchConfig
from ltenet.shape import Shape
from tests.collections.conftest import person
from tests.collections.test_shape_model import family

OPTIONS = ["--model", "human", "--points", "300", "--orient", "none", "--refine", "none"]


def known_atlas(count: int = 12) -> tuple[Atlas, np.ndarray]:
    """An atlas of a linear family, as if registration were perfect, and the shapes."""
    *_, shapes = family(count, (0.1, 0.05))
    found = generalized_procrustes(shapes)
    faces = np.array([[0, 1, 2], [3, 4, 5]])
    registered = tuple(
        Registration(f"s{number}", points, 0.0, PairRecord("template", f"s{number}", "done"))
        for number, points in enumerate(shapes)
    )
    return Atlas(Shape(found.mean, faces), registered, (("bad", "got x"),), found), shapes


def test_files_of_an_atlas(tmp_path: Path) -> None:
    atlas, shapes = known_atlas()
    atlas = atlas._replace(notes=(("s1", "the same as s0"), ("a.docx", "no reader")))
    statistics = analyse(atlas)
    for path in write_atlas(atlas, statistics, tmp_path):
        assert path.exists()
    with np.load(tmp_path / "atlas.npz") as arrays:
        np.testing.assert_array_equal(arrays["registered"], shapes)
        assert list(arrays["names"][:2]) == ["s0", "s1"]
    assert load(tmp_path / "registered/s3.ply").faces.tolist() == [[0, 1, 2], [3, 4, 5]]
    figures = json.loads((tmp_path / "model.json").read_text())
    assert sum(figures["explained"]) == pytest.approx(1.0)
    with (tmp_path / "specimens.csv").open() as stream:
        rows = {row["name"]: row for row in csv.DictReader(stream)}
    assert rows["bad"]["error"] == "got x"
    assert rows["s1"]["note"] == "the same as s0"
    assert rows["a.docx"]["note"] == "no reader"
    mean, model = read_model(tmp_path)
    np.testing.assert_array_equal(mean.points, atlas.mean.points)
    np.testing.assert_array_equal(model.modes, statistics.model.modes)
    with pytest.raises(InputError, match=r"without atlas\.npz"):
        read_model(tmp_path / "registered")


def test_a_shape_of_the_family_is_projected_to_its_scores(tmp_path: Path) -> None:
    atlas, shapes = known_atlas()
    statistics = analyse(atlas)
    new = Registration("new", 3 * shapes[4] + 1, 0.0, PairRecord("mean", "new", "done"))
    odd = new._replace(name="odd", points=shapes[4] + 0.5 * np.roll(shapes[4], 1, axis=0))
    found, strange = project([new, odd], atlas.mean, statistics.model, tmp_path, scale=True)
    np.testing.assert_allclose(found.scores, statistics.model.scores[4], atol=2e-3)
    assert found.residual < 1e-3 < strange.residual
    assert (tmp_path / "added.csv").read_text().startswith("name,mahalanobis,residual,mode1")


def test_an_outlier_is_named() -> None:
    atlas, shapes = known_atlas()
    shapes = shapes.copy()
    shapes[7, :10] += 3.0
    found = generalized_procrustes(shapes)
    assert analyse(atlas._replace(procrustes=found)).outliers == ("s7",)


def test_landmarks_reach_every_specimen(tmp_path: Path) -> None:
    atlas, shapes = known_atlas()
    landmarks = Landmarks(("tip", "toe"), atlas.mean.points[[2, 4]])
    own = {f"s{number}": Shape(points) for number, points in enumerate(shapes)}
    spread = np.full(len(shapes[0]), 0.25)
    registered = tuple(one._replace(spread=spread) for one in atlas.registered)
    atlas = atlas._replace(registered=registered)
    table, tps, archive = spread_to_all(atlas, landmarks, own, tmp_path, suffix=".fcsv")
    carried = read_landmarks(tmp_path / "landmarks/s5.fcsv")
    np.testing.assert_allclose(carried.points, shapes[5, [2, 4]], atol=1e-3)
    assert len(table.read_text().splitlines()) == 1 + 2 * len(shapes)
    np.testing.assert_allclose(read_landmarks(tps).points, shapes[0, [2, 4]], atol=1e-3)
    assert tps.read_text().count("LM3=2\n") == tps.read_text().count("ID=s") == len(shapes)
    with np.load(archive) as arrays:
        np.testing.assert_allclose(arrays["landmarks"], shapes[:, [2, 4]], atol=1e-3)
        assert list(arrays["specimens"][:2]) == ["s0", "s1"]
        assert list(arrays["names"]) == ["tip", "toe"]
        np.testing.assert_allclose(arrays["errors"], 0.25, atol=1e-3)


def test_groups_of_an_atlas(tmp_path: Path) -> None:
    atlas, _ = known_atlas()
    table = tmp_path / "groups.csv"
    table.write_text("name,group\n" + "".join(f"s{n},{'ab'[n % 2]}\n" for n in range(12)))
    found = compare_groups(atlas, read_groups(table), tmp_path)
    assert found.names == ("a", "b")
    assert (tmp_path / "groups/mean-a.ply").is_file()
    assert len((tmp_path / "groups/vertices.csv").read_text().splitlines()) == 41
    with pytest.raises(InputError, match="names that no shape has"):
        compare_groups(atlas, {"x": "a"}, tmp_path)
    table.write_text("one\n")
    with pytest.raises(InputError, match="expected name and group"):
        read_groups(table)


@pytest.mark.slow
def test_a_folder_becomes_an_atlas(
    people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "atlas"
    arguments = ["atlas", str(people), "-o", str(out), *OPTIONS, "--rounds", "1", "--json"]
    assert main(arguments) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["specimens"] == 4
    assert figures["vertices"] == 300
    first = (out / "atlas.npz").read_bytes()
    assert main(arguments) == 0  # everything is kept, and gives the same
    capsys.readouterr()
    assert (out / "atlas.npz").read_bytes() == first
    new = tmp_path / "new"
    new.mkdir()
    save(person(9), new / "p9.ply")
    assert main(["atlas", str(new), "-o", str(out), *OPTIONS, "--add", "--json"]) == 0
    added = json.loads(capsys.readouterr().out)["added"]
    assert added["p9"]["mahalanobis"] > 0
    assert (out / "atlas.npz").read_bytes() == first


def _votes(places: list[np.ndarray], trust: list[float]) -> Votes:
    records = [PairRecord(f"t{n}", "s", "done", mean_probability=p) for n, p in enumerate(trust)]
    count = len(places[0])
    return Votes(np.stack(places), np.array([[p] * count for p in trust]), tuple(records))


def test_one_wrong_template_is_outvoted() -> None:
    places = person(3).points
    votes = _votes([places, places + 1.0, places], [0.8, 0.8, 0.7])
    joined, trust = votes.joined()
    np.testing.assert_allclose(joined, places, atol=1e-6)
    assert (trust > 0.7).all()
    expected = np.sqrt(0.8 * 3.0 / 2.3)  # one vote of three is off by the root of 3
    np.testing.assert_allclose(votes.spread(), expected, rtol=1e-6)
    assert votes.best.source == "t0"


def test_further_templates_represent_the_others() -> None:
    rng = np.random.default_rng(0)
    base, other = person(0).points, person(1).points
    votes = {
        f"{group}{number}": _votes([points + 0.01 * rng.standard_normal(points.shape)], [0.9])
        for group, points in (("a", base), ("b", other))
        for number in range(3)
    }
    assert (_representative(votes, ["a0"], scale=True) or "").startswith("b")
    assert (_representative(votes, ["b0"], scale=True) or "").startswith("a")
    assert _representative(votes, list(votes), scale=True) is None


def test_an_unrelated_shape_has_no_vote(tmp_path: Path) -> None:
    record = PairRecord("template-0", "cup", "done", verdict="unrelated", doubts="few points")
    with pytest.raises(InputError, match=r"cup: got a shape that seems unrelated .*few points"):
        _vote(person(0), Specimen("cup", tmp_path / "cup.ply"), tmp_path, record)


def test_templates_of_an_earlier_run_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "batch").mkdir()
    for number in (0, 1, 2, 10):
        save(person(number % 4), tmp_path / f"batch/template-{number}.npz")
    assert len(read_templates(tmp_path, person(5))) == 4
    assert read_templates(tmp_path, person(5, points=200))[0].points.shape == (200, 3)
    forget_templates(tmp_path, 2)
    left = sorted(path.name for path in (tmp_path / "batch").iterdir())
    assert left == ["template-0.npz", "template-1.npz"]


def test_too_few_shapes_are_refused(tmp_path: Path, quick: MatchConfig) -> None:
    folder = tmp_path / "shapes"
    folder.mkdir()
    for index in range(2):
        save(person(index), folder / f"p{index}.ply")
    (folder / "bad.ply").write_text("ply\n")
    plan = plan_folder(folder, "sequence")
    with pytest.raises(InputError, match="got 2 readable shapes, expected at least 3"):
        build_atlas(plan.specimens, tmp_path / "out", quick)


def test_options_of_an_atlas_that_contradict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["atlas", str(tmp_path), "-o", str(tmp_path / "out")]
    assert main([*arguments, "--add", "--groups", "g.csv"]) == 2
    assert main([*arguments, "--rounds", "-1"]) == 2
    assert "got --rounds -1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        {"modes": None},
        {"mean": None},
        {"center": np.zeros((2, 3))},
        {"modes": np.zeros((2, 4))},
        {"variances": np.array(["a", "b"])},
        {"scores": np.zeros(3)},
    ],
)
def test_a_damaged_atlas_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    arrays = {
        "mean": np.eye(4)[:, :3],
        "center": np.eye(4)[:, :3],
        "modes": np.ones((2, 4, 3)),
        "variances": np.array([2.0, 1.0]),
        "scores": np.ones((3, 2)),
    }
    np.savez(tmp_path / "atlas.npz", **arrays)
    assert len(read_model(tmp_path)[1].modes) == 2
    changed = {key: value for key, value in (arrays | change).items() if value is not None}
    np.savez(tmp_path / "atlas.npz", **changed)
    with pytest.raises(InputError, match=r"atlas\.npz: got"):
        read_model(tmp_path)


def test_groups_with_an_oversized_cell_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    path.write_text("name,group\na," + "x" * 200_000 + "\n")
    with pytest.raises(InputError, match="not CSV"):
        read_groups(path)
