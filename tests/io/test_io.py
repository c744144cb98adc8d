from __future__ import annotations

import logging
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ltenet.errors import InputError, LTENetError, UsageError
from ltenet.files import atomic_path
from ltenet.io import LOADERS, SAVERS, load, save
from ltenet.shape import Shape

ASCII_PLY = """ply
format ascii 1.0
comment written by hand
element vertex 5
property float x
property float y
property float z
element face 2
property list uchar int vertex_indices
end_header
0 0 0
1 0 0
1 1 0
0 1 0
5 5 5
4 0 1 2 3
3 0 1 4
"""
OFF = "OFF\n# made\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n3 0 1 2\n"
OBJ = "v 0 0 0\nv 1 0 0\nvt 0 0\nv 1 1 0\nf 1/1 2/1 3/1\nv 0 1 0\nf -4//1 -2//1 -1//1\n"
PCD = """# .PCD v0.7
VERSION 0.7
FIELDS x y z rgb
SIZE 4 4 4 4
TYPE F F F U
COUNT 1 1 1 1
WIDTH 2
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS 2
DATA ascii
0 1 2 16711680
3 4 5 255
"""


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- round trips -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", list(SAVERS))
def test_order_and_number_of_vertices_survive(
    tmp_path: Path, tetrahedron: Shape, suffix: str
) -> None:
    path = tmp_path / f"t{suffix}"
    save(tetrahedron, path)
    back = load(path)
    assert back.name == "t"
    np.testing.assert_array_equal(back.points, tetrahedron.points)
    if back.faces is not None:
        np.testing.assert_array_equal(back.faces, tetrahedron.faces)
    if back.colors is not None:
        np.testing.assert_array_equal(back.colors, tetrahedron.colors)
    if back.labels is not None:
        np.testing.assert_array_equal(back.labels, tetrahedron.labels)
    has = {what for what in ("faces", "colors", "labels") if getattr(back, what) is not None}
    expected = {
        ".ply": {"faces", "colors", "labels"},
        ".npz": {"faces", "colors", "labels"},
        ".obj": {"faces", "colors"},
        ".off": {"faces", "colors"},
        ".npy": set(),
    }
    assert has == expected.get(suffix, {"colors"})


@given(
    points=arrays(
        np.float64,
        st.tuples(st.integers(1, 8), st.just(3)),
        elements=st.floats(-1e9, 1e9, allow_nan=False),
    ),
    suffix=st.sampled_from([".ply", ".off", ".npz", ".obj", ".xyz", ".csv"]),
    data=st.data(),
)
def test_any_shape_comes_back_to_the_last_bit(
    points: np.ndarray, suffix: str, data: st.DataObject
) -> None:
    corner = st.integers(0, len(points) - 1)
    faces = data.draw(st.lists(st.tuples(corner, corner, corner), max_size=5))
    channels = data.draw(st.sampled_from([0, 3]))
    colors = data.draw(arrays(np.uint8, (len(points), channels))) if channels else None
    shape = Shape(points=points, faces=np.array(faces, int) if faces else None, colors=colors)
    with tempfile.TemporaryDirectory() as folder:
        save(shape, Path(folder) / f"shape{suffix}")
        back = load(Path(folder) / f"shape{suffix}")
    np.testing.assert_array_equal(back.points, shape.points)
    if faces and suffix not in (".xyz", ".csv"):
        assert back.faces is not None
        np.testing.assert_array_equal(back.faces, shape.faces)
    if colors is not None:
        np.testing.assert_array_equal(back.colors, colors)


def test_npz_keeps_the_way_back(tmp_path: Path, tetrahedron: Shape) -> None:
    moved = tetrahedron.normalized()
    save(moved, tmp_path / "t.npz")
    np.testing.assert_allclose(load(tmp_path / "t.npz").restored(), tetrahedron.points, atol=1e-12)


def test_what_a_format_cannot_hold_is_said(
    tmp_path: Path, tetrahedron: Shape, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        save(tetrahedron, tmp_path / "t.npy")
    assert "cannot hold the faces and the colors and the labels" in caplog.text


# --- reading ---------------------------------------------------------------------------------


def test_ascii_ply_with_polygons(tmp_path: Path) -> None:
    shape = load(write(tmp_path, "a.ply", ASCII_PLY))
    assert len(shape) == 5  # also the vertex that no face would need to keep
    assert shape.faces is not None
    assert shape.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 4]]


def test_big_endian_ply_with_mixed_polygons_and_float_colours(tmp_path: Path) -> None:
    header = (
        "ply\nformat binary_big_endian 1.0\nelement vertex 4\nproperty double x\n"
        "property double y\nproperty double z\nproperty float red\nproperty float green\n"
        "property float blue\nelement face 2\nproperty uchar flags\n"
        "property list uchar ushort vertex_index\nend_header\n"
    )
    vertices = b"".join(
        struct.pack(">dddfff", x, y, 0, 1.0, 0.5, 0) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))
    )
    faces = struct.pack(">BB4H", 9, 4, 0, 1, 2, 3) + struct.pack(">BB3H", 9, 3, 0, 1, 2)
    shape = load(write(tmp_path, "a.ply", header.encode() + vertices + faces))
    assert shape.faces is not None
    assert shape.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2]]
    assert shape.colors is not None
    assert shape.colors[0].tolist() == [255, 128, 0]


def test_ply_as_trimesh_writes_it(tmp_path: Path, tetrahedron: Shape) -> None:
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.Trimesh(tetrahedron.points, tetrahedron.faces, process=False)
    mesh.export(tmp_path / "binary.ply")
    mesh.export(tmp_path / "text.ply", encoding="ascii")
    for name in ("binary.ply", "text.ply"):
        shape = load(tmp_path / name)
        np.testing.assert_allclose(shape.points, tetrahedron.points, atol=1e-6)
        np.testing.assert_array_equal(shape.faces, tetrahedron.faces)


def test_off_polygons_and_counts_on_the_first_line(tmp_path: Path) -> None:
    shape = load(write(tmp_path, "a.off", OFF))
    assert shape.faces is not None
    assert shape.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2]]
    joined = load(write(tmp_path, "b.off", "OFF 2 0 0\n0 0 0\n1 2 3\n"))
    assert joined.faces is None
    assert joined.points.tolist() == [[0, 0, 0], [1, 2, 3]]


def test_obj_keeps_vertices_that_share_texture_seams(tmp_path: Path) -> None:
    shape = load(write(tmp_path, "a.obj", OBJ))
    assert len(shape) == 4
    assert shape.faces is not None
    assert shape.faces.tolist() == [[0, 1, 2], [0, 2, 3]]


def test_obj_lines_may_continue(tmp_path: Path) -> None:
    shape = load(write(tmp_path, "a.obj", "v 0 0 0\nv 1 0 \\\n0\nv 1 1 0\nf 1 2 \\\n3\n"))
    assert shape.faces is not None
    assert shape.faces.tolist() == [[0, 1, 2]]


def test_pcd_text_and_binary(tmp_path: Path) -> None:
    text = load(write(tmp_path, "a.pcd", PCD))
    header = PCD[: PCD.index("DATA")].encode() + b"DATA binary\n"
    body = struct.pack("<fffI", 0, 1, 2, 0xFF0000) + struct.pack("<fffI", 3, 4, 5, 0xFF)
    binary = load(write(tmp_path, "b.pcd", header + body))
    for shape in (text, binary):
        assert shape.points.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert shape.colors is not None
        assert shape.colors.tolist() == [[255, 0, 0], [0, 0, 255]]


def test_text_clouds(tmp_path: Path) -> None:
    assert load(write(tmp_path, "a.xyz", "0 1 2\n3 4 5\n")).points.tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    named = load(write(tmp_path, "a.csv", "id;z;y;x\n7;1;2;3\n"))
    assert named.points.tolist() == [[3, 2, 1]]
    colored = load(write(tmp_path, "b.txt", "0,0,0,255,0,7\n"))
    assert colored.colors is not None
    assert colored.colors.tolist() == [[255, 0, 7]]
    normals = load(write(tmp_path, "c.txt", "0 0 0 0.6 0.8 0\n"))
    assert normals.colors is None


def test_npz_by_other_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", verts=np.zeros((3, 3), np.float32), faces=[[0, 1, 2]])
    shape = load(tmp_path / "a.npz")
    assert shape.faces is not None
    assert len(shape) == 3


def test_stl_is_welded_and_says_so(
    tmp_path: Path, tetrahedron: Shape, caplog: pytest.LogCaptureFixture
) -> None:
    trimesh = pytest.importorskip("trimesh")
    trimesh.Trimesh(tetrahedron.points, tetrahedron.faces).export(tmp_path / "t.stl")
    with caplog.at_level(logging.WARNING):
        shape = load(tmp_path / "t.stl")
    assert len(shape) == 4
    assert shape.faces is not None
    assert len(shape.faces) == 4
    assert "welded 12 corners to 4 vertices" in caplog.text


def test_gltf_scene_becomes_one_shape(tmp_path: Path, tetrahedron: Shape) -> None:
    trimesh = pytest.importorskip("trimesh")
    mesh = trimesh.Trimesh(tetrahedron.points, tetrahedron.faces, process=False)
    scene = trimesh.Scene()
    scene.add_geometry(mesh)
    moved = np.eye(4)
    moved[0, 3] = 10
    scene.add_geometry(mesh.copy(), transform=moved)
    scene.export(tmp_path / "s.glb")
    shape = load(tmp_path / "s.glb")
    assert len(shape) == 8
    assert shape.points[:, 0].max() == pytest.approx(11)


def test_importing_io_imports_neither_torch_nor_trimesh() -> None:
    code = "import sys, ltenet.io; print({'torch', 'trimesh'} & set(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


# --- damage ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("a.off", "COF\n1 0 0\n", 1, "expected OFF or COFF"),
        ("a.off", "OFF\n1 zero 0\n0 0 0\n", 2, "counts"),
        ("a.off", "OFF\n0 0 0\n", 2, "at least 1"),
        ("a.off", OFF[:-9], 8, "got 5 lines, expected 4 vertices and 2 faces"),
        ("a.off", OFF.replace("1 1 0", "1 1"), 6, "got 2 numbers"),
        ("a.off", OFF.replace("1 1 0", "1 nan 0"), 6, "not finite"),
        ("a.off", OFF.replace("3 0 1 2\n", "3 0 1 4\n"), 9, "got vertices 0 to 4"),
        ("a.off", OFF.replace("3 0 1 2\n", "3 0 1\n"), 9, "a count and as many"),
        ("a.off", OFF.replace("3 0 1 2\n", "3 0 1 b\n"), 9, "whole numbers"),
        ("a.obj", OBJ.replace("v 1 1 0", "v 1 one 0"), 4, "got 'one', expected a number"),
        ("a.obj", OBJ.replace("3/1", "9/1"), 5, "got the vertex 9, expected 1 to 4"),
        ("a.obj", OBJ.replace("f 1/1", "f 0/1"), 5, "got the vertex 0"),
        ("a.obj", OBJ.replace(" 3/1", ""), 5, "2 corners"),
        ("a.obj", OBJ.replace("3/1", "x"), 5, "whole numbers"),
        ("a.obj", "g nothing\n", None, "expected a line 'v x y z'"),
        ("a.ply", "off\n", 1, "no PLY header"),
        ("a.ply", ASCII_PLY[:100], 7, "no PLY header"),
        ("a.ply", ASCII_PLY.replace("element vertex 5", "element vertex five"), 4, "standard"),
        ("a.ply", ASCII_PLY.replace("float y", "quad y"), 6, "standard"),
        ("a.ply", ASCII_PLY.replace("property float z\n", ""), 9, "x, y and z"),
        ("a.ply", ASCII_PLY.replace("1 1 0", "1 x 0"), 13, "got 'x', expected a number"),
        ("a.ply", ASCII_PLY.replace("1 1 0", "1 inf 0"), 13, "not finite"),
        ("a.ply", ASCII_PLY.replace("3 0 1 4\n", ""), 16, "got 1 'face' lines, expected 2"),
        ("a.ply", ASCII_PLY.replace("3 0 1 4", "3 0 1"), 17, "count"),
        ("a.ply", ASCII_PLY.replace("3 0 1 4", "2 0 1"), None, "2 corners"),
        ("a.ply", ASCII_PLY.replace("3 0 1 4", "3 0 1 5"), None, "vertices 0 to 4"),
        ("a.xyz", "0 0 0\n0 0\n", 2, "got 2 numbers"),
        ("a.xyz", "0 0 0\n0 0 q\n", 2, "got 'q', expected a number"),
        ("a.txt", "1\n2\n", 1, "x, y and z"),
        ("a.csv", "a,b,c\n1,2,3\n", 1, "header"),
        ("a.csv", "x,y,z,r,g,b\n1,2,3,0.5,0,0\n", 2, "colour"),
        ("a.csv", "", None, "no point"),
        ("a.csv", "x,y,z,id\n1,2,3,4\n1,2,3\n", 3, "got 3 numbers"),
        ("a.pcd", PCD[:60], 5, "DATA"),
        ("a.pcd", PCD.replace("POINTS 2", "POINTS 3"), 13, "got 2 points, expected 3"),
        ("a.pcd", PCD.replace("FIELDS x y z", "FIELDS x y w"), 11, "x, y and z"),
        ("a.pcd", PCD.replace("TYPE F F F U", "TYPE F F"), 11, "incomplete"),
        ("a.pcd", PCD.replace("DATA ascii", "DATA binary_compressed"), 11, "ascii or binary"),
        ("a.pcd", PCD.replace("3 4 5 255", "3 nan 5 255"), 13, "not finite"),
        ("a.pcd", PCD.replace("DATA ascii", "DATA binary")[:-10], None, "got 15 bytes of points"),
        ("a.npy", b"\x93NUMPY nothing", None, "damaged .npy"),
        ("a.npz", b"PK nothing", None, "damaged .npz"),
        ("a.stl", b"\0junk" * 20, None, "STL"),
        ("a.glb", b"\0junk" * 20, None, "GLB"),
        ("a.off", b"OFF\n\xff\xfe", 2, "not UTF-8 text"),
    ],
)
def test_a_damaged_file_names_file_line_and_reason(
    tmp_path: Path, name: str, content: str | bytes, line: int | None, words: str
) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(InputError) as caught:
        load(path)
    message = str(caught.value)
    assert words in message
    assert str(path) in message
    assert message.count(str(path)) == 1
    assert ";" in message
    if line is not None:
        assert f"{name}, line {line}:" in message


def test_cut_binary_files(tmp_path: Path, tetrahedron: Shape) -> None:
    save(tetrahedron, tmp_path / "t.ply")
    content = (tmp_path / "t.ply").read_bytes()
    for length in range(20, len(content), 7):
        with pytest.raises(InputError, match="cut off"):
            load(write(tmp_path, "cut.ply", content[:length]))


@given(
    suffix=st.sampled_from([".ply", ".off", ".obj", ".npy", ".npz", ".csv", ".xyz", ".pcd"]),
    place=st.floats(0, 1),
    removed=st.integers(0, 6),
    inserted=st.binary(max_size=4) | st.text("0123456789 -.,\\nexan#", max_size=4),
)
def test_damage_anywhere_is_an_input_error_or_harmless(
    suffix: str, place: float, removed: int, inserted: bytes | str
) -> None:
    shape = Shape(points=np.arange(12.0).reshape(4, 3) ** 2, faces=np.array([[0, 1, 2]]))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"shape{suffix}"
        if suffix == ".pcd":
            path.write_text(PCD)
        else:
            save(shape, path)
        content = path.read_bytes()
        start = int(place * len(content))
        middle = inserted if isinstance(inserted, bytes) else inserted.encode()
        path.write_bytes(content[:start] + middle + content[start + removed :])
        message = str(path)
        try:
            load(path)
        except InputError as error:
            message = str(error)
        assert str(path) in message


def test_arrays_that_are_no_shape(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    with pytest.raises(InputError, match=r"a\.npy: .*\(3, 2\)"):
        load(tmp_path / "a.npy")
    np.savez(tmp_path / "a.npz", stuff=np.zeros(3))
    with pytest.raises(InputError, match="got the arrays 'stuff'"):
        load(tmp_path / "a.npz")
    np.save(tmp_path / "p.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="damaged"):
        load(tmp_path / "p.npy")


def test_paths_that_are_no_shape_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file") as caught:
        load(tmp_path / "none.ply")
    assert caught.value.exit_code == 3
    with pytest.raises(InputError, match="got a folder"):
        load(tmp_path)
    with pytest.raises(InputError) as unknown:
        load(write(tmp_path, "a.fbx", "x"))
    assert all(suffix in str(unknown.value) for suffix in LOADERS)


# --- writing ---------------------------------------------------------------------------------


def test_nothing_is_overwritten_without_force(tmp_path: Path, tetrahedron: Shape) -> None:
    path = tmp_path / "t.off"
    path.write_text("precious")
    with pytest.raises(UsageError, match="exists"):
        save(tetrahedron, path)
    assert path.read_text() == "precious"
    save(tetrahedron, path, force=True)
    assert len(load(path)) == 4
    assert [file.name for file in tmp_path.iterdir()] == ["t.off"]


def test_suffixes_that_cannot_be_written(tmp_path: Path, tetrahedron: Shape) -> None:
    with pytest.raises(UsageError, match=r"got the suffix '\.stl'"):
        save(tetrahedron, tmp_path / "t.stl")


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"

    def interrupted() -> None:
        with atomic_path(path, force=False) as temporary:
            assert temporary.parent == tmp_path
            assert temporary.suffix == ".txt"
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"

    def late() -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("mine")
            path.write_text("theirs")

    with pytest.raises(UsageError, match="exists"):
        late()
    assert path.read_text() == "theirs"
    assert [file.name for file in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.parametrize("place", ["nowhere/out.ply", "."])
def test_places_that_cannot_be_written(tmp_path: Path, tetrahedron: Shape, place: str) -> None:
    with pytest.raises(LTENetError, match=r"folder|suffix"):
        save(tetrahedron, tmp_path / place)
