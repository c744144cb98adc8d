"""Pictures on meshes: read, written, looked up, and painted onto another mesh."""

from __future__ import annotations

import builtins
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ltenet import io
from ltenet.correspondence import Correspondence
from ltenet.drawing.rendering import Image, write_png
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.io.pictures import looked_up
from ltenet.io.textures import TexturedMesh, read_textured, write_textured
from ltenet.shape import Shape
from ltenet.transferring.baking import painted_mesh
from ltenet.transferring.transfer import transfer

pytest.importorskip("PIL", reason="textures need Pillow: pip install 'ltenet[texture]'")


def sheet(side: int, picture: Image | None, *, flipped: bool = False) -> TexturedMesh:
    """Return a unit square in x and y; the picture lies on it upright, or mirrored."""
    x, y = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side), indexing="ij")
    points = np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1)
    faces = np.array(
        [(c, c + side, c + side + 1) for c in corner] + [(c, c + side + 1, c + 1) for c in corner]
    )
    uv = points[:, :2].copy()
    uv[:, 0] = 1 - uv[:, 0] if flipped else uv[:, 0]
    pictures = () if picture is None else (picture,)
    painted = np.full(len(faces), len(pictures) - 1)
    return TexturedMesh(
        Shape(points=points, faces=faces, name="sheet"), uv, faces, pictures, painted
    )


def ramp(side: int) -> Image:
    """Red grows to the right, green upwards; blue is 40."""
    steps = (np.arange(side) + 0.5) / side * 255
    picture = np.empty((side, side, 3))
    picture[..., 0], picture[..., 1], picture[..., 2] = steps[None], steps[::-1, None], 40
    return np.rint(picture).astype(np.uint8)


def test_pixels_are_looked_up_between_their_centres() -> None:
    picture = np.zeros((2, 2, 3), np.uint8)
    picture[0, 0], picture[0, 1], picture[1, 0], picture[1, 1] = 0, 100, 40, 200  # top row first
    uv = np.array([[0.25, 0.75], [0.75, 0.75], [0.25, 0.25], [0.5, 0.5], [1.25, 0.75]])
    assert looked_up(picture, uv)[:, 0].tolist() == [0, 100, 40, 85, 0]


def test_obj_with_polygons_seams_and_two_materials(tmp_path: Path) -> None:
    write_png(tmp_path / "red one.png", np.full((2, 2, 3), (200, 0, 0), np.uint8))
    write_png(tmp_path / "blue.png", np.full((2, 2, 3), (0, 0, 200), np.uint8))
    (tmp_path / "m.mtl").write_text(
        "newmtl red\nmap_Kd red one.png\nnewmtl blue\nmap_Kd -s 1 1 1 blue.png\nnewmtl plain\n"
    )
    path = tmp_path / "m.obj"
    path.write_text(
        "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\n"
        "vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
        "usemtl red\nf 1/1 2/2 3/3 4/4\nusemtl blue\nf 1/-4/1 2/-3/1 5/-2/1\n"
        "usemtl plain\nf 2/2 5/3 6/1\nf 2 3 6\n"
    )
    mesh = read_textured(path)
    assert mesh is not None
    assert mesh.corners.tolist()[:3] == [[0, 1, 2], [0, 2, 3], [0, 1, 2]]
    assert mesh.painted.tolist() == [0, 0, 1, -1, -1]
    colors = mesh.baked().colors
    assert colors is not None
    # Point 0 is in two red triangles and a blue one, 2 and 3 in red ones only, 5 in none.
    assert colors[[0, 2, 4, 5]].tolist() == [[133, 0, 67], [200, 0, 0], [0, 0, 200], [128] * 3]
    assert np.array_equal(mesh.shape.faces, io.load(path).faces)  # type: ignore[arg-type]


def test_no_texture_or_a_part_of_it_missing(
    tmp_path: Path, tetrahedron: Shape, caplog: pytest.LogCaptureFixture
) -> None:
    io.save(tetrahedron, tmp_path / "plain.obj")
    assert read_textured(tmp_path / "plain.obj") is None
    assert read_textured(tmp_path / "plain.ply") is None
    text = "mtllib gone.mtl\nv 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nusemtl a\nf 1/1 2/1 3/1\n"
    (tmp_path / "gone.obj").write_text(text)
    mesh = read_textured(tmp_path / "gone.obj")
    assert mesh is not None
    assert mesh.pictures == ()
    assert "no 'gone.mtl' in its folder" in caplog.text
    (tmp_path / "gone.mtl").write_text("newmtl a\nmap_Kd gone.png\n")
    read_textured(tmp_path / "gone.obj")
    assert "no picture 'gone.png'" in caplog.text
    (tmp_path / "gone.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"gone\.png: got a picture that cannot be read"):
        read_textured(tmp_path / "gone.obj")
    for wrong, words in (("vt 0 0", "vt x"), ("1/1 2/1", "1/9 2/1"), ("1/1 2/1", "1/-9 2/1")):
        (tmp_path / "bad.obj").write_text(text.replace(wrong, words))
        with pytest.raises(InputError, match=r"bad\.obj"):
            read_textured(tmp_path / "bad.obj")


@pytest.mark.parametrize("suffix", [".obj", ".glb"])
def test_a_textured_mesh_survives_a_file(tmp_path: Path, suffix: str) -> None:
    mesh = sheet(4, ramp(16))
    files = write_textured(mesh, tmp_path / f"m{suffix}")
    assert [file.name for file in files] == (
        ["m.obj", "m.mtl", "m.png"] if suffix == ".obj" else ["m.glb"]
    )
    again = read_textured(tmp_path / f"m{suffix}")
    assert again is not None
    np.testing.assert_allclose(again.shape.points, mesh.shape.points, atol=1e-6)
    assert np.array_equal(again.pictures[0], mesh.pictures[0])
    np.testing.assert_allclose(
        again.uv[again.corners], mesh.uv[mesh.corners], atol=1e-6
    )  # also: which way is up
    with pytest.raises(UsageError, match="exists"):
        write_textured(mesh, tmp_path / f"m{suffix}")
    with pytest.raises(UsageError, match="which hold textures"):
        write_textured(mesh, tmp_path / "m.ply")


def test_another_program_reads_the_obj(tmp_path: Path) -> None:
    import trimesh

    write_textured(sheet(4, ramp(16)), tmp_path / "m.obj")
    other: Any = trimesh.load(tmp_path / "m.obj", process=False)
    assert other.visual.kind == "texture"
    assert np.asarray(other.visual.material.image.convert("RGB")).tolist() == ramp(16).tolist()
    np.testing.assert_allclose(other.visual.uv, other.vertices[:, :2], atol=1e-6)


def test_a_mesh_without_places_gets_colours_of_its_points() -> None:
    giver, receiver = sheet(6, ramp(64)), sheet(11, None).shape
    # The finer sheet's points lie between those of the coarser one: partners by their soft weights.
    steps = np.linspace(0, 5, 11)
    low = np.minimum(np.floor(steps).astype(int), 4)
    share = steps - low
    neighbors, weights = [], []
    for i, a in zip(low, share, strict=True):
        for j, b in zip(low, share, strict=True):
            neighbors.append([6 * i + j, 6 * i + j + 1, 6 * i + j + 6, 6 * i + j + 7])
            weights.append([(1 - a) * (1 - b), (1 - a) * b, a * (1 - b), a * b])
    indices = np.array(neighbors)[np.arange(121), np.argmax(weights, axis=1)]
    indices[0] = -1
    corr = Correspondence(indices, 36, None, np.array(neighbors), np.array(weights))
    painted = transfer(corr, giver, onto=receiver, what="texture")
    assert isinstance(painted, Shape)
    assert painted.colors is not None
    inside = ((receiver.points > 0.05) & (receiver.points < 0.95))[:, :2].all(axis=1)
    expected = receiver.points[inside, :2] * 255
    np.testing.assert_allclose(painted.colors[inside, :2], expected, atol=1.5)
    assert painted.colors[0].tolist() == [128] * 3


@pytest.mark.parametrize("direction", ["pull", "push"])
def test_a_mesh_with_places_gets_a_picture_of_its_own(direction: Any) -> None:
    giver = sheet(5, ramp(64))
    receiver = sheet(5, np.zeros((128, 128, 3), np.uint8), flipped=True)
    corr = Correspondence(np.arange(25), 25, source=giver.shape, target=receiver.shape)
    if direction == "pull":
        corr = Correspondence(np.arange(25), 25, source=receiver.shape, target=giver.shape)
    painted = transfer(corr, giver, onto=receiver, what="texture")
    assert isinstance(painted, TexturedMesh)
    assert painted.pictures[0].shape == (128, 128, 3)
    expected = ramp(128)[:, ::-1].astype(float)  # its places are mirrored, so is its picture
    away = np.abs(painted.pictures[0] - expected)
    assert away[3:-3, 3:-3].max() <= 2
    colors, original = painted.baked().colors, giver.baked().colors
    assert colors is not None
    assert original is not None
    inside = np.arange(25).reshape(5, 5)[1:-1, 1:-1].ravel()
    assert np.abs(colors[inside].astype(int) - original[inside]).max() <= 2


def test_pictures_keep_their_size_and_colours_run_over_seams() -> None:
    giver = sheet(5, ramp(64))
    small = sheet(5, np.zeros((40, 60, 3), np.uint8))
    half = replace(small, uv=small.uv * 0.5)  # the picture's lower left quarter
    painted = painted_mesh(giver, half, giver.shape.points)
    picture = painted.pictures[0].astype(int)
    assert picture.shape == (40, 60, 3)
    # Pixels just outside look like their neighbours inside.
    assert np.abs(picture[30, 31] - picture[30, 29]).max() < 20
    assert painted_mesh(giver, half, giver.shape.points, side=16).pictures[0].shape == (16, 16, 3)


@pytest.mark.slow
def test_a_bent_mesh_keeps_its_picture() -> None:
    mesh = sheet(12, ramp(16))
    angle = mesh.shape.points[:, 0] * 2
    bowl = np.stack([np.sin(angle), mesh.shape.points[:, 1], np.cos(angle)], axis=1)
    target = Shape(points=bowl, faces=mesh.shape.faces)
    corr = Correspondence(np.arange(144), 144, source=mesh.shape, target=target)
    bent = transfer(corr, mesh, onto=target, what="deformation")
    assert isinstance(bent, TexturedMesh)
    assert bent.pictures is mesh.pictures
    assert bent.uv is mesh.uv
    assert np.linalg.norm(bent.shape.points - bowl, axis=1).mean() < 0.02


def test_texture_from_a_file_and_from_nothing(tmp_path: Path, tetrahedron: Shape) -> None:
    write_textured(sheet(3, ramp(16)), tmp_path / "m.obj")
    corr = Correspondence(np.arange(9), 9)
    shape = io.load(tmp_path / "m.obj")
    painted = transfer(corr, tmp_path / "m.obj", onto=shape, what="texture", direction="pull")
    assert isinstance(painted, Shape)
    io.save(tetrahedron, tmp_path / "plain.obj")
    with pytest.raises(InputError, match="no texture coordinates"):
        transfer(corr, tmp_path / "plain.obj", onto=shape, what="texture")
    mesh = sheet(3, None)
    with pytest.raises(InputError, match="for 2 triangles"):
        TexturedMesh(mesh.shape, mesh.uv, mesh.corners[:2], (), mesh.painted)


def test_without_pillow_the_error_names_the_pip_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_textured(sheet(3, ramp(16)), tmp_path / "m.obj")  # writing needs none
    original = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("PIL"):
            raise ImportError(name)
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingError, match=r"pip install 'ltenet\[texture\]'"):
        read_textured(tmp_path / "m.obj")


def test_tiled_coordinates_give_every_triangle_a_place_of_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    giver, onto = sheet(5, ramp(64)), sheet(5, ramp(64))
    tiled = replace(onto, uv=onto.uv * 125 - 52)  # every triangle covers hundreds of tiles
    painted = painted_mesh(giver, tiled, onto.shape.points, side=256)
    assert "every triangle gets a place of its own" in caplog.text
    assert painted.uv.min() >= 0
    assert painted.uv.max() <= 1
    faces = np.arange(len(painted.corners))
    for weights in ([1 / 3, 1 / 3, 1 / 3], [0.6, 0.2, 0.2]):
        mixture = np.tile(weights, (len(faces), 1))
        np.testing.assert_allclose(
            painted.colors_at(faces, mixture), giver.colors_at(faces, mixture), atol=12
        )


def test_a_mesh_with_tiled_coordinates_is_painted_in_bounded_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import ltenet.transferring.baking as baking

    drawn = []
    original = baking._pixels

    def counted(uv: np.ndarray, width: int, height: int) -> Any:
        drawn.append(float((np.ptp(uv, axis=1) * (width, height)).prod(axis=1).sum()))
        return original(uv, width, height)

    monkeypatch.setattr(baking, "_pixels", counted)
    mesh = sheet(20, ramp(64))
    painted_mesh(mesh, replace(mesh, uv=mesh.uv * 125 - 52), mesh.shape.points, side=128)
    assert sum(drawn) < 2 * 128**2
