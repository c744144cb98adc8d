"""Point Cloud Data, the format of PCL: `DATA ascii` and `DATA binary`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.io.formats.tables import table, typed
from ltenet.io.formats.text import failure, read_bytes, shown, split_lines, whole_number
from ltenet.shape import Shape

_TYPES = {
    *(f"F{size}" for size in (4, 8)),
    *(f"{kind}{size}" for kind in "IU" for size in (1, 2, 4, 8)),
}


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
        if len(content) - header.byte_count < size:
            raise failure(
                path,
                None,
                f"got {len(content) - header.byte_count} bytes of points, expected {size}",
                "try copying or exporting the file again: it is cut off",
            )
        records = np.frombuffer(content, header.dtype, header.point_count, header.byte_count)
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
                "got no DATA line, expected one at the end of the header",
                "try exporting it again: it is cut off or not a PCD file",
            )
        words = content[start:stop].decode("ascii", "replace").split("#", 1)[0].split()
        if words:
            entries[words[0].upper()] = words[1:]
        lines, start = lines + 1, stop + 1
    try:
        names = entries["FIELDS"]
        counts = [whole_number(word) for word in entries.get("COUNT", ["1"] * len(names))]
        points = whole_number(entries["POINTS"][0])
        dtype = np.dtype(
            [
                _column(name if name != "_" else f"_{place}", kind.upper() + size, count)
                for place, (name, size, kind, count) in enumerate(
                    zip(names, entries["SIZE"], entries["TYPE"], counts, strict=True)
                )
            ]
        )
        data = entries["DATA"][0].lower()
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise failure(
            path,
            lines,
            f"got an incomplete header ({error}), expected FIELDS, SIZE, TYPE, POINTS and DATA",
            "try exporting the file again",
        ) from None
    single = all(axis in names and dtype[axis].shape == () for axis in "xyz")
    if not single or points is None or points < 1:
        raise failure(
            path,
            lines,
            f"got {points} points with the fields {shown(' '.join(names))}, expected points with "
            "x, y and z",
            "try exporting the coordinates too",
        )
    if data not in ("ascii", "binary"):
        raise failure(
            path,
            lines,
            f"got DATA {shown(data)}, expected ascii or binary",
            "try converting it with pcl_convert_pcd_ascii_binary IN OUT 1",
        )
    return _Header(names, dtype, points, data, lines, start)


def _column(name: str, code: str, count: int | None) -> Any:
    if code not in _TYPES or count is None or count < 1:
        raise ValueError(f"the field {shown(name)} has type {shown(code)} and count {count}")
    code = "<" + code.lower()
    return (name, code) if count == 1 else (name, code, (count,))


def _text_records(path: Path, body: bytes, header: _Header) -> NDArray[np.void]:
    lines = split_lines(path, body.decode("ascii", "replace"), after=header.line_count)
    if len(lines.texts) != header.point_count:
        raise failure(
            path,
            lines.numbers[-1] if lines.numbers else header.line_count,
            f"got {len(lines.texts)} points, expected {header.point_count}",
            "try copying or exporting the file again: it is cut off",
        )
    names = header.dtype.names or ()
    widths = [int(np.prod(header.dtype[name].shape)) for name in names]
    values = table(lines, what="a point", columns=sum(widths))  # (N, C)
    records = np.zeros(header.point_count, header.dtype)
    column = 0
    for name, width in zip(names, widths, strict=True):
        kind = header.dtype[name].base
        parts = [
            typed(lines, values[:, place], kind.str, what=f"the field {name}")
            for place in range(column, column + width)
        ]
        records[name] = np.stack(parts, axis=1) if header.dtype[name].shape else parts[0]
        column += width
    return records


def _colors(records: NDArray[np.void], names: list[str]) -> NDArray[np.uint8] | None:
    for name in ("rgb", "rgba"):
        if name in names and records.dtype[name].shape == () and records.dtype[name].itemsize == 4:
            packed = np.ascontiguousarray(records[name]).view("<u4")  # (N,) 0xAARRGGBB
            parts = [(packed >> shift) & 255 for shift in (16, 8, 0)]
            return np.stack(parts, axis=1).astype(np.uint8)  # (N, 3)
    return None
