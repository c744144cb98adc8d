"""The report: two shapes and the map between them in one self-contained HTML file."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import IntArray
from ltenet.io import load
from ltenet.io.textures import TexturedMesh
from ltenet.shape import Shape
from ltenet.viewer.page import report_html
from ltenet.viewer.scene import Scene, build_scene
from ltenet.viewer.textures import build_texture, texture_of, usable

ShapeLike = Shape | TexturedMesh | str | os.PathLike[str] | ArrayLike


@dataclass(frozen=True)
class Report:
    """A report; a notebook displays it.

    Attributes
    ----------
    html
        The whole page.
    """

    html: str

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the page; `force` overwrites an existing file."""
        with atomic_path(path, force=force) as temporary:
            temporary.write_text(self.html, encoding="utf-8", newline="\n")

    def _repr_html_(self) -> str:
        return framed(self.html)


def view(
    source: ShapeLike,
    target: ShapeLike,
    correspondence: Correspondence | ArrayLike,
    *,
    save: str | os.PathLike[str] | None = None,
    truth: Correspondence | ArrayLike | None = None,
    title: str | None = None,
    force: bool = False,
) -> Report:
    """Make a report for a browser or a notebook.

    Parameters
    ----------
    source, target
        The shapes that the map belongs to, as shapes, files, meshes with pictures or (N, 3)
        points. A picture is shown on both shapes; that of the source comes first.
    correspondence
        The map, or its (N,) target indices with -1 for unmatched.
    save
        HTML file to write; None writes none.
    truth
        The true map; with it the report shows errors and the accuracy curve.
    title
        Heading; the names of the shapes by default.
    force
        Overwrite an existing file.

    Returns
    -------
    The report, which a notebook displays.
    """
    meshes = as_mesh(source, "source"), as_mesh(target, "target")
    size = len(shape_of(meshes[1]))
    if not isinstance(correspondence, Correspondence):
        correspondence = Correspondence(np.asarray(correspondence), size)
    true = _true_indices(truth, size)
    report = Report(report_html(scene_of(*meshes, correspondence, truth=true, title=title)))
    if save is not None:
        report.save(save, force=force)
    return report


def scene_of(
    source: Shape | TexturedMesh,
    target: Shape | TexturedMesh,
    correspondence: Correspondence,
    *,
    truth: IntArray | None = None,
    title: str | None = None,
) -> Scene:
    """Describe a pair, with the texture of the source or else of the target, if there is one."""
    shapes = shape_of(source), shape_of(target)
    texture = None
    # `build_scene` rejects a map that does not fit, with a better message.
    if (len(shapes[0]), len(shapes[1])) == (len(correspondence), correspondence.target_size):
        if isinstance(source, TexturedMesh):
            texture = build_texture(*shapes, correspondence, source, "source")
        elif isinstance(target, TexturedMesh):
            texture = build_texture(*shapes, correspondence, target, "target")
    return build_scene(*shapes, correspondence, truth=truth, texture=texture, title=title)


def notebook_html(correspondence: Correspondence, *, height: int = 560) -> str | None:
    """Return the viewer for a notebook cell; None if no shapes are attached to the map."""
    source, target = correspondence.source, correspondence.target
    if source is None or target is None:
        return None
    return framed(report_html(build_scene(source, target, correspondence)), height=height)


def framed(page: str, *, height: int = 560) -> str:
    """Embed a page in a sandboxed frame that may only run scripts and save files."""
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" style="width: 100%; height: {height}px; '
        f'border: 0; border-radius: 12px" srcdoc="{html.escape(page)}"></iframe>'
    )


def as_mesh(given: ShapeLike, name: str) -> Shape | TexturedMesh:
    """Convert a file or (N, 3) points to a shape, with its texture if it has one."""
    if isinstance(given, TexturedMesh):
        return given if usable(given) else given.shape
    if isinstance(given, Shape):
        return given
    if isinstance(given, str | os.PathLike):
        return texture_of(given) or load(Path(given))
    return Shape(np.asarray(given), name=name)


def shape_of(mesh: Shape | TexturedMesh) -> Shape:
    """Return the shape without its texture."""
    return mesh.shape if isinstance(mesh, TexturedMesh) else mesh


def _true_indices(truth: Correspondence | ArrayLike | None, size: int) -> IntArray | None:
    if truth is None:
        return None
    if isinstance(truth, Correspondence):
        if truth.target_size != size:
            raise InputError(
                f"got a truth onto {truth.target_size} points for a target of {size}, expected the "
                "same number; try the truth of this target"
            )
        return truth.indices
    return Correspondence(np.asarray(truth), size).indices
