"""Meshes with pictures on them: a shape, and for each corner of a triangle a place in a picture."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ltenet.drawing.rendering import Image, png_bytes, write_png
from ltenet.errors import InputError, UsageError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.formats.gltf import merged, read_pictures, read_scene
from ltenet.io.formats.gltf_writing import Part, glb_bytes
from ltenet.io.formats.obj import parse_obj
from ltenet.io.formats.text import beside, read_lines, shown
from ltenet.io.pictures import decoded, looked_up, read_picture
from ltenet.shape import Shape

logger = logging.getLogger(__name__)

#: What textured meshes are read from and written to.
SUFFIXES = (".obj", ".glb", ".gltf")

#: Shade where there is no picture.
_PLAIN = 128.0


@dataclass(frozen=True, eq=False)
class TexturedMesh:
    """A mesh with pictures.

    Attributes
    ----------
    shape
        The mesh, numbered as `ltenet.load` numbers it.
    uv
        (T, 2) places in the picture: u to the right, v up, the picture from 0 to 1.
    corners
        (F, 3) place of each corner of each triangle, an index into `uv`.
    pictures
        (H, W, 3 or 4) uint8 each.
    painted
        (F,) picture of each triangle, -1 where there is none.
    """

    shape: Shape
    uv: FloatArray
    corners: IntArray
    pictures: tuple[Image, ...]
    painted: IntArray

    def __post_init__(self) -> None:
        faces = self.shape.faces
        if faces is None or self.corners.shape != faces.shape or len(self.painted) != len(faces):
            raise InputError(
                f"{self.shape.name}: got texture coordinates for {len(self.corners)} triangles, "
                f"expected {0 if faces is None else len(faces)}; try exporting the mesh with its "
                "texture coordinates"
            )

    def colors_at(self, faces: IntArray, weights: FloatArray) -> FloatArray:
        """Colours (N, 3), 0 to 255, at places in (N,) triangles with (N, 3) barycentric weights."""
        places = np.einsum("nk,nkd->nd", weights, self.uv[self.corners[faces]])  # (N, 2)
        colors = np.full((len(faces), 3), _PLAIN)
        for number, picture in enumerate(self.pictures):
            rows = np.flatnonzero(self.painted[faces] == number)
            colors[rows] = looked_up(picture, places[rows])
        return colors

    def baked(self) -> Shape:
        """Return the shape with the picture as colours of its points."""
        assert self.shape.faces is not None
        count, faces = len(self.shape), self.shape.faces
        sums, total = np.zeros((count, 3)), np.zeros(count)
        rows = np.flatnonzero(self.painted >= 0)
        for corner in range(3):
            weights = np.zeros((len(rows), 3))
            weights[:, corner] = 1
            colors = self.colors_at(rows, weights)  # (R, 3)
            points = faces[rows, corner]  # (R,)
            total += np.bincount(points, minlength=count)
            for channel in range(3):
                sums[:, channel] += np.bincount(points, colors[:, channel], count)
        shades = np.where(total[:, None] > 0, sums / np.maximum(total, 1)[:, None], _PLAIN)
        return self.with_points(self.shape.points, colors=np.rint(shades).astype(np.uint8)).shape

    def with_points(
        self, points: FloatArray, *, colors: NDArray[np.uint8] | None = None
    ) -> TexturedMesh:
        """Return the same mesh, with its pictures, at other places."""
        shape = replace(self.shape, points=points, colors=colors)
        return replace(self, shape=shape)


def read_textured(path: str | os.PathLike[str]) -> TexturedMesh | None:
    """Read a mesh with its pictures from `.obj` or `.glb`; None if it has no such places."""
    path = Path(path)
    if path.suffix.lower() == ".obj":
        return _read_obj(path)
    if path.suffix.lower() in (".glb", ".gltf"):
        return _read_gltf(path)
    return None


def write_textured(
    mesh: TexturedMesh, path: str | os.PathLike[str], *, force: bool = False
) -> list[Path]:
    """Write `.obj` with `.mtl` and pictures beside it, or one `.glb`; return the files.

    A `.glb` has one place in the picture per point, so points on seams are split there.
    """
    path = Path(path)
    if path.suffix.lower() == ".obj":
        return _write_obj(mesh, path, force=force)
    if path.suffix.lower() == ".glb":
        return _write_glb(mesh, path, force=force)
    raise UsageError(
        f"{path}: got the suffix '{path.suffix}', expected .obj or .glb, which hold textures; try "
        ".ply for colours of points"
    )


def _read_obj(path: Path) -> TexturedMesh | None:
    file = parse_obj(path)
    if file.shape.faces is None or not (file.corners >= 0).any():
        return None
    found: dict[str, Path] = {}
    for library in file.libraries:
        found.update(_pictures_of(path, library))
    pictures: list[Image] = []
    numbers = np.full(len(file.names) + 1, -1)  # of the picture of each material; last: none
    for place, name in enumerate(file.names):
        if name in found:
            numbers[place] = len(pictures)
            pictures.append(read_picture(found[name]))
    painted = np.where((file.corners >= 0).all(axis=1), numbers[file.materials], -1)  # (F,)
    return TexturedMesh(file.shape, file.uv, np.maximum(file.corners, 0), tuple(pictures), painted)


def _pictures_of(path: Path, library: str) -> dict[str, Path]:
    """Pictures of the diffuse colour in a .mtl file, by material; none outside its folder."""
    file = beside(path, library)
    if file is None or not file.is_file():
        logger.warning("%s: no %s in its folder; read without its pictures", path, shown(library))
        return {}
    found: dict[str, Path] = {}
    name = ""
    for text in read_lines(file).texts:
        word, rest = (*text.split(None, 1), "", "")[:2]
        if word == "newmtl":
            name = rest
        elif word.lower() == "map_kd" and rest:
            # Options such as -s 1 1 1 come first; a name may have blanks in it.
            candidates = [beside(file, rest), beside(file, rest.split()[-1])]
            picture = next((c for c in candidates if c is not None and c.is_file()), None)
            if picture is None:
                logger.warning("%s: no picture %s in its folder", file, shown(rest))
            else:
                found[name] = picture
    return found


def _read_gltf(path: Path) -> TexturedMesh | None:
    parts = read_scene(path)
    shape = merged(parts, path.stem)
    if shape.faces is None or all(part.uv is None for part in parts):
        return None
    used = sorted({p.picture for p in parts if p.picture is not None and p.uv is not None})
    encoded = read_pictures(path, used)
    empty = (np.zeros((len(part.points), 2)) for part in parts)
    uv = [zeros if part.uv is None else part.uv for part, zeros in zip(parts, empty, strict=True)]
    painted = [
        np.full(len(p.faces), -1 if p.picture is None or p.uv is None else used.index(p.picture))
        for p in parts
    ]
    return TexturedMesh(
        shape,
        np.concatenate(uv),
        shape.faces,
        tuple(decoded(path, encoded[number]) for number in used),
        np.concatenate(painted),
    )


def _write_obj(mesh: TexturedMesh, path: Path, *, force: bool) -> list[Path]:
    assert mesh.shape.faces is not None
    library = path.with_suffix(".mtl")
    pictures = [
        path.with_name(f"{path.stem}{'' if len(mesh.pictures) == 1 else f'_{number}'}.png")
        for number in range(len(mesh.pictures))
    ]
    text = [f"mtllib {library.name}"]
    text += [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.shape.points.tolist()]
    text += [f"vt {u!r} {v!r}" for u, v in mesh.uv.tolist()]
    current = None
    rows = zip(mesh.painted.tolist(), mesh.shape.faces.tolist(), mesh.corners.tolist(), strict=True)
    for number, face, places in rows:
        if number != current:
            text.append(f"usemtl {'plain' if number < 0 else f'picture_{number}'}")
            current = number
        text.append(
            "f " + " ".join(f"{v + 1}/{vt + 1}" for v, vt in zip(face, places, strict=True))
        )
    materials = ["newmtl plain", "Kd 0.5 0.5 0.5"]
    for number, picture in enumerate(pictures):
        materials += [f"newmtl picture_{number}", "Kd 1 1 1", f"map_Kd {picture.name}"]
    with atomic_path(path, force=force) as temporary:
        temporary.write_text("\n".join(text) + "\n", "utf-8", newline="\n")
        with atomic_path(library, force=force) as other:
            other.write_text("\n".join(materials) + "\n", "utf-8", newline="\n")
        for file, pixels in zip(pictures, mesh.pictures, strict=True):
            write_png(file, pixels, force=force)
    return [path, library, *pictures]


def _write_glb(mesh: TexturedMesh, path: Path, *, force: bool) -> list[Path]:
    assert mesh.shape.faces is not None
    parts = []
    for number in np.unique(mesh.painted):
        rows = mesh.painted == number
        pairs = np.stack([mesh.shape.faces[rows], mesh.corners[rows]], axis=-1).reshape(-1, 2)
        unique, faces = np.unique(pairs, axis=0, return_inverse=True)  # (n, 2), (3 F,)
        parts.append(
            Part(
                f"{mesh.shape.name}_{number}",
                mesh.shape.points[unique[:, 0]],
                faces.reshape(-1, 3),
                mesh.uv[unique[:, 1]],
                png_bytes(mesh.pictures[number]) if number >= 0 else None,
            )
        )
    with atomic_path(path, force=force) as temporary:
        temporary.write_bytes(glb_bytes(parts))
    return [path]
