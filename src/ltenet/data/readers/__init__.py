"""Readers of benchmarks and of the user's own folders, all as a `ShapeSet`.

A reader recognises the public layout of its set; some also take the evaluation archive of that name
(`tosca.npz`, ...), given itself or as the folder that holds it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from ltenet.data.readers.archives import (
    FaustArchive,
    FaustRemeshArchive,
    Shrec07Archive,
    Shrec19Archive,
    ToscaArchive,
)
from ltenet.data.readers.common import Frame
from ltenet.data.readers.folder import Numbering, open_folder
from ltenet.data.readers.mesh_benchmarks import (
    open_dt4d,
    open_dt4d_across,
    open_faust_r,
    open_scape_r,
    open_shrec16_cuts,
    open_shrec16_holes,
    open_shrec19_r,
    open_smal_r,
    open_topkids,
)
from ltenet.data.readers.registrations import open_faust, open_scape
from ltenet.data.readers.shrec07 import open_shrec07
from ltenet.data.readers.shrec19 import open_shrec19
from ltenet.data.readers.smal import open_smal
from ltenet.data.readers.surreal import open_surreal
from ltenet.data.readers.tosca import open_tosca
from ltenet.data.shapeset import ShapeSet
from ltenet.errors import UsageError


class _Opener(Protocol):
    def __call__(self, path: Path, *, frame: Frame | None = None) -> ShapeSet: ...


#: How a set is tested.
ProtocolName = Literal["samples", "listed", "landmarks"]


class Reader(NamedTuple):
    """How to open a set.

    Attributes
    ----------
    open
        Opens the public layout.
    archive
        Opens the evaluation archive, where there is one.
    protocol
        How the set is tested: "samples" draws points on both shapes, "listed" scores whole meshes
        at listed vertices, "landmarks" at landmarks.
    folder
        Usual name of the folder with the public files.
    """

    open: _Opener
    archive: Callable[[Path], ShapeSet] | None = None
    protocol: ProtocolName = "samples"
    folder: str | None = None


#: What `open_set` knows, by name.
READERS: dict[str, Reader] = {
    "surreal": Reader(open_surreal),
    "shrec19": Reader(open_shrec19, Shrec19Archive),
    "smal": Reader(open_smal),
    "tosca": Reader(open_tosca, ToscaArchive),
    "faust": Reader(open_faust, FaustArchive),
    "scape": Reader(open_scape),
    "faust_r": Reader(open_faust_r, FaustRemeshArchive, "listed", "FAUST_r"),
    "scape_r": Reader(open_scape_r, None, "listed", "SCAPE_r"),
    "shrec19_r": Reader(open_shrec19_r, None, "listed", "SHREC19_r"),
    "smal_r": Reader(open_smal_r, None, "listed", "SMAL_r"),
    "dt4d": Reader(open_dt4d, None, "listed", "DT4D_r"),
    "dt4d-across": Reader(open_dt4d_across, None, "listed", "DT4D_r"),
    "topkids": Reader(open_topkids, None, "listed", "TOPKIDS"),
    "shrec16-cuts": Reader(open_shrec16_cuts, None, "listed", "SHREC16"),
    "shrec16-holes": Reader(open_shrec16_holes, None, "listed", "SHREC16"),
    "shrec07": Reader(open_shrec07, Shrec07Archive, "landmarks", "watertight_shrec07"),
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
                f"got the set '{name_or_folder}' without a path, expected the folder with its "
                "data; try that folder as the second argument"
            )
        name_or_folder, path = "folder", name_or_folder
    name, place = str(name_or_folder), Path(path)
    reader = READERS.get(name)
    if reader is None:
        raise UsageError(
            f"got the unknown set '{name}', expected one of {', '.join(READERS)}; try 'folder' for "
            "your own shapes"
        )
    if name == "folder":
        return open_folder(place, frame=frame, numbering=numbering)
    if numbering is not None:
        raise UsageError(
            f"got numbering '{numbering}' for '{name}', which has its own, expected it for "
            "'folder' alone; try leaving it out"
        )
    if reader.archive is not None:
        file = place / f"{name}.npz" if place.is_dir() else place
        if file.suffix.lower() == ".npz" and file.is_file():
            if frame is not None:
                raise UsageError(
                    f"got frame '{frame}' for the archive {file}, which has its own, expected it "
                    "for the public files alone; try leaving it out"
                )
            return reader.archive(file)
    return reader.open(place, frame=frame)


def set_folder(name: str, data: Path) -> Path:
    """Folder of one set inside a folder of sets: the subfolder of its name, or `data` itself."""
    if (data / f"{name}.npz").is_file() or not data.is_dir():
        return data
    wanted = {name.casefold(), (READERS[name].folder or name).casefold()}
    inside = [path for path in sorted(data.iterdir()) if path.name.casefold() in wanted]
    return next((path for path in inside if path.is_dir()), data)


def set_name(data: Path) -> str:
    """Name of the set that a folder or archive is called after; "folder" for shapes of one's own.

    Raises
    ------
    UsageError
        If the folder holds several sets.
    """
    names = {name.casefold(): name for name in READERS}
    names |= {reader.folder.casefold(): key for key, reader in READERS.items() if reader.folder}
    if data.stem.casefold() in names:
        return names[data.stem.casefold()]
    inside = [] if not data.is_dir() else sorted(path.stem.casefold() for path in data.iterdir())
    found = list(dict.fromkeys(names[stem] for stem in inside if stem in names))
    if len(found) > 1:
        raise UsageError(
            f"{data}: got a folder with {', '.join(found)}, expected one set; try --set "
            f"pairs.what={found[0]}"
        )
    return found[0] if found else "folder"
