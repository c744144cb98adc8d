"""What the app refuses before it parses anything."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ltenet.errors import InputError
from ltenet.io import save
from ltenet.shape import Shape
from ltenet.viewer import uploads
from ltenet.viewer.uploads import check_beginning, check_content, checked_suffix, display_name


def checked(path: Path) -> None:
    check_beginning(path)
    check_content(path)


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".off", ".npy", ".npz", ".xyz", ".csv"])
def test_honest_files_pass(suffix: str, tmp_path: Path, tetrahedron: Shape) -> None:
    path = tmp_path / f"shape{suffix}"
    save(tetrahedron, path)
    checked(path)
    assert checked_suffix(f"C:\\scans\\shape{suffix.upper()}") == suffix


@pytest.mark.parametrize("name", ["a.exe", "a", "", "a.ply.sh", "../a.html"])
def test_other_kinds_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="expected one of"):
        checked_suffix(name)


def test_names_are_for_people_only() -> None:
    assert display_name("../../etc/pass wd.ply") == "pass wd"
    assert display_name("C:\\x\\<b>y\n.obj") == "<b>y"
    assert display_name("\0.ply") == "shape"
    assert len(display_name("x" * 999 + ".ply")) == 120


def glb(scene: object) -> bytes:
    text = json.dumps(scene).encode()
    return struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A) + text


def npy_header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": kind, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("empty.ply", b"", "a file of 0 bytes"),
        ("other.ply", b"\x7fELF...", "is not that of a .ply file"),
        ("other.glb", b"MZ..", "is not that of a .glb file"),
        ("binary.obj", b"v 0 0 0\n\0\0", "is not that of a .obj file"),
        ("huge.ply", b"ply\nelement vertex 99999999999\nend_header\n", "declares 99,999,999,999"),
        ("huge.npy", npy_header((10**12, 3)), "24,000,000,000,000 bytes declared"),
        ("objects.npy", npy_header((1,), "|O"), "Python objects"),
        ("cut.npy", b"\x93NUMPY\x01\x00", "damaged .npy file"),
        ("cut.npz", b"PK\x03\x04", "unreadable .npz file"),
        ("linked.glb", glb({"buffers": [{"uri": "../../etc/passwd"}]}), "refers to other files"),
        ("linked.gltf", b'{"images": [{"uri": "file:///etc/passwd"}]}', "refers to other files"),
        ("strange.gltf", b'{"images": 7}', "unreadable scene"),
        ("deep.gltf", b"[" * 100_000, "unreadable scene"),
        ("short.glb", b"glTF", "unreadable scene"),
    ],
)
def test_dishonest_files_are_refused(
    name: str, content: bytes, complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        checked(path)


def test_scenes_that_hold_everything_pass(tmp_path: Path) -> None:
    path = tmp_path / "whole.glb"
    path.write_bytes(glb({"buffers": [{"uri": "data:,abc"}, {"byteLength": 3}]}))
    checked(path)


def test_archives_may_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "UNPACKED_LIMIT", 10_000)
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("points.npy", bytes(20_000))
    assert path.stat().st_size < 1000
    with pytest.raises(InputError, match="an archive of 1 arrays and 20,000 bytes"):
        checked(path)


def test_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "BYTE_LIMIT", 10)
    path = tmp_path / "large.txt"
    path.write_text("0 0 0\n1 1 1\n")
    with pytest.raises(InputError, match="expected 1 to 10"):
        checked(path)
