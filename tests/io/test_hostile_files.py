"""Files made to break readers: each is refused in ltenet's own words, quickly and in little memory.

Found by `python -m tools.fuzz` or by hand; every case once raised, hung, took all memory or was
read as something else.
"""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ltenet.errors import InputError
from ltenet.io import load
from ltenet.io.correspondences import read_record
from ltenet.io.formats.gltf_writing import Part, glb_bytes
from ltenet.io.landmarks import read_landmarks
from ltenet.io.pictures import read_picture
from ltenet.io.textures import read_textured
from ltenet.io.values import read_values
from ltenet.shape import Shape

PLY = "ply\nformat {} 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
VERTICES = np.eye(3, dtype="<f4").tobytes()
LISTS = "element face {}\nproperty list {} int vertex_indices\nend_header\n"
PCD = "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT {}\nPOINTS {}\nDATA {}\n"


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(**members: Any) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            if isinstance(value, bytes):
                archive.writestr(name.replace("__", "."), value)
            else:
                archive.writestr(f"{name}.npy", npy(value))
    return out.getvalue()


def promising(shape: str) -> bytes:
    """An array whose header promises more than follows."""
    return npy(np.zeros((4, 3))).replace(
        b"(4, 3), }" + b" " * (len(shape) - 6), f"{shape}, }}".encode()
    )


def scene(change: Callable[[dict[str, Any]], object] = lambda _: None) -> bytes:
    part = Part("a", np.eye(3), np.array([[0, 1, 2]]), np.zeros((3, 2)), None)
    content = glb_bytes([part])
    length = struct.unpack_from("<I", content, 12)[0]
    document = json.loads(content[20 : 20 + length])
    change(document)
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<I4s", len(text), b"JSON") + text + content[20 + length :]
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def huge_accessor(document: dict[str, Any]) -> None:
    document["accessors"][0]["count"] = 200_000_000


def accessor_without_bytes(document: dict[str, Any]) -> None:
    document["accessors"][0]["count"] = 200_000_000
    del document["accessors"][0]["bufferView"]


def many_instances(document: dict[str, Any]) -> None:
    document["meshes"][0]["primitives"] *= 200
    document["nodes"] = [{"mesh": 0}] * 2000
    document["scenes"] = [{"nodes": list(range(2000))}]


def few_instances(document: dict[str, Any]) -> None:
    document["nodes"] = [{"mesh": 0}] * 5000
    document["scenes"] = [{"nodes": list(range(5000))}]


def cycle(document: dict[str, Any]) -> None:
    document["nodes"][0]["children"] = [0]


def path_as_data(document: dict[str, Any]) -> None:
    document["buffers"][0]["uri"] = "data:../secret.bin"


def file_above(document: dict[str, Any]) -> None:
    document["buffers"][0]["uri"] = "../secret.bin"


def file_above_encoded(document: dict[str, Any]) -> None:
    document["buffers"][0]["uri"] = "%2e%2e/secret.bin"


SHAPES: list[tuple[str, str | bytes, str]] = [
    # separators only, where a number or a name should be
    ("a.xyz", ";\n0 0 0\n", "expected the columns x, y and z"),
    ("a.xyz", "0 0 0\n;\n", "got 0 numbers, expected 3"),
    ("a.csv", "x,y,z\n;;\n", "got 0 numbers, expected 3"),
    ("a.off", ";\n1 0 0\n0 0 0\n", "expected OFF or COFF"),
    ("a.off", "OFF\n;\n0 0 0\n", "expected the counts"),
    ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n;\n", "a count and as many whole numbers"),
    # counts and indices beyond reason
    ("a.off", f"OFF\n{'9' * 5000} 0 0\n0 0 0\n", "expected the counts"),
    ("a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 1e30\n", "whole numbers"),
    ("a.obj", f"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 {'9' * 5000}\n", "expected whole numbers"),
    ("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99999999999999999\n", "expected 1 to 3"),
    ("a.ply", f"ply\nformat ascii 1.0\nelement vertex {'9' * 5000}\n", "PLY standard"),
    ("a.ply", PLY.format("ascii") + LISTS.format(1, "uchar") + "0 0 0\n1 0 0\n0 1 0\n3 0 1 1e30\n",
     "whole numbers"),
    ("a.ply", PLY.format("ascii") + LISTS.format(1, "uchar") + "0 0 0\n1 0 0\n0 1 0\n-1 0 1 2\n",
     "a count and as many"),
    ("a.ply", PLY.format("ascii") + "property int label\nend_header\n" + "0 0 0 1e20\n" * 3,
     "whole numbers up to 2^53"),
    ("a.ply", PLY.format("ascii") + "property uchar red\nproperty uchar green\n"
     "property uchar blue\nend_header\n" + "0 0 0 1 2 300\n" * 3, "expected uint8"),
    # lists that are none, or shorter than nothing
    ("a.ply", PLY.format("binary_little_endian").encode() + LISTS.format(9, "char").encode()
     + VERTICES + b"\xff" * 20_000, "expected 9 entries"),
    ("a.ply", PLY.format("binary_little_endian").encode() + LISTS.format(2, "int").encode()
     + VERTICES + struct.pack("<i3ii", 3, 0, 1, 2, -2), "expected 2 entries"),
    ("a.ply", PLY.format("binary_little_endian").encode() + LISTS.format(10**9, "uchar").encode()
     + VERTICES, "expected 1000000000 entries"),
    ("a.ply", PLY.format("ascii") + "element face 1\nproperty int vertex_indices\nend_header\n"
     "0 0 0\n1 0 0\n0 1 0\n1\n", "expected a list of whole numbers"),
    ("a.ply", PLY.format("ascii") + "element face 1\nproperty list uchar float vertex_indices\n"
     "end_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "expected a list of whole numbers"),
    ("a.ply", PLY.format("ascii") + "element face 1\nproperty list float int vertex_indices\n"
     "end_header\n", "PLY standard"),
    ("a.ply", PLY.format("ascii") + "property float x\nend_header\n", "no name twice"),
    ("a.ply", PLY.format("ascii") + "element tristrips 1\nproperty list int int vertex_indices\n"
     "end_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 -7\n", "got vertex -7"),
    ("a.pcd", PCD.format("1 1 1", 10**12, "binary") + "x", "bytes of points"),
    ("a.pcd", PCD.format("1 1 1000000000", 1, "ascii") + "0 0 0\n", "incomplete header"),
    ("a.pcd", PCD.format("1 1 -1", 1, "ascii") + "0 0 0\n", "count -1"),
    ("a.pcd", PCD.replace("SIZE 4", "SIZE 3").format("1 1 1", 1, "ascii") + "0 0 0\n", "'F3'"),
    # arrays that promise more than they hold, or hold something else
    ("a.npy", promising("(900000000000, 3)"), "bytes declared"),
    ("a.npy", b"\x93NUMPY\x02\x00" + npy(np.zeros((4, 3)))[8:], "bytes of header declared"),
    ("a.npy", npy(np.array([["a", "b", "c"]])), "expected real numbers"),
    ("a.npy", npy(np.zeros(3, [("x", "f8")])), "expected real numbers"),
    ("a.npy", npy(np.zeros((2, 3), complex)), "expected real numbers"),
    ("a.npz", npz(points=np.array([["a", "b", "c"]])), "got points of type"),
    ("a.npz", npz(points=np.eye(3), faces=np.zeros((1, 3), [("x", "i4")])), "got faces of type"),
    ("a.npz", npz(points=np.eye(3), labels=np.full(3, 2**64 - 1, np.uint64)), "below 2^63"),
    ("a.npz", npz(points=np.eye(3), transform=np.array("x")), "got transform of type"),
    ("a.npz", npz(points__npy=npy(np.array(["abc"])).replace("c".encode("utf-32-le"), b"\xff" * 4)),
     "beyond Unicode"),
    ("a.npz", npz(points=b"no array"), "expected one called points"),
    ("a.npz", npz(points__npy=b"no array"), "damaged .npz"),
    ("a.npz", npz(points__npy=promising("(900000000000, 3)")), "bytes declared"),
    ("a.npz", npz(points=np.zeros((30_000_000, 3), np.uint8)), "unpacks to"),
    # scenes
    ("a.glb", scene(huge_accessor), "leaves its buffer"),
    ("a.glb", scene(accessor_without_bytes), "sparse or empty"),
    ("a.glb", scene(many_instances), "instances yield more than"),
    ("a.glb", scene(cycle), "two parents"),
    ("a.glb", scene(path_as_data), "not base64"),
    ("a.glb", scene(file_above), "expected a file in the folder"),
    ("a.glb", scene(file_above_encoded), "expected a file in the folder"),
    ("a.gltf", "[" * 100_000, "nested more than"),
    ("a.gltf", '{"asset": ' + "9" * 400 + "}", "400 digits"),
    ("a.gltf", "[]", "damaged glTF"),
    ("a.stl", bytes(80) + struct.pack("<I", 2**32 - 1), "whole triangles"),
    ("a.stl", "solid\nfacet\nvertex 0 0 0\nvertex 1 0 0\n", "three for each triangle"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "words"), SHAPES)
def test_hostile_shapes_are_refused_in_little_memory(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(4096))
    folder = tmp_path / "inner"
    folder.mkdir()
    path = write(folder, name, content)
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert peak < 16 * 2**20


MAPS: list[tuple[str, str | bytes, str]] = [
    ("a.csv", "source,target\n1500000000,0\n", "one of 1000064 source points"),
    ("a.csv", f"source,target\n{'9' * 5000},0\n", "as numbers"),
    ("a.csv", "source,target\n0,99999999999999999999\n", "as numbers"),
    ("a.map", "1\n;\n", "got 0 numbers"),
    ("a.map", "1\n1e20\n", "whole numbers up to 2^53"),
    ("a.npz", npz(indices=np.array(["a"]), target_size=3), "got indices of type"),
    ("a.npz", npz(indices=[0], target_size=np.array("x")), "got target_size of type"),
    ("a.npz", npz(indices=[0], target_size=[3, 4]), "expected one number from 1"),
    ("a.npz", npz(indices=[0], target_size=3, format=np.array([1, 1])), "expected one number"),
    ("a.npz", npz(indices=[0], target_size=3, scores=np.array(["a"])), "got scores of type"),
    ("a.npz", npz(indices=[0], target_size=3, details=np.array(7)), "details of another kind"),
    ("a.npz", npz(indices=[0], target_size=3, details=np.array("[" * 9999)), "nested more than"),
    ("a.npz", npz(indices=b"text", target_size=b"text"), "expected indices and target_size"),
]


@pytest.mark.parametrize(("name", "content", "words"), MAPS)
def test_hostile_maps(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    with pytest.raises(InputError) as caught:
        read_record(write(tmp_path, name, content))
    assert words in str(caught.value)


LANDMARKS: list[tuple[str, str, str]] = [
    ("a.csv", f"name,x,y,z\nnose,{'1' * 200_000},2,3\n", "field larger than"),
    ("a.csv", '"nose,1,2,3\n' + "x" * 200_000, "field larger than"),
    ("a.csv", "nose,1e30\n", "not whole"),
    ("a.csv", "nose,1,2,inf\n", "infinite"),
    ("a.csv", "nose,1,2,3,7\n", "expected one from 0 to 1"),
    ("a.fcsv", f"1,{'1' * 200_000},2,3\n", "field larger than"),
    ("a.fcsv", "1,nan,2,3\n", "expected the columns"),
    ("a.mrk.json", "[" * 100_000, "nested more than"),
    ("a.mrk.json", '{"a":' * 5000, "nested more than"),
    ("a.mrk.json", '{"markups": [{"controlPoints": [{"position": [' + "9" * 400 + ",0,0]}]}]}",
     "400 digits"),
    ("a.mrk.json", '{"markups": [{"controlPoints": [{"position": ["1",0,0]}]}]}', "not a number"),
    ("a.mrk.json", '{"markups": [{"controlPoints": 7}]}', "no readable control points"),
    ("a.tps", f"LM3={'9' * 5000}\n0 0 0\n", "expected 'LM3='"),
    ("a.tps", "LM3=2\n0 0 0\n", "expected 'LM3='|got 1 landmarks"),
    ("a.tps", "LM=1\n0 0\n", "got 2 numbers, expected 3"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "words"), LANDMARKS)
def test_hostile_landmarks(
    tmp_path: Path, tetrahedron: Shape, name: str, content: str, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_landmarks(write(tmp_path, name, content), tetrahedron)
    assert str(tmp_path / name) in str(caught.value)
    assert any(part in str(caught.value) for part in [*words.split("|"), "instead of a number"])


def test_line_ends_of_old_macs(tmp_path: Path) -> None:
    marks = read_landmarks(write(tmp_path, "a.csv", "name,x,y,z\rnose,1,2,3\rtail,4,5,6\r"))
    assert marks.points.tolist() == [[1, 2, 3], [4, 5, 6]]
    marks = read_landmarks(write(tmp_path, "a.fcsv", "# CoordinateSystem = 0\r1,1,2,3\r"))
    assert (marks.points.tolist(), marks.system) == ([[1, 2, 3]], "RAS")


def test_large_values_keep_their_size(tmp_path: Path) -> None:
    values = read_values(write(tmp_path, "a.txt", "1\n100000000000000000000\n"))
    assert values.tolist() == [1, 1e20]
    assert read_values(write(tmp_path, "b.txt", "1\n9007199254740991\n")).dtype == np.int64
    with pytest.raises(InputError, match="got 0 numbers"):
        read_values(write(tmp_path, "c.txt", "1\n;\n"))
    with pytest.raises(InputError, match="expected real numbers"):
        read_values(write(tmp_path, "d.npy", npy(np.array(["a"]))))


def test_members_that_are_not_needed_are_not_read(tmp_path: Path) -> None:
    damaged = npz(points=np.eye(3), unused__npy=promising("(900000000000, 3)"), note__txt=b"x")
    assert len(load(write(tmp_path, "a.npz", damaged))) == 3
    large = npz(points=np.eye(3), unused=np.zeros((20_000_000,), np.uint8))
    path = write(tmp_path, "b.npz", large)
    tracemalloc.start()
    load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_a_picture_larger_than_its_bytes_can_mean(tmp_path: Path) -> None:
    picture = bytearray(b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR")
    picture += struct.pack(">IIBBBBB", 9000, 9000, 8, 2, 0, 0, 0)
    picture += struct.pack(">I", zlib.crc32(picture[12:])) + struct.pack(">I", 9) + b"IDAT"
    with pytest.raises(InputError, match="9000 x 9000 pixels"):
        read_picture(write(tmp_path, "a.png", bytes(picture)))


@pytest.mark.parametrize("name", ["../secret.mtl", "/etc/passwd", "..\\secret.mtl", "x" * 5000])
def test_materials_never_leave_their_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    write(tmp_path, "secret.mtl", "newmtl m\nmap_Kd secret.png\n")
    write(tmp_path, "secret.png", b"no picture: reading it would be an error")
    folder = tmp_path / "inner"
    folder.mkdir()
    (folder / "link.mtl").symlink_to(tmp_path / "secret.mtl")
    faces = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nusemtl m\nf 1/1 2/1 3/1\n"
    for library in (name, "link.mtl"):
        mesh = read_textured(write(folder, "a.obj", f"mtllib {library}\n{faces}"))
        assert mesh is not None
        assert mesh.pictures == ()
        assert "in its folder" in caplog.text
    write(folder, "own.mtl", "newmtl m\nmap_Kd ../secret.png\n")
    mesh = read_textured(write(folder, "a.obj", f"mtllib own.mtl\n{faces}"))
    assert mesh is not None
    assert mesh.pictures == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mixed.ply", "uniform.ply", "a.npy", "instances.glb"])
def test_memory_of_binary_files_is_linear(tmp_path: Path, name: str) -> None:
    count = 50_000
    faces = LISTS.replace(" int ", " uchar ").format(count + 1, "uchar").encode()
    head = PLY.format("binary_little_endian").encode() + faces + VERTICES
    content = {
        "mixed.ply": head + b"\x03\x00\x01\x02" * count + b"\x04\x00\x01\x02\x01",
        "uniform.ply": head + b"\x03\x00\x01\x02" * (count + 1),
        "a.npy": npy(np.zeros((count, 3), np.uint8)),
        "instances.glb": scene(few_instances),
    }[name]
    path = write(tmp_path, name, content)
    tracemalloc.start()
    load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / len(content) < (400 if name == "instances.glb" else 60)


#: The least frugal text for each reader, and the bytes of memory that it may take per byte.
GREEDY = {
    "a.xyz": (b"0 0 0\n", 100),
    "a.off": (b"3 0 1 2\n", 100),
    "a.obj": (b"f 1 2 3\n", 100),
    "a.ply": (b"3 0 1 2\n", 100),
    "a.gltf": (b"[],", 100),
}
HEADS = {
    "a.off": b"OFF\n3 %d 0\n0 0 0\n1 0 0\n0 1 0\n",
    "a.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\n",
    "a.ply": b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
    b"property float z\nelement face %d\nproperty list uchar int vertex_indices\nend_header\n"
    b"0 0 0\n1 0 0\n0 1 0\n",
    "a.gltf": b'{"nodes": [',
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(GREEDY))
def test_memory_is_linear_in_the_size_of_the_file(tmp_path: Path, name: str) -> None:
    line, factor = GREEDY[name]
    peaks = []
    for count in (20_000, 40_000):
        head = HEADS.get(name, b"")
        head = head % count if b"%d" in head else head
        tail = b"[]]}" if name == "a.gltf" else b""
        path = write(tmp_path, name, head + line * count + tail)
        tracemalloc.start()
        try:
            load(path)
        except InputError:
            assert name == "a.gltf"
        peaks.append(tracemalloc.get_traced_memory()[1] / path.stat().st_size)
        tracemalloc.stop()
    assert max(peaks) < factor
    assert peaks[1] < 1.3 * peaks[0]
