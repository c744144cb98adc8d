"""`ltenet transfer` as people call it, and its files as other programs read them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
import trimesh

from ltenet import cli, io
from ltenet.correspondence import Correspondence
from ltenet.shape import Shape


@dataclass
class Run:
    code: int
    out: str
    err: str


class Call(Protocol):
    def __call__(self, what: str, output: str, *more: object) -> Run: ...


def ball(count: int, radius: float, **more: Any) -> Shape:
    """Return an even sphere: `count` rings of points, and triangles between them."""
    rings, around = count, 2 * count
    tilt = np.pi * (np.arange(rings) + 0.5) / rings
    turn = 2 * np.pi * np.arange(around) / around
    points = np.stack(
        [
            np.outer(np.sin(tilt), np.cos(turn)),
            np.outer(np.cos(tilt), np.ones(around)),
            -np.outer(np.sin(tilt), np.sin(turn)),
        ],
        axis=-1,
    ).reshape(-1, 3)
    i, j = np.meshgrid(np.arange(rings - 1), np.arange(around), indexing="ij")
    k = (j + 1) % around
    upper = np.stack([i * around + j, (i + 1) * around + j, (i + 1) * around + k], -1)
    lower = np.stack([i * around + j, (i + 1) * around + k, i * around + k], -1)
    faces = np.concatenate([upper.reshape(-1, 3), lower.reshape(-1, 3)])
    return Shape(points=radius * points, faces=faces, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two balls of 162 points; the second has another size and numbers its points backwards."""
    first = ball(9, 1.0)
    count = len(first)
    order = np.arange(count)[::-1]
    assert first.faces is not None
    second = Shape(points=2 * first.points[order], faces=count - 1 - first.faces)
    colors = np.stack([np.arange(count)] * 3, axis=1).astype(np.uint8)
    labels = np.arange(count) % 4
    colored = Shape(points=first.points, faces=first.faces, colors=colors, labels=labels)
    io.save(colored, tmp_path / "a.ply")
    io.save(second, tmp_path / "b.ply")
    Correspondence(order, count, source=colored, target=second).save(tmp_path / "map.npz")
    np.save(tmp_path / "height.npy", first.points[:, 1])
    return tmp_path


@pytest.fixture
def call(folder: Path, capfd: pytest.CaptureFixture[str]) -> Call:
    def run(what: str, output: str, *more: object) -> Run:
        files = [folder / name for name in ("a.ply", "b.ply", "map.npz")]
        arguments = ["transfer", *files, "-o", folder / output, "--what", what, *more]
        code = cli.main([str(argument) for argument in arguments])
        return Run(code, *capfd.readouterr())

    return run


def test_colors_and_labels(call: Call, folder: Path) -> None:
    run = call("colors", "colors.ply", "--json")
    assert (run.code, run.err) == (0, "")
    result = json.loads(run.out)
    assert (result["what"], result["matched"]) == ("colors", 1.0)
    assert result["files"] == [str(folder / "colors.ply")]
    header = (folder / "colors.ply").read_bytes().split(b"end_header")[0].decode()
    assert "property uchar red\nproperty uchar green\nproperty uchar blue\n" in header
    other: Any = trimesh.load(folder / "colors.ply", process=False)
    count = len(other.vertices)
    assert other.visual.vertex_colors[:, 0].tolist() == list(range(count))[::-1]
    assert call("labels", "labels.ply").code == 0
    header = (folder / "labels.ply").read_bytes().split(b"end_header")[0].decode()
    assert "property int label\n" in header
    labels = io.load(folder / "labels.ply").labels
    assert labels is not None
    assert labels.tolist() == (np.arange(count) % 4)[::-1].tolist()
    (folder / "own.txt").write_text("\n".join(str(i % 7) for i in range(count)))
    assert call("labels", "labels.csv", "--values", folder / "own.txt").code == 0
    written = (folder / "labels.csv").read_text().split()
    assert written == [str(i % 7) for i in range(count)][::-1]


def test_scalars_there_and_back(call: Call, folder: Path) -> None:
    assert call("scalars", "there.npy", "--values", folder / "height.npy").code == 0
    there = np.load(folder / "there.npy")
    np.testing.assert_allclose(there, io.load(folder / "b.ply").points[:, 1] / 2)
    back = ("--values", folder / "there.npy", "--reverse")
    assert call("scalars", "back.ply", *back).code == 0
    older = ("--values", folder / "there.npy", "--direction", "to-source")
    assert call("scalars", "older.ply", *older).code == 0
    assert (folder / "older.ply").read_bytes() == (folder / "back.ply").read_bytes()
    other: Any = trimesh.load(folder / "back.ply", process=False)
    quality = np.asarray(other.metadata["_ply_raw"]["vertex"]["data"]["quality"])
    np.testing.assert_allclose(quality, np.load(folder / "height.npy"), atol=1e-6)


def test_landmarks_keep_format_and_system(call: Call, folder: Path) -> None:
    north = io.load(folder / "a.ply").points[:2].mean(axis=0)
    point = {"label": "north", "position": (north * (-1, -1, 1)).tolist()}
    markups = {"markups": [{"coordinateSystem": "RAS", "controlPoints": [point]}]}
    (folder / "marks.mrk.json").write_text(json.dumps(markups))
    values = ("--values", folder / "marks.mrk.json", "--mesh-system", "LPS", "--json")
    run = call("landmarks", "there.mrk.json", *values)
    assert run.code == 0
    assert json.loads(run.out)["lost"] == []
    written = json.loads((folder / "there.mrk.json").read_text())["markups"][0]
    assert written["coordinateSystem"] == "RAS"
    place = np.array(written["controlPoints"][0]["position"]) * (-1, -1, 1)
    np.testing.assert_allclose(place, 2 * north, atol=0.01)


@pytest.mark.slow
def test_deformation(call: Call, folder: Path) -> None:
    run = call("deformation", "bent.ply", "--json")
    assert run.code == 0
    result = json.loads(run.out)
    assert result["folded_faces"] < 0.01
    assert result["mean_distance"] < 0.005
    bent, first = io.load(folder / "bent.ply"), io.load(folder / "a.ply")
    assert np.array_equal(bent.faces, first.faces)  # type: ignore[arg-type]
    np.testing.assert_allclose(np.linalg.norm(bent.points, axis=1), 2, atol=0.05)
    people = call("deformation", "again.ply").out
    assert "% of the diameter" in people


def test_texture(call: Call, folder: Path) -> None:
    pytest.importorskip("PIL")
    from ltenet.io.textures import TexturedMesh, read_textured, write_textured

    for name, color in (("a", (10, 200, 30)), ("b", (0, 0, 0))):
        shape = io.load(folder / f"{name}.ply")
        assert shape.faces is not None
        uv = 0.5 + 0.2 * shape.points[:, :2]
        picture = np.full((16, 16, 3), color, np.uint8)
        painted = np.zeros(len(shape.faces), int)
        mesh = TexturedMesh(shape, uv, shape.faces, (picture,), painted)
        write_textured(mesh, folder / f"{name}.obj")
    files = [folder / name for name in ("a.obj", "b.obj", "map.npz")]
    for output in ("points.ply", "picture.obj"):
        arguments = ["transfer", *files, "-o", folder / output, "--what", "texture"]
        assert cli.main([str(argument) for argument in arguments]) == 0
    colors = io.load(folder / "points.ply").colors
    assert colors is not None
    assert (colors == (10, 200, 30)).all()
    result = read_textured(folder / "picture.obj")
    assert result is not None
    assert result.pictures[0].shape == (16, 16, 3)
    assert (result.pictures[0] == (10, 200, 30)).all()


def test_texture_without_coordinates_says_that_points_get_colours(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("PIL")
    from ltenet.io.textures import TexturedMesh, write_textured

    shape = io.load(folder / "a.ply")
    assert shape.faces is not None
    picture = np.full((4, 4, 3), (10, 200, 30), np.uint8)
    uv = 0.5 + 0.2 * shape.points[:, :2]
    mesh = TexturedMesh(shape, uv, shape.faces, (picture,), np.zeros(len(shape.faces), int))
    write_textured(mesh, folder / "a.obj")
    files = [folder / name for name in ("a.obj", "b.ply", "map.npz")]
    arguments = ["transfer", *files, "-o", folder / "points.obj", "--what", "texture", "--json"]
    assert cli.main([str(argument) for argument in arguments]) == 0
    out, err = capfd.readouterr()
    assert "points get colours" in err
    assert json.loads(out)["became"] == "colours of points"


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".txt", ".map"])
def test_the_map_may_still_come_first(
    folder: Path, capfd: pytest.CaptureFixture[str], suffix: str
) -> None:
    given = Correspondence.load(folder / "map.npz", target_size=162)
    given.save(folder / f"other{suffix}")
    shapes = [folder / "a.ply", folder / "b.ply"]
    for output, files in (
        ("new.ply", [*shapes, folder / f"other{suffix}"]),
        ("old.ply", [folder / f"other{suffix}", *shapes]),
    ):
        arguments = ["transfer", *files, "-o", folder / output, "--what", "colors"]
        assert cli.main([str(argument) for argument in arguments]) == 0, capfd.readouterr().err
    assert (folder / "new.ply").read_bytes() == (folder / "old.ply").read_bytes()


def test_scalars_without_a_partner_are_filled_from_neighbours(call: Call, folder: Path) -> None:
    given = Correspondence.load(folder / "map.npz")
    lost = np.arange(40)  # two rings and a bit: farther than the share of the diameter
    indices = np.where(np.isin(np.arange(len(given)), lost), -1, given.indices)
    Correspondence(indices, len(given)).save(folder / "map.npz", force=True)
    weights = np.stack([np.linspace(0, 1, len(given)), np.linspace(1, 0, len(given))], axis=1)
    np.save(folder / "skin.npy", weights)
    run = call("scalars", "skin_there.npy", "--values", folder / "skin.npy", "--json")
    assert json.loads(run.out)["filled_from_neighbors"] > 0
    there = np.load(folder / "skin_there.npy")
    np.testing.assert_allclose(there.sum(axis=1), 1.0)
    assert "from_neighbors" in call("scalars", "b.npy", "--values", folder / "skin.npy").out
    assert call("scalars", "c.npy", "--values", folder / "skin.npy", "--fill", 0).code == 0
    assert np.isnan(np.load(folder / "c.npy")).any()


def test_filled_points_are_counted_and_marked(call: Call, folder: Path) -> None:
    """The map leaves out a cap of the first ball; the second one is carried back onto it."""
    given = Correspondence.load(folder / "map.npz")
    lost = np.arange(len(given)) < 40
    indices = np.where(lost, -1, given.indices)
    Correspondence(indices, len(given)).save(folder / "map.npz", force=True)
    shape = io.load(folder / "b.ply")
    colors = np.full((len(shape), 3), 77, np.uint8)
    labels = np.arange(len(shape)) % 3
    io.save(replace(shape, colors=colors, labels=labels), folder / "b.ply", force=True)
    run = call("colors", "back.ply", "--reverse", "--json", "--filled", folder / "marks.npy")
    assert json.loads(run.out)["filled"] == 40
    np.testing.assert_array_equal(np.load(folder / "marks.npy"), lost)
    back = io.load(folder / "back.ply")
    own = io.load(folder / "a.ply")
    assert back.colors is not None
    assert own.colors is not None
    np.testing.assert_array_equal(back.colors[lost], own.colors[lost])
    assert (back.colors[~lost] == 77).all()
    data: Any = trimesh.load(folder / "back.ply", process=False).metadata["_ply_raw"]
    np.testing.assert_array_equal(np.asarray(data["vertex"]["data"]["filled"]).ravel(), lost)
    run = call("labels", "back.txt", "--reverse")
    assert "filled   40 of the points" in run.out
    assert "cannot mark which points are filled; try --filled" in run.err
    assert "none" in call("colors", "whole.ply", "--reverse", "--fill", 0).out


@pytest.mark.slow
def test_a_shape_wrapped_onto_a_part_is_marked(call: Call, folder: Path) -> None:
    """Half of the second ball is cut off: the first one keeps its form there."""
    whole = io.load(folder / "b.ply")
    kept = np.flatnonzero(whole.points[:, 1] > -0.2)
    number = np.full(len(whole), -1)
    number[kept] = np.arange(len(kept))
    assert whole.faces is not None
    faces = number[whole.faces]
    io.save(
        Shape(whole.points[kept], faces[(faces >= 0).all(axis=1)]), folder / "b.ply", force=True
    )
    given = Correspondence.load(folder / "map.npz")
    Correspondence(number[given.indices], len(kept)).save(folder / "map.npz", force=True)
    run = call("deformation", "bent.npz", "--json")
    figures = json.loads(run.out)
    assert 0.2 * len(whole) < figures["filled"] < 0.5 * len(whole)
    assert figures["mean_distance"] < 0.005  # of what is not filled
    stored = np.load(folder / "bent.npz")
    assert stored["filled"].sum() == figures["filled"]
    np.testing.assert_allclose(np.linalg.norm(stored["points"], axis=1), 2, atol=0.25)


@pytest.mark.parametrize(
    ("what", "output", "more", "code", "words"),
    [
        ("scalars", "a.npy", (), 2, "without --values"),
        ("texture", "c.ply", ("--filled", "f.npy"), 2, "expected what can be filled"),
        ("colors", "c.ply", ("--filled", "f.ply"), 2, "got the suffix '.ply'"),
        ("colors", "a.ply", (), 2, "exists"),
        ("colors", "c.npy", (), 2, "got the suffix '.npy'"),
        ("landmarks", "c.ply", ("--values", "height.npy"), 2, "got the suffix '.ply'"),
        ("colors", "c.ply", ("--values", "height.npy"), 2, "come with the shape"),
        ("colors", "c.ply", ("--direction", "to-source"), 3, "no colours"),
        ("texture", "c.ply", (), 3, "without a picture"),
        ("texture", "c.glb", (), 2, "without texture coordinates"),
        ("deformation", "c.glb", (), 2, "without a texture"),
        ("scalars", "c.npy", ("--values", "short.npy"), 3, "one for each of the 162 points"),
    ],
)
def test_wrong_calls_leave_nothing_behind(
    call: Call, folder: Path, what: str, output: str, more: Any, code: int, words: str
) -> None:
    np.save(folder / "short.npy", np.zeros(5))
    before = sorted(folder.iterdir())
    given = [folder / str(word) if str(word).endswith(".npy") else word for word in more]
    run = call(what, output, *given)
    assert (run.code, run.out) == (code, "")
    assert words in run.err
    assert sorted(folder.iterdir()) == before


def test_a_map_of_something_else(call: Call, folder: Path) -> None:
    Correspondence(np.arange(3), 3).save(folder / "map.npz", force=True)
    run = call("colors", "c.ply")
    assert run.code == 3
    assert "map.npz" in run.err
    assert "the map belongs to" in run.err
