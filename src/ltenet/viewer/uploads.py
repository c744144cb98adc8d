"""Checks of uploaded files before anything parses them: kind, size, declared counts."""

from __future__ import annotations

import re
import struct
import zipfile
from pathlib import Path, PurePosixPath

from ltenet.errors import InputError
from ltenet.io import LOADERS
from ltenet.io.formats.arrays import check_array
from ltenet.io.formats.documents import parse_json

#: Most bytes of a file, most points, and most bytes of an unpacked archive.
BYTE_LIMIT = 256 * 2**20
POINT_LIMIT = 1_000_000
UNPACKED_LIMIT = 2 * 2**30

_LONGEST_NAME = 120
_HEADER = 64 * 2**10
#: First bytes by suffix.
_BEGINNINGS = {".ply": b"ply", ".glb": b"glTF", ".npy": b"\x93NUMPY", ".npz": b"PK"}
_TEXT = (".obj", ".off", ".xyz", ".txt", ".csv", ".gltf")


def checked_suffix(name: str) -> str:
    """Suffix of an uploaded file's name, if it can be read."""
    suffix = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    if suffix not in LOADERS:
        raise InputError(
            f"got a file with the suffix '{suffix}', expected one of {', '.join(LOADERS)}; try "
            "converting it"
        )
    return suffix


def display_name(name: str) -> str:
    """Name a shape after its file; the name is never used as a path."""
    stem = PurePosixPath(name.replace("\\", "/")).stem
    printable = "".join(sign if sign.isprintable() else " " for sign in stem).strip()
    return printable[:_LONGEST_NAME] or "shape"


def check_beginning(path: Path) -> None:
    """Reject a file by its size, first bytes and declared counts.

    Cheap for any content; `check_content` looks closer.

    Parameters
    ----------
    path
        The uploaded file, with a suffix that passed `checked_suffix`.

    Raises
    ------
    InputError
        If the file is empty, too large, of another kind, or smaller than it declares.
    """
    suffix, size = path.suffix, path.stat().st_size
    if not 0 < size <= BYTE_LIMIT:
        raise InputError(
            f"got a file of {size:,} bytes, expected 1 to {BYTE_LIMIT:,}; try fewer points, or "
            "`ltenet match`"
        )
    with path.open("rb") as stream:
        head = stream.read(_HEADER)
    beginning = _BEGINNINGS.get(suffix)
    if (beginning and not head.startswith(beginning)) or (suffix in _TEXT and b"\0" in head):
        raise InputError(
            f"got content that is not that of a {suffix} file, expected content that fits the "
            "suffix; try renaming the file, or exporting it again"
        )
    if suffix == ".ply":
        declared = [int(count) for count in re.findall(rb"^element \w+ (\d{1,18})", head, re.M)]
        _limit(sum(declared), size)
    elif suffix == ".npy":
        check_array(path)


def check_content(path: Path) -> None:
    """Reject archives that unpack to too much, and scenes that refer to other files.

    Their tables may be large, too, so this runs in the worker, whose memory is limited.
    """
    if path.suffix == ".npz":
        _check_archive(path)
    elif path.suffix in (".glb", ".gltf"):
        _check_references(path)


def _limit(declared: int, size: int) -> None:
    """Every format takes at least one byte per element."""
    if declared > size:
        raise InputError(
            f"got a header that declares {declared:,} elements in {size:,} bytes, expected no more "
            "than fit; try exporting the file again"
        )


def _check_archive(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile as error:
        raise InputError(
            f"got an unreadable .npz file ({error}), expected an archive of arrays; try numpy.savez"
        ) from None
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > 64 or unpacked > UNPACKED_LIMIT:
        raise InputError(
            f"got an archive of {len(entries)} arrays and {unpacked:,} bytes, expected at most 64 "
            f"and {UNPACKED_LIMIT:,}; try saving points and faces alone"
        )


def _check_references(path: Path) -> None:
    """Reject scenes that refer to other files."""
    content = path.read_bytes()
    if path.suffix == ".glb":
        length = struct.unpack_from("<I", content, 12)[0] if len(content) >= 20 else 0
        content = content[20 : 20 + length]
    try:
        scene = parse_json(content.decode("utf-8-sig"), path)
        parts = [*scene.get("buffers", ()), *scene.get("images", ())]
        links = [part["uri"] for part in parts if "uri" in part]
    except (ValueError, AttributeError, TypeError):
        raise InputError(
            "got an unreadable scene description, expected valid glTF; try exporting it again"
        ) from None
    if any(not str(link).startswith("data:") for link in links):
        raise InputError(
            "got a scene that refers to other files, expected one that holds everything; try "
            "exporting it as .glb"
        )
