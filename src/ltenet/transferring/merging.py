"""Several partial scans of one body, merged on a template that all of them are matched to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.shape import Shape
from ltenet.transferring.filling import gap
from ltenet.transferring.wrapping import wrap


class Merged(NamedTuple):
    """A template in the form of what several scans show.

    Attributes
    ----------
    shape
        The template's points and faces, where the scans lie.
    filled
        (V,) True for points that no scan shows.
    scans
        (V,) how many scans have a partner for each point of the template.
    """

    shape: Shape
    filled: NDArray[np.bool_]
    scans: IntArray


def merge_scans(maps: Sequence[Correspondence], template: Shape) -> Merged:
    """Wrap a template onto several scans at once.

    Parameters
    ----------
    maps
        From each scan to the template, with the scan attached. The scans lie in one frame and show
        one pose.
    template
        The shape that all of them are matched to.
    """
    if not maps:
        raise UsageError("merge: got no map, expected one for each scan; try at least one")
    total = np.zeros((len(template), 3))
    weight, scans = np.zeros(len(template)), np.zeros(len(template), np.int64)
    shown = []
    for number, each in enumerate(maps):
        if each.source is None:
            raise InputError(
                f"merge: got map {number} without its scan, expected it attached; try "
                "Correspondence.load(path, source=scan, target=template)"
            )
        corr = each.attached(each.source, template)
        shown.append(each.source)
        if not corr.matched.any():
            continue
        reach = gap(corr.positions()) / max(template.diameter, 1e-300)
        back = corr.inverse(fill=reach)  # template to scan
        seen = back.matched  # (V,)
        trust = np.ones(len(back)) if back.scores is None else back.scores  # (V,)
        total[seen] += trust[seen, None] * back.positions()[seen]
        weight[seen] += trust[seen]
        scans += seen
    places: FloatArray = np.full_like(total, np.nan)
    some = weight > 0  # (V,)
    places[some] = total[some] / weight[some, None]
    wrapped = wrap(template, _together(shown), places, np.minimum(weight, 1.0))
    moved = replace(template, points=wrapped.points, transform=shown[0].transform)
    return Merged(moved, wrapped.filled, scans)


def _together(shapes: Sequence[Shape]) -> Shape:
    """Put all points into one shape, and all triangles if each shape has some."""
    points = np.concatenate([shape.points for shape in shapes])
    starts = np.cumsum([0, *(len(shape) for shape in shapes)])[:-1]
    faces = [shape.faces for shape in shapes if shape.faces is not None and len(shape.faces)]
    if len(faces) < len(shapes):
        return Shape(points, name="scans")
    joined = np.concatenate([part + start for part, start in zip(faces, starts, strict=True)])
    return Shape(points, joined, name="scans")
