"""STL, glTF, OBJ and PLY as other programs write them, with trimesh as the oracle."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from ltenet.io import load
from ltenet.io.formats.gltf_writing import Part, glb_bytes
from ltenet.io.formats.polygons import Polygons, fan, strip
from ltenet.io.textures import TexturedMesh, read_textured, write_textured
from ltenet.shape import Shape

BALL: Any = trimesh.creation.icosphere(subdivisions=1)
TURNED = trimesh.transformations.rotation_matrix(0.7, [1, 2, 3], [4, 5, 6])


def test_tabs_separate_the_words_of_an_obj(tmp_path: Path) -> None:
    text = "v 0 0 0\nv\t1\t0\t0\nv 0 1 0\nv\t 0 0 1\nf\t1 2\t4\n"
    (tmp_path / "a.obj").write_text(text)
    shape = load(tmp_path / "a.obj")
    assert shape.points.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert shape.faces is not None
    assert shape.faces.tolist() == [[0, 1, 3]]


@pytest.mark.parametrize("binary", [False, True])
def test_ply_strips_become_triangles(tmp_path: Path, binary: bool) -> None:
    kind = "binary_little_endian" if binary else "ascii"
    header = (
        f"ply\nformat {kind} 1.0\nelement vertex 5\nproperty float x\nproperty float y\n"
        "property float z\nelement tristrips 2\nproperty list int int vertex_indices\nend_header\n"
    )
    points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 0, 1]]
    strips = [[0, 1, 2, 3, -1, 4, 3, 1], [2, 3, 3, 4, 1]]
    if binary:
        body = np.array(points, "<f4").tobytes()
        body += b"".join(struct.pack(f"<i{len(s)}i", len(s), *s) for s in strips)
        (tmp_path / "a.ply").write_bytes(header.encode() + body)
    else:
        rows = [*points, *([len(s), *s] for s in strips)]
        text = "\n".join(" ".join(map(str, row)) for row in rows)
        (tmp_path / "a.ply").write_text(header + text + "\n")
    shape = load(tmp_path / "a.ply")
    assert shape.faces is not None
    # The second triangle of a strip is turned round; flat ones only join parts.
    assert shape.faces.tolist() == [[0, 1, 2], [2, 1, 3], [4, 3, 1], [3, 4, 1]]


def test_a_strip_is_oriented_alike_all_along() -> None:
    points = np.array([[i // 2, i % 2, 0.0] for i in range(10)])
    faces = strip(np.arange(10))
    a, b, c = points[faces].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)[:, 2]
    assert len(faces) == 8
    assert (np.sign(normals) == np.sign(normals[0])).all()
    assert strip(np.array([1])).shape == (0, 3)


def test_fans_keep_order_and_winding() -> None:
    polygons = Polygons.of([[0, 1, 2, 3], [4, 5, 6], [7, 8, 9, 1, 2]])
    assert fan(polygons).tolist() == [
        [0, 1, 2], [0, 2, 3], [4, 5, 6], [7, 8, 9], [7, 9, 1], [7, 1, 2],
    ]  # fmt: skip
    assert fan(Polygons.of([])).shape == (0, 3)


@pytest.mark.parametrize("kind", ["stl", "stl_ascii"])
def test_stl_as_another_program_writes_it(tmp_path: Path, kind: str) -> None:
    BALL.export(tmp_path / "a.stl", file_type=kind)
    shape = load(tmp_path / "a.stl")
    assert shape.faces is not None
    np.testing.assert_allclose(shape.points[shape.faces], BALL.triangles, atol=1e-6)
    assert len(shape) == len(BALL.vertices)


def test_a_binary_stl_may_begin_with_solid(tmp_path: Path) -> None:
    BALL.export(tmp_path / "a.stl", file_type="stl")
    content = (tmp_path / "a.stl").read_bytes()
    (tmp_path / "a.stl").write_bytes(b"solid" + content[5:])
    assert len(load(tmp_path / "a.stl")) == len(BALL.vertices)


def exported(path: Path, scene: Any) -> Path:
    if path.suffix == ".glb":
        path.write_bytes(scene.export(file_type="glb"))
    else:
        for name, data in scene.export(file_type="gltf").items():
            (path.parent / (path.name if name.endswith(".gltf") else name)).write_bytes(data)
    return path


@pytest.mark.parametrize("suffix", [".glb", ".gltf"])
def test_scenes_are_read_as_another_program_reads_them(tmp_path: Path, suffix: str) -> None:
    scene = trimesh.Scene()
    box: Any = trimesh.creation.box()
    box.visual.vertex_colors = np.arange(32, dtype=np.uint8).reshape(8, 4)
    scene.add_geometry(BALL, node_name="first", transform=TURNED)
    scene.add_geometry(box, node_name="second", parent_node_name="first", transform=TURNED)
    path = exported(tmp_path / f"a{suffix}", scene)
    shape = load(path)
    other: Any = trimesh.load(path, process=False).to_geometry()
    np.testing.assert_allclose(shape.points, other.vertices, atol=1e-6)
    np.testing.assert_array_equal(shape.faces, other.faces)
    assert shape.colors is not None
    np.testing.assert_array_equal(shape.colors[-8:], np.arange(32).reshape(8, 4))
    np.testing.assert_array_equal(shape.colors[:-8], 255)  # white, where there are none


def test_points_strips_fans_and_whole_number_attributes(tmp_path: Path) -> None:
    content = glb_bytes(
        [Part("a", np.eye(4)[:, :3], np.array([[0, 1, 2]]), np.zeros((4, 2)), None)]
    )
    length = struct.unpack_from("<I", content, 12)[0]
    document = json.loads(content[20 : 20 + length])
    corners = np.arange(4, dtype="<u1").tobytes()
    colors = np.full((4, 3), 128, "<u1").tobytes()
    uri = "data:application/octet-stream;base64," + base64.b64encode(corners + colors).decode()
    document["buffers"].append({"uri": uri, "byteLength": 16})
    views, accessors = document["bufferViews"], document["accessors"]
    views += [
        {"buffer": 1, "byteLength": 4},
        {"buffer": 1, "byteOffset": 4, "byteLength": 12},
    ]
    accessors += [
        {"bufferView": len(views) - 2, "componentType": 5121, "count": 4, "type": "SCALAR"},
        {"bufferView": len(views) - 1, "componentType": 5121, "count": 4, "type": "VEC3",
         "normalized": True},
    ]  # fmt: skip
    primitive = document["meshes"][0]["primitives"][0]
    primitive["indices"] = len(accessors) - 2
    primitive["attributes"]["COLOR_0"] = len(accessors) - 1
    faces = {5: [[0, 1, 2], [2, 1, 3]], 6: [[0, 1, 2], [0, 2, 3]], 0: None}
    for mode, expected in faces.items():
        primitive["mode"] = mode
        text = json.dumps(document).encode()
        text += b" " * (-len(text) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text + content[20 + length :]
        path = tmp_path / "a.glb"
        path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks)
        shape = load(path)
        assert (None if shape.faces is None else shape.faces.tolist()) == expected
        assert shape.colors is not None
        np.testing.assert_array_equal(shape.colors, 128)


def test_textured_scenes_survive_and_other_programs_read_them(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    uv = np.array([[0.1, 0.2], [0.9, 0.1], [0.1, 0.9], [0.6, 0.4]])
    shape = Shape(np.eye(4)[:, :3], np.array([[0, 1, 2], [1, 2, 3]]))
    pictures = tuple(np.full((4, 4, 3), shade, np.uint8) for shade in (50, 200))
    assert shape.faces is not None
    mesh = TexturedMesh(shape, uv, shape.faces, pictures, np.array([0, 1]))
    write_textured(mesh, tmp_path / "a.glb")
    back = read_textured(tmp_path / "a.glb")
    assert back is not None
    assert [int(picture.mean()) for picture in back.pictures] == [50, 200]
    assert back.painted.tolist() == [0, 1]
    np.testing.assert_allclose(back.uv[back.corners], uv[shape.faces], atol=1e-6)
    other: Any = trimesh.load(tmp_path / "a.glb", process=False)
    parts = list(other.geometry.values())
    assert len(parts) == 2
    np.testing.assert_allclose(parts[1].visual.uv[parts[1].faces[0]], uv[[1, 2, 3]], atol=1e-6)
