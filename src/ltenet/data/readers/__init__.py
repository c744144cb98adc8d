"""Readers of benchmarks and of the user's own folders, all as a `ShapeSet`.

A reader recognises the public layout of its set; `tosca`, `shrec19` and `faust` also take the
evaluation archive of that name (`tosca.npz`, ...), given itself or as the folder that holds it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from ltenet.data.readers.archives import FaustArchive, Shrec19Archive, ToscaArchive
from ltenet.data.readers.common import Frame
from ltenet.data.readers.folder import Numbering, open_folder
from ltenet.data.readers.registrations import open_faust, open_scape
from ltenet.data.readers.shrec19 import open_shrec19
from ltenet.data.readers.smal import open_smal
from ltenet.data.readers.surreal import open_surreal
from ltenet.data.readers.tosca import open_tosca
from ltenet.data.shapeset import ShapeSet
from ltenet.errors import UsageError


class _Opener(Protocol):
    def __call__(self, path: Path, *, frame: Frame | None = None) -> ShapeSet: ...


class Reader(NamedTuple):
    """How to open a set.

    Attributes
    ----------
    open
        Opens the public layout.
    archive
        Opens the evaluation archive, where there is one.
    """

    open: _Opener
    archive: Callable[[Path], ShapeSet] | None = None


#: What `open_set` knows, by name.
READERS: dict[str, Reader] = {
    "surreal": Reader(open_surreal),
    "shrec19": Reader(open_shrec19, Shrec19Archive),
    "smal": Reader(open_smal),
    "tosca": Reader(open_tosca, ToscaArchive),
    "faust": Reader(open_faust, FaustArchive),
    "scape": Reader(open_scape),
    "folder": Reader(open_folder),
}


def open_set(
    name_or_folder: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    frame: Frame | None = None,
    numbering: Numbering | None = None,
) -> ShapeSet:
    """Open a set of shapes; they are read when they are asked for.

    Parameters
    ----------
    name_or_folder
        A name in `READERS`, or, without `path`, a folder or manifest of your own.
    path
        Folder or file of the set.
    frame
        Which axes of the files become x, y and z, where the set's usual ones are wrong.
    numbering
        "shared" says of your own shapes that vertices of one number correspond.

    Raises
    ------
    UsageError
        If the name is not known or the options do not fit it.
    MissingError
        If the data are not there.
    InputError
        If a file is damaged.
    """
    if path is None:
        if str(name_or_folder) in READERS:
            raise UsageError(
                f"the set '{name_or_folder}' came without a path; the folder with its data is "
                "needed; give it as the second argument"
            )
        name_or_folder, path = "folder", name_or_folder
    name, place = str(name_or_folder), Path(path)
    reader = READERS.get(name)
    if reader is None:
        raise UsageError(
            f"'{name}' is not a known set; one of {', '.join(READERS)} is needed; use 'folder' "
            "for shapes of your own"
        )
    if name == "folder":
        return open_folder(place, frame=frame, numbering=numbering)
    if numbering is not None:
        raise UsageError(
            f"numbering '{numbering}' came for '{name}', which has its own; it is for 'folder'; "
            "leave it out"
        )
    if reader.archive is not None:
        file = place / f"{name}.npz" if place.is_dir() else place
        if file.suffix.lower() == ".npz" and file.is_file():
            if frame is not None:
                raise UsageError(
                    f"frame '{frame}' came for the archive {file}, which knows its own; it is for "
                    "the public files; leave it out"
                )
            return reader.archive(file)
    return reader.open(place, frame=frame)
