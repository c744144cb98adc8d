"""MATLAB files, against what scipy writes; hostile ones are refused in little memory."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from ltenet.io.formats.mat import read_struct

RNG = np.random.default_rng(0)
FIELDS: dict[str, Any] = {
    "X": RNG.normal(size=(5, 1)),
    "few": np.array([[1, 2, 3]], dtype=np.uint8),
    "TRIV": np.array([[1.0, 2, 3], [3, 4, 5]]),
    "single": RNG.normal(size=(2, 3)).astype(np.float32),
    "deep": np.arange(24, dtype=np.int16).reshape(2, 3, 4),
    "empty": np.zeros((0, 3)),
}


def written(content: dict[str, Any], *, packed: bool = False) -> bytes:
    out = io.BytesIO()
    savemat(out, content, do_compression=packed)
    return out.getvalue()


@pytest.mark.parametrize("packed", [False, True])
def test_fields_are_those_that_scipy_wrote(packed: bool) -> None:
    others = {"note": "text", "cell": np.array(["a", 1.0], dtype=object), "inner": {"X": 1.0}}
    content = {"before": np.eye(3), "words": "text", "surface": {**FIELDS, **others}, "after": 1.0}
    found = read_struct(written(content, packed=packed), "surface", tuple(FIELDS))
    for name, expected in FIELDS.items():
        np.testing.assert_array_equal(found[name], expected)


def element(kind: int, content: bytes) -> bytes:
    return struct.pack(">II", kind, len(content)) + content + b"\0" * (-len(content) % 8)


def matrix(kind: int, sizes: tuple[int, ...], name: bytes, *rest: bytes) -> bytes:
    parts = [
        element(6, struct.pack(">II", kind, 0)),
        element(5, struct.pack(f">{len(sizes)}i", *sizes)),
        element(1, name),
        *rest,
    ]
    return element(14, b"".join(parts))


def big_endian(*fields: bytes, sizes: tuple[int, ...] = (1, 1)) -> bytes:
    names = element(5, struct.pack(">i", 4)) + element(1, b"X\0\0\0")
    return bytes(124) + b"\x01\x00MI" + matrix(2, sizes, b"surface", names, *fields)


def test_files_of_the_other_byte_order() -> None:
    numbers = element(9, struct.pack(">3d", 1, 2, 3))
    found = read_struct(big_endian(matrix(6, (3, 1), b"", numbers)), "surface", ("X",))
    np.testing.assert_array_equal(found["X"], [[1], [2], [3]])


PLAIN = written({"surface": {"X": np.arange(3.0)}})
NUMBERS = element(9, struct.pack(">3d", 1, 2, 3))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no header"),
        (b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM", "no header"),
        (PLAIN[:-8], "bytes declared"),
        (PLAIN[:128], "no variable surface"),
        (written({"surface": {"Y": 1.0}}), "no field X"),
        (written({"surface": 1.0}), "no single struct"),
        (written({"surface": {"X": "text"}}), "no full matrix of numbers as X"),
        (big_endian(matrix(6, (10**6, 10**6), b"", NUMBERS)), "3 numbers for a matrix"),
        (big_endian(matrix(6, (-3, 1), b"", NUMBERS)), "dimensions"),
        (big_endian(matrix(6, (3, 1), b"")), "ends early"),
        (big_endian(sizes=(30000, 30000)), "no single struct"),
        (big_endian(element(9, bytes(5))), "no matrix as X"),
        (PLAIN[:128] + struct.pack("<II", 15, 4) + b"no z", "header"),
    ],
)
def test_hostile_files_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_struct(data, "surface", ("X",))


def test_what_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ltenet.io.formats.mat.UNPACKED_FREE", 2**16)
    packed = zlib.compress(bytes(2**25), 9)
    data = PLAIN[:128] + struct.pack("<II", 15, len(packed)) + packed
    tracemalloc.start()
    with pytest.raises(ValueError, match="more unpacked bytes"):
        read_struct(data, "surface", ("X",))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**24
