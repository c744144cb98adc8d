"""Meshes with pictures on them: a shape, and for each corner of a triangle a place in a picture."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltenet.errors import InputError, UsageError
from ltenet.files import atomic_path
from ltenet.formats.text import Lines, failure, read_lines
from ltenet.io import load
from ltenet.rendering import Image, write_png
from ltenet.shape import FloatArray, IntArray, Shape
from ltenet.transferring.pictures import as_array, looked_up, pillow, read_picture

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
                f"{self.shape.name}: places in the picture for {len(self.corners)} triangles came; "
                f"one for each of {0 if faces is None else len(faces)} is needed; export the "
                "mesh with its texture coordinates"
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
        f"{path}: '{path.suffix}' cannot hold a texture; .obj or .glb is needed; choose one, or "
        ".ply for colours of points"
    )


def _read_obj(path: Path) -> TexturedMesh | None:
    shape = load(path)
    lines = read_lines(path)
    uv: list[list[float]] = []
    corners: list[list[int]] = []
    painted: list[int] = []
    libraries: list[str] = []
    names: dict[str, int] = {}
    current = -1
    for number, text in zip(lines.numbers, lines.texts, strict=True):
        word, _, rest = text.partition(" ")
        if word == "vt":
            uv.append(_place(path, number, rest))
        elif word == "mtllib":
            libraries.append(rest.strip())
        elif word == "usemtl":
            current = names.setdefault(rest.strip(), len(names))
        elif word == "f":
            places = [_corner(path, number, corner, len(uv)) for corner in rest.split()]
            for last in range(2, len(places)):  # the same fan as the triangles of the shape
                corners.append([places[0], places[last - 1], places[last]])
                painted.append(-1 if min(places) < 0 else current)
    if not uv or shape.faces is None or all(min(places) < 0 for places in corners):
        return None
    if max(map(max, corners)) >= len(uv):
        raise failure(
            path, None, f"a face names a vt beyond the {len(uv)} of the file", "export it again"
        )
    files = {}
    for library in libraries:
        if (path.parent / library).is_file():
            files.update(_pictures_of(path.parent / library))
        else:
            logger.warning("%s: %s is not there; the mesh is read without pictures", path, library)
    pictures: list[Image] = []
    numbers = np.full(len(names) + 1, -1)
    for name, place in names.items():
        if name in files and files[name].is_file():
            numbers[place] = len(pictures)
            pictures.append(read_picture(files[name]))
        elif name in files:
            logger.warning("%s: the picture %s is not there", path, files[name])
    return TexturedMesh(
        shape,
        np.array(uv),
        np.maximum(np.array(corners), 0),
        tuple(pictures),
        numbers[np.array(painted)],  # -1 finds the last one, which is -1
    )


def _place(path: Path, number: int, rest: str) -> list[float]:
    try:
        u, v = (float(value) for value in rest.split()[:2])
    except ValueError:
        raise failure(path, number, f"'vt {rest}' came, u and v are needed", "look there") from None
    return [u, v]


def _corner(path: Path, number: int, corner: str, seen: int) -> int:
    """Index into uv of `v/vt/vn`, -1 if it has none; negative numbers count back."""
    parts = corner.split("/")
    if len(parts) < 2 or not parts[1]:
        return -1
    try:
        place = int(parts[1])
    except ValueError:
        place = 0
    index = place - 1 if place > 0 else seen + place
    if place == 0 or index < 0:
        raise failure(
            path, number, f"'{corner}' names a vt that is not there", "export the mesh again"
        )
    return index


def _pictures_of(library: Path) -> dict[str, Path]:
    """Pictures of the diffuse colour of a .mtl file, by material."""
    lines: Lines = read_lines(library)
    found: dict[str, Path] = {}
    name = ""
    for text in lines.texts:
        word, _, rest = text.partition(" ")
        if word == "newmtl":
            name = rest.strip()
        elif word.lower() == "map_kd":
            # Options such as -s 1 1 1 come first; a name may have blanks in it.
            whole = rest.strip().replace("\\", "/")
            plain = library.parent / whole
            found[name] = plain if plain.is_file() else library.parent / whole.split()[-1]
    return found


def _read_gltf(path: Path) -> TexturedMesh | None:
    import trimesh

    shape = load(path)  # complains about damaged files in our words
    scene = trimesh.load(str(path), process=False, maintain_order=True)
    geometry = scene.to_geometry() if isinstance(scene, trimesh.Scene) else scene
    visual: Any = getattr(geometry, "visual", None)
    uv = getattr(visual, "uv", None)
    if shape.faces is None or uv is None or len(uv) != len(shape):
        return None
    material = visual.material
    picture = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    pictures = () if picture is None else (as_array(picture),)
    painted = np.full(len(shape.faces), len(pictures) - 1)
    return TexturedMesh(shape, np.asarray(uv, np.float64), shape.faces, pictures, painted)


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
    import trimesh.visual

    tools: Any = trimesh  # which types a part of itself only
    assert mesh.shape.faces is not None
    scene = tools.Scene()
    for number in np.unique(mesh.painted):
        rows = mesh.painted == number
        pairs = np.stack([mesh.shape.faces[rows], mesh.corners[rows]], axis=-1).reshape(-1, 2)
        unique, faces = np.unique(pairs, axis=0, return_inverse=True)  # (n, 2), (3 F,)
        material = tools.visual.material.PBRMaterial(roughnessFactor=1.0, metallicFactor=0.0)
        if number >= 0:
            material.baseColorTexture = pillow().fromarray(mesh.pictures[number])
        part = tools.Trimesh(
            vertices=mesh.shape.points[unique[:, 0]],
            faces=faces.reshape(-1, 3),
            visual=tools.visual.TextureVisuals(uv=mesh.uv[unique[:, 1]], material=material),
            process=False,
        )
        scene.add_geometry(part, geom_name=f"{mesh.shape.name}_{number}")
    with atomic_path(path, force=force) as temporary:
        temporary.write_bytes(scene.export(file_type="glb"))
    return [path]
