"""The report: one HTML file that shows two shapes and the map between them, anywhere."""

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
from ltenet.io import load
from ltenet.shape import IntArray, Shape
from ltenet.transferring.textured import TexturedMesh
from ltenet.viewer.page import report_html
from ltenet.viewer.scene import Scene, build_scene
from ltenet.viewer.textures import build_texture, texture_of, usable

ShapeLike = Shape | TexturedMesh | str | os.PathLike[str] | ArrayLike


@dataclass(frozen=True)
class Report:
    """A report; shows itself in a notebook.

    Attributes
    ----------
    html
        The whole page.
    """

    html: str

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the page; a file that is there is replaced with `force` only."""
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
    """Make a report to look at, in a browser or a notebook.

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
        What stands at the head; the names of the shapes by default.
    force
        Replace a file that is already there.

    Returns
    -------
    Report, which a notebook shows.
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
    """Describe a pair with the picture of one of them, if there is one; the source comes first."""
    shapes = shape_of(source), shape_of(target)
    texture = None
    # A map that does not fit is refused by `build_scene`, in better words.
    if (len(shapes[0]), len(shapes[1])) == (len(correspondence), correspondence.target_size):
        if isinstance(source, TexturedMesh):
            texture = build_texture(*shapes, correspondence, source, "source")
        elif isinstance(target, TexturedMesh):
            texture = build_texture(*shapes, correspondence, target, "target")
    return build_scene(*shapes, correspondence, truth=truth, texture=texture, title=title)


def notebook_html(correspondence: Correspondence, *, height: int = 560) -> str | None:
    """Return the viewer for a notebook cell; None if the map does not hold its shapes."""
    source, target = correspondence.source, correspondence.target
    if source is None or target is None:
        return None
    return framed(report_html(build_scene(source, target, correspondence)), height=height)


def framed(page: str, *, height: int = 560) -> str:
    """Put a page into a frame that can do nothing but run its own scripts and save files."""
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" style="width: 100%; height: {height}px; '
        f'border: 0; border-radius: 12px" srcdoc="{html.escape(page)}"></iframe>'
    )


def as_mesh(given: ShapeLike, name: str) -> Shape | TexturedMesh:
    """Return a shape, with its picture if it has one, from a file or (N, 3) points if need be."""
    if isinstance(given, TexturedMesh):
        return given if usable(given) else given.shape
    if isinstance(given, Shape):
        return given
    if isinstance(given, str | os.PathLike):
        return texture_of(given) or load(Path(given))
    return Shape(np.asarray(given), name=name)


def shape_of(mesh: Shape | TexturedMesh) -> Shape:
    """Return the shape alone."""
    return mesh.shape if isinstance(mesh, TexturedMesh) else mesh


def _true_indices(truth: Correspondence | ArrayLike | None, size: int) -> IntArray | None:
    if truth is None:
        return None
    if isinstance(truth, Correspondence):
        if truth.target_size != size:
            raise InputError(
                f"a truth onto {truth.target_size} points came for a target of {size}; they must "
                "agree; check that the truth belongs to this target"
            )
        return truth.indices
    return Correspondence(np.asarray(truth), size).indices
