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
from ltenet.viewer.page import report_html
from ltenet.viewer.scene import build_scene

ShapeLike = Shape | str | os.PathLike[str] | ArrayLike


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
        The shapes that the map belongs to, as shapes, files or (N, 3) points.
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
    shapes = as_shape(source, "source"), as_shape(target, "target")
    size = len(shapes[1])
    if not isinstance(correspondence, Correspondence):
        correspondence = Correspondence(np.asarray(correspondence), size)
    scene = build_scene(*shapes, correspondence, truth=_true_indices(truth, size), title=title)
    report = Report(report_html(scene))
    if save is not None:
        report.save(save, force=force)
    return report


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


def as_shape(given: ShapeLike, name: str) -> Shape:
    """Return a shape, from a file or from (N, 3) points if need be."""
    if isinstance(given, Shape):
        return given
    if isinstance(given, str | os.PathLike):
        return load(Path(given))
    return Shape(np.asarray(given), name=name)


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
