"""Outliers: points that lie off the surface, left out before a shape is embedded.

A few of them spoil centre, scale and features of every other point. Three tests, each of which lets
clean shapes pass as they are:

- *Strays* lie beyond a gap: sorted by distance from the median, the radius triples between two
  neighbouring points.
- *Lone points* are far from their nearest neighbours, which are close to each other (after the
  local outlier factor [Breunig et al. 2000]).
- *Clutter* fills the space around a surface. Statistical outlier removal [Rusu et al. 2008] finds
  it, but would also take sparse regions of unevenly sampled scans. So it only runs where enough
  points float beside denser ones, which sparse regions do not.

In a mesh the last two look at vertices of no face alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.shape import Shape

BoolArray = NDArray[np.bool_]

#: Neighbours whose distances tell how isolated a point is.
_NEIGHBORS = 8
#: Factor by which the radius grows across the gap before a stray, and the share of points that may
#: lie beyond it.
_GAP, _STRAYS = 3.0, 0.1
#: Distance to the neighbours, relative to theirs and to the median, from which a point is alone.
_LONE = 6.0
#: The same for a point that floats beside denser ones, and its least height above the plane through
#: its neighbours, relative to their distance: surfaces are flat.
_DENSER, _SPARSE, _HIGH = 2.0, 1.5, 0.3
#: Share of floating points from which there is clutter, and how many more small clouds need.
#: Generated scans of 1,024 points and uneven density have a share of up to 0.028 without any
#: clutter, and at least 0.033 with one outlier to ten points.
_CLUTTER, _CHANCE = 0.008, 22.0
#: Distance to the neighbours, relative to the median, from which a point is clutter, its height
#: likewise, and how often the median is taken anew.
_OFF, _ABOVE, _PASSES = 2.3, 0.2, 5
#: Height above the cleaned surface, relative to the median distance, up to which a point that was
#: taken for clutter is given back, and how far its nearest neighbour may be.
_ON, _REACH = 0.5, 3.0
#: Points that distances are measured to, at most: larger clouds are thinned.
_REFERENCE = 2**16


class Isolation(NamedTuple):
    """How isolated points are, (N,) each.

    Attributes
    ----------
    distance
        Mean distance to the nearest neighbours.
    beside
        The same for the neighbours: its lower quintile among them.
    height
        Out-of-plane distance of the point and its neighbours from the plane through these,
        relative to `distance`.
    """

    distance: FloatArray
    beside: FloatArray
    height: FloatArray


def inliers(shape: Shape) -> IntArray:
    """Return the (n,) points that are not outliers, in ascending order; all of a clean shape."""
    kept = np.flatnonzero(~_strays(shape.points))
    loose = np.ones(len(kept), bool)
    if shape.faces is not None and len(shape.faces):
        used = np.zeros(len(shape), bool)
        used[shape.faces] = True
        loose = ~used[kept]
    if not loose.any() or len(kept) <= _NEIGHBORS:
        return kept
    alone = _alone(shape.points[kept], loose)  # (n,)
    kept, loose = kept[~alone], loose[~alone]
    return kept[~_clutter(shape.points[kept], loose)]


def part_of(shape: Shape, rows: IntArray) -> Shape:
    """Keep the (n,) points at ascending `rows`, and the faces between them."""
    if len(rows) == len(shape):
        return shape
    part = shape.subset(rows)
    if shape.faces is None:
        return part
    new = np.full(len(shape), -1)
    new[rows] = np.arange(len(rows))
    faces = new[shape.faces]  # (F, 3)
    return replace(part, faces=faces[(faces >= 0).all(axis=1)])


def _strays(points: FloatArray) -> BoolArray:
    """(N,) True beyond a gap."""
    radius = np.linalg.norm(points - np.median(points, axis=0), axis=1)  # (N,)
    inner = int(np.ceil((1 - _STRAYS) * len(points)))
    ordered = np.sort(radius)[max(inner - 1, 0) :]  # (m,)
    gaps = np.flatnonzero(ordered[1:] > _GAP * np.maximum(ordered[:-1], 1e-300))
    if not len(gaps) or ordered[gaps[0]] == 0:
        return np.zeros(len(points), bool)
    strays: BoolArray = radius > ordered[gaps[0]]
    return strays


def _alone(points: FloatArray, loose: BoolArray) -> BoolArray:
    """(N,) True for loose points far from neighbours that are close to each other."""
    found = isolation(points)
    far = found.distance > _LONE * np.maximum(found.beside, np.median(found.distance))
    return np.asarray(far & loose)


def _clutter(points: FloatArray, loose: BoolArray) -> BoolArray:
    """(N,) True for loose points that fill the space around a surface."""
    lost = np.zeros(len(points), bool)
    for number in range(_PASSES):
        rows = np.flatnonzero(~lost)
        if len(rows) <= 2 * _NEIGHBORS:
            break
        found = isolation(points[rows])
        middle = float(np.median(found.distance))
        if number == 0:
            floating = found.distance > _DENSER * found.beside
            floating &= (found.distance > _SPARSE * middle) & (found.height > _HIGH) & loose
            if floating.mean() < _CLUTTER + _CHANCE / len(points):
                break
        off = (found.distance > _OFF * middle) & (found.height > _ABOVE) & loose[rows]
        if not off.any():
            break
        lost[rows[off]] = True
    if lost.any():
        lost[lost] = ~_on_surface(points[lost], points[~lost], middle)
    return lost


def _on_surface(points: FloatArray, surface: FloatArray, spacing: float) -> BoolArray:
    """(N,) True for (N, 3) points close to the planes through the nearest of (n, 3) others."""
    near = nearest_neighbors(surface, points, _NEIGHBORS)  # (N, k)
    above = _plane_distances(points, surface[near.indices])[0]  # (N,)
    on: BoolArray = (above < _ON * spacing) & (near.distances[:, 0] < _REACH * spacing)
    return on


def isolation(points: FloatArray) -> Isolation:
    """Measure how isolated each of (N, 3) points is."""
    step = -(-len(points) // _REFERENCE)
    reference = points[::step]  # (n, 3)
    near = nearest_neighbors(reference, points, _NEIGHBORS + 1)  # (N, k + 1)
    itself = near.distances[:, :1] == 0  # points of the reference find themselves first
    distances = np.where(itself, near.distances[:, 1:], near.distances[:, :-1])  # (N, k)
    indices = np.where(itself, near.indices[:, 1:], near.indices[:, :-1])  # (N, k)
    distance = distances.mean(axis=1)  # (N,)
    beside = np.quantile(distance[::step][indices], 0.2, axis=1)  # (N,)
    above, thickness = _plane_distances(points, reference[indices])  # (N,) each
    height = np.hypot(above, thickness)  # (N,)
    return Isolation(distance, beside, height / np.maximum(distance, 1e-300))


def _plane_distances(points: FloatArray, around: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distances of (N, 3) points, and root-mean-square ones of their (N, k, 3) neighbours.

    From the planes that fit the neighbours best.
    """
    centre = around.mean(axis=1)  # (N, 3)
    offsets = around - centre[:, None]  # (N, k, 3)
    moments = np.swapaxes(offsets, 1, 2) @ offsets / offsets.shape[1]  # (N, 3, 3)
    values, vectors = np.linalg.eigh(moments)  # (N, 3), (N, 3, 3)
    above = np.abs(np.einsum("ni,ni->n", points - centre, vectors[:, :, 0]))  # (N,)
    return above, np.sqrt(np.maximum(values[:, 0], 0))
