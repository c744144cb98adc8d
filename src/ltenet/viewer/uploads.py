"""Files from the browser, looked at before anything parses them: kind, size, what they declare."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np

from ltenet.errors import InputError
from ltenet.io import LOADERS

#: Largest file, most points, and most that an archive may unpack to.
BYTE_LIMIT = 256 * 2**20
POINT_LIMIT = 1_000_000
UNPACKED_LIMIT = 2 * 2**30

_LONGEST_NAME = 120
_HEADER = 64 * 2**10
#: What files of a kind begin with.
_BEGINNINGS = {".ply": b"ply", ".glb": b"glTF", ".npy": b"\x93NUMPY", ".npz": b"PK"}
_TEXT = (".obj", ".off", ".xyz", ".txt", ".csv", ".gltf")


def checked_suffix(name: str) -> str:
    """Suffix of an uploaded file's name, if it is one that can be read."""
    suffix = PurePosixPath(name.replace("\\", "/")).suffix.lower()
    if suffix not in LOADERS:
        raise InputError(
            f"'{suffix}' is not a known suffix; one of {', '.join(LOADERS)} is needed; "
            "convert the file first"
        )
    return suffix


def display_name(name: str) -> str:
    """Name a shape after its file; the name is never used as a path."""
    stem = PurePosixPath(name.replace("\\", "/")).stem
    printable = "".join(sign if sign.isprintable() else " " for sign in stem).strip()
    return printable[:_LONGEST_NAME] or "shape"


def check_beginning(path: Path) -> None:
    """Refuse a file by its size and first bytes: of another kind, or declaring too much.

    Cheap, whatever the file holds; what needs a closer look is `check_content`.

    Parameters
    ----------
    path
        The uploaded file, with a suffix that `checked_suffix` let pass.

    Raises
    ------
    InputError
        If the file is empty, too large, or of another kind, or cannot hold what it declares.
    """
    suffix, size = path.suffix, path.stat().st_size
    if not 0 < size <= BYTE_LIMIT:
        raise InputError(
            f"a file of {size:,} bytes came; 1 to {BYTE_LIMIT:,} are allowed; "
            "reduce the shape, or match it with `ltenet match`"
        )
    with path.open("rb") as stream:
        head = stream.read(_HEADER)
    beginning = _BEGINNINGS.get(suffix)
    if (beginning and not head.startswith(beginning)) or (suffix in _TEXT and b"\0" in head):
        raise InputError(
            f"the content is not that of a {suffix} file; content and suffix must agree; "
            "rename the file, or export it again"
        )
    if suffix == ".ply":
        declared = [int(count) for count in re.findall(rb"^element \w+ (\d{1,18})", head, re.M)]
        _limit(sum(declared), size)
    elif suffix == ".npy":
        _limit(_declared_by_npy(path), size)


def check_content(path: Path) -> None:
    """Refuse an archive that unpacks to too much, and a scene that refers to other files.

    Lists of either may be long themselves, so this is for the worker, whose memory is limited.
    """
    if path.suffix == ".npz":
        _check_archive(path)
    elif path.suffix in (".glb", ".gltf"):
        _check_references(path)


def _limit(declared: int, size: int) -> None:
    """No format takes less than a byte for an element."""
    if declared > size:
        raise InputError(
            f"the header promises {declared:,} elements in {size:,} bytes; it cannot hold them; "
            "the file is damaged: export it again"
        )


def _declared_by_npy(path: Path) -> int:
    try:
        with path.open("rb") as stream:
            version = np.lib.format.read_magic(stream)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, kind = read(stream)
    except Exception as error:  # numpy raises whatever the bytes lead it to
        raise InputError(
            f"not a readable .npy file ({error}); an array of numbers is needed; "
            "write it again with numpy.save"
        ) from None
    if kind.hasobject:
        raise InputError(
            "the array holds Python objects; plain numbers are needed; convert it to floats"
        )
    return int(np.prod([int(side) for side in shape], dtype=object))


def _check_archive(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile as error:
        raise InputError(
            f"not a readable .npz file ({error}); an archive of arrays is needed; "
            "write it again with numpy.savez"
        ) from None
    unpacked = sum(entry.file_size for entry in entries)
    if len(entries) > 64 or unpacked > UNPACKED_LIMIT:
        raise InputError(
            f"an archive of {len(entries)} arrays and {unpacked:,} bytes came; at most 64 and "
            f"{UNPACKED_LIMIT:,} are allowed; save points and faces alone"
        )


def _check_references(path: Path) -> None:
    """Refuse scenes that would make the reader open other files."""
    content = path.read_bytes()
    if path.suffix == ".glb":
        length = struct.unpack_from("<I", content, 12)[0] if len(content) >= 20 else 0
        content = content[20 : 20 + length]
    try:
        scene = json.loads(content)
        parts = [*scene.get("buffers", ()), *scene.get("images", ())]
        links = [part["uri"] for part in parts if "uri" in part]
    except (ValueError, AttributeError, TypeError):
        raise InputError(
            "the scene's description cannot be read; valid glTF is needed; export it again"
        ) from None
    if any(not str(link).startswith("data:") for link in links):
        raise InputError(
            "the scene refers to other files; one that holds everything is needed; "
            "export it as .glb"
        )
