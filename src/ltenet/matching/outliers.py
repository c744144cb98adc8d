"""Outliers: points that lie off the surface, left out before a shape is embedded.

A few of them spoil centre, scale and features of every other point. Three tests, each of which lets
clean shapes pass as they are:

- *Strays* lie beyond a gap: sorted by distance from the median, the radius triples between two
  neighbouring points.
- *Lone points* are far from their nearest neighbours, which are close to each other (after the
  local outlier factor [Breunig et al. 2000]).
- *Clutter* fills the space around a surface. Statistical outlier removal [Rusu et al. 2008]
  compares the distance to the neighbours with that of all points, which would also take sparse
  regions of unevenly sampled scans. So it is compared with that of the surrounding eighth of the
  shape, too, and points whose neighbours lie in a plane may be farther away. It only runs where
  enough points stand out.

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
#: Share of the shape around a point that its distance is compared with, and at how many places that
#: is measured.
_AROUND, _PLACES = 1 / 8, 1024
#: What the height above the plane through the neighbours adds to the logarithm of the distance:
#: surfaces are flat, clutter is not.
_HEIGHT = 0.8
#: How far points stand out that float, and how much denser their neighbours are: those of sparse
#: regions are sparse, too.
_SURE, _DENSER = 1.2, 2.0
#: Share of floating points from which there is clutter, and how many more there may be by chance;
#: also their share of all that stand out. Most generated scans of 1,024 points have at most 13
#: without clutter, even where their spacing varies tenfold, and at least 29 with one outlier to
#: twenty points.
_CLUTTER, _CHANCE, _FLOATING = 0.014, 2.5, 0.2
#: How far clutter stands out where there is some, and how often it is looked for anew.
_LIKELY, _PASSES = 1.1, 5
#: Height above the cleaned surface, relative to its spacing, up to which a point that was taken for
#: clutter is given back, and how far its nearest neighbour may be.
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
    around
        The same for the surrounding part of the shape, or for all of it if larger: its median.
    height
        Out-of-plane distance of the point and its neighbours from the plane through these,
        relative to `distance`.
    """

    distance: FloatArray
    beside: FloatArray
    around: FloatArray
    height: FloatArray

    @property
    def standing_out(self) -> FloatArray:
        """(N,) how far a point stands out from the surrounding part of the shape."""
        far: FloatArray = np.log(np.maximum(self.distance, 1e-300) / self.around)
        return far + _HEIGHT * self.height


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
        rows = np.flatnonzero(~lost)  # (n,)
        if len(rows) <= 2 * _NEIGHBORS:
            break
        found = isolation(points[rows])
        far = found.standing_out  # (n,)
        floating = (far > _SURE) & (found.distance > _DENSER * found.beside) & loose[rows]  # (n,)
        off = (far > _LIKELY) & loose[rows]  # (n,)
        enough = max(_CLUTTER * len(points) + _CHANCE, _FLOATING * off.sum())
        if not off.any() or (number == 0 and floating.sum() < enough):
            break
        lost[rows[off]] = True
    if lost.any():
        lost[lost] = ~_on_surface(points[lost], points[~lost])
    return lost


def _on_surface(points: FloatArray, surface: FloatArray) -> BoolArray:
    """(N,) True for (N, 3) points close to the planes through the nearest of (n, 3) others."""
    near = nearest_neighbors(surface, points, _NEIGHBORS)  # (N, k)
    above = _plane_distances(points, surface[near.indices])[0]  # (N,)
    spacing = isolation(surface).distance[near.indices[:, 0]]  # (N,)
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
    around = _around(points, distance)  # (N,)
    above, thickness = _plane_distances(points, reference[indices])  # (N,) each
    height = np.hypot(above, thickness)  # (N,)
    return Isolation(distance, beside, around, height / np.maximum(distance, 1e-300))


def _around(points: FloatArray, distance: FloatArray) -> FloatArray:
    """(N,) median of (N,) distances around each of (N, 3) points, or of all if that is larger."""
    step = -(-len(points) // _PLACES)
    places, distances = points[::step], distance[::step]  # (n, 3), (n,)
    near = nearest_neighbors(
        places, places, max(_NEIGHBORS, round(_AROUND * len(places)))
    )  # (n, K)
    medians = np.median(distances[near.indices], axis=1)  # (n,)
    nearest = nearest_neighbors(places, points, 1).indices[:, 0]  # (N,)
    return np.maximum(medians[nearest], max(float(np.median(distance)), 1e-300))


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
