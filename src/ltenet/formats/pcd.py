"""Point Cloud Data, the format of PCL: `DATA ascii` and `DATA binary`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.formats.text import Lines, failure, read_bytes, table
from ltenet.shape import Shape

_KINDS = {"F": "f", "I": "i", "U": "u"}


class _Header(NamedTuple):
    names: list[str]
    dtype: np.dtype[np.void]
    point_count: int
    data: str
    line_count: int
    byte_count: int


def read_pcd(path: Path) -> Shape:
    """Read x, y, z and the packed `rgb` or `rgba` of a cloud; other fields are left out."""
    content = read_bytes(path)
    header = _header(path, content)
    if header.data == "ascii":
        records = _text_records(path, content[header.byte_count :], header)
    else:
        size = header.dtype.itemsize * header.point_count
        body = content[header.byte_count : header.byte_count + size]
        if len(body) < size:
            raise failure(
                path,
                None,
                f"{len(body)} bytes of points came, {size} are announced",
                "the file is cut off: copy or export it again",
            )
        records = np.frombuffer(body, header.dtype)
    points = np.stack([records[axis].astype(np.float64) for axis in "xyz"], axis=1)  # (N, 3)
    return Shape(points=points, colors=_colors(records, header.names), name=path.stem)


def _header(path: Path, content: bytes) -> _Header:
    entries: dict[str, list[str]] = {}
    lines, start = 0, 0
    while "DATA" not in entries:
        stop = content.find(b"\n", start)
        if stop < 0 or lines > 100:
            raise failure(
                path,
                lines + 1,
                "the header ends without a DATA line, one is needed",
                "check that this is a PCD file and that it is complete",
            )
        words = content[start:stop].decode("ascii", "replace").split("#", 1)[0].split()
        if words:
            entries[words[0].upper()] = words[1:]
        lines, start = lines + 1, stop + 1
    try:
        names = entries["FIELDS"]
        counts = [int(word) for word in entries.get("COUNT", ["1"] * len(names))]
        count = int(entries["POINTS"][0])
        columns: list[Any] = [
            (name, f"<{_KINDS[kind]}{int(size)}", (number,)) if number > 1
            else (name, f"<{_KINDS[kind]}{int(size)}")
            for name, size, kind, number in zip(
                names, entries["SIZE"], entries["TYPE"], counts, strict=True
            )
        ]  # fmt: skip
        # Padding fields are all called "_"; numpy wants names to differ.
        columns = [
            (f"_{place}", *column[1:]) if column[0] == "_" else column
            for place, column in enumerate(columns)
        ]
        dtype = np.dtype(columns)
        data = entries["DATA"][0].lower()
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise failure(
            path,
            lines,
            f"the header is incomplete ({error}), FIELDS, SIZE, TYPE, POINTS and DATA are needed",
            "export the file again",
        ) from None
    if not {"x", "y", "z"} <= set(names) or count < 1:
        raise failure(
            path,
            lines,
            f"{count} points with the fields {', '.join(names)} came, points with x, y and z are "
            "needed",
            "export the coordinates too",
        )
    if data not in ("ascii", "binary"):
        raise failure(
            path,
            lines,
            f"DATA {data} came, ascii or binary is needed",
            "convert it with pcl_convert_pcd_ascii_binary IN OUT 1",
        )
    return _Header(names, dtype, count, data, lines, start)


def _text_records(path: Path, body: bytes, header: _Header) -> NDArray[np.void]:
    numbered = [
        (header.line_count + place, text.strip())
        for place, text in enumerate(body.decode("ascii", "replace").splitlines(), start=1)
        if text.strip()
    ]
    lines = Lines(path, [number for number, _ in numbered], [text for _, text in numbered])
    if len(lines.texts) != header.point_count:
        raise failure(
            path,
            lines.numbers[-1] if lines.numbers else header.line_count,
            f"{len(lines.texts)} points came, {header.point_count} are announced",
            "the file is cut off: copy or export it again",
        )
    widths = [int(np.prod(header.dtype[name].shape)) for name in header.dtype.names or ()]
    values = table(lines, what="a point of this file", columns=sum(widths))  # (N, C)
    records = np.zeros(header.point_count, header.dtype)
    column = 0
    for name, width in zip(header.dtype.names or (), widths, strict=True):
        part = values[:, column : column + width]
        records[name] = part if header.dtype[name].shape else part[:, 0]
        column += width
    return records


def _colors(records: NDArray[np.void], names: list[str]) -> NDArray[np.uint8] | None:
    for name in ("rgb", "rgba"):
        if name in names and records.dtype[name].itemsize == 4:
            packed = np.ascontiguousarray(records[name]).view("<u4")  # (N,) 0xAARRGGBB
            parts = [(packed >> shift) & 255 for shift in (16, 8, 0)]
            return np.stack(parts, axis=1).astype(np.uint8)  # (N, 3)
    return None
