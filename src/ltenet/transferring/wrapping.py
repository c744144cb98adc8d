"""Bend a mesh onto a target, so that it keeps its own points and faces and takes the other's form.

Three steps. The coarse one follows the map: a graph of control nodes, each with an affine frame of
its own, is fitted to where the points should go; partners that their neighbours contradict count
less and less. The fine one moves points from there by displacements d that are smooth at a length
that shrinks from round to round,

    sum_i w_i |x_i + d_i - y_i|^2 + sum_i |(l^2 / h^2 L d)_i|^2,

with the graph Laplacian L, the mean edge h and the nearest places y_i on the target. The last one
looks for triangles that are folded over and lets their surroundings go until they unfold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import splu

from ltenet.deformation import DeformationGraph, fit_similarity
from ltenet.errors import InputError
from ltenet.shape import FloatArray, Shape
from ltenet.surface_graph import distance_to_nearest, surface_graph
from ltenet.transferring.folds import folded_faces
from ltenet.transferring.surface import Surface, point_normals
from ltenet.transferring.unfolding import unfolded

#: Control nodes of the coarse step, its stiffness, and how firmly frames keep to rotations.
_NODES, _STIFFNESS, _RIGIDITY = 250, 0.003, 0.05
#: Points that the coarse step is fitted to; more of them change nothing but the time.
_FITTED = 6000
#: Partners farther than this from where the shape bends to lose their say, round by round; in
#: diameters of the target.
_DOUBTS = (0.3, 0.1, 0.05, 0.03, 0.03)
#: Lengths at which displacements are smooth in the fine step; in diameters of the target.
_SMOOTH = (0.03, 0.015, 0.008)
#: Places on the target farther away than this, or facing elsewhere, do not attract; in diameters.
_REACH, _FACING = 0.05, 0.3
#: Points farther than this from any whose partner is believed are not attracted at all: their part
#: of the body may be somewhere else, or the target may not have it. In diameters of the source.
_LONELY, _BELIEVED = 0.03, 0.25


class Wrapped(NamedTuple):
    """A bent mesh.

    Attributes
    ----------
    points
        (N, 3) new places.
    folded
        Share of triangles that are folded over.
    distance
        Mean distance to the target's surface, in diameters of the target.
    """

    points: FloatArray
    folded: float
    distance: float


def wrap(source: Shape, target: Shape, places: FloatArray, trust: FloatArray) -> Wrapped:
    """Bend `source` onto `target`.

    Parameters
    ----------
    source, target
        The shapes; without faces their neighbouring points stand for the surface.
    places
        (N, 3) where the source's points should go, NaN where that is not known.
    trust
        (N,) from 0 to 1, how much to believe it.
    """
    known = np.isfinite(places).all(axis=1) & (trust > 0)  # (N,)
    if known.sum() < 4:
        raise InputError(
            f"{source.name}: {int(known.sum())} of {len(source)} points have a partner; at least "
            "4 are needed to bend a shape; lower the threshold of the map"
        )
    size = target.diameter
    graph = surface_graph(source)
    trust = np.where(known, trust, 0.0) * _agreement(graph, places, known)  # (N,)
    places = np.where(known[:, None], places, 0.0)  # (N, 3)
    points = _coarse(graph, source.points, places, trust, size)  # (N, 3)
    field = _SmoothField(graph, points)
    doubted = _doubted(trust, points, places, _DOUBTS[-1] * size)  # (N,)
    points = points + field.near(places - points, doubted, _SMOOTH[0] * size)
    surface = Surface(target)
    believed = np.flatnonzero(trust > _BELIEVED)  # (b,)
    company = distance_to_nearest(graph, source.points, believed)  # (N,)
    attractable = company <= _LONELY * source.diameter  # (N,)
    for length in _SMOOTH:
        there = surface.nearest(points)
        attracted = attractable & (there.distances < _REACH * size)  # (N,)
        if source.faces is not None and surface.faces is not None:
            facing = point_normals(points, source.faces) * surface.normals(there)  # (N, 3)
            attracted &= facing.sum(axis=1) > _FACING
        wanted = there.on(target.points)  # (N, 3)
        points = points + field.near(wanted - points, attracted.astype(float), length * size)
    folded = 0.0
    if source.faces is not None:
        points = unfolded(source.points, points, source.faces)
        folded = float(folded_faces(source.points, points, source.faces).mean())
    distance = float(surface.nearest(points).distances.mean()) / size
    return Wrapped(points, folded, distance)


class _SmoothField:
    """Displacements of the points that are smooth along the surface."""

    def __init__(self, graph: csr_array, points: FloatArray) -> None:
        start, stop = graph.nonzero()  # (E,)
        self._edge = float(np.linalg.norm(points[start] - points[stop], axis=1).mean())
        degree = np.maximum(graph.sum(axis=1), 1)  # (N,)
        half = diags_array(1 / np.sqrt(degree))
        laplacian = eye_array(len(degree)) - half @ graph @ half
        self._bending = (laplacian @ laplacian).tocsc()

    def near(self, wanted: FloatArray, weights: FloatArray, length: float) -> FloatArray:
        """(N, 3) displacements near the wanted ones where these have weight, smooth at `length`."""
        stiffness = (length / self._edge) ** 4
        # The small term keeps parts still that nothing is wanted of.
        system = diags_array(weights + 1e-8) + stiffness * self._bending
        factor = splu(system.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        field: FloatArray = factor.solve(weights[:, None] * wanted)
        return field


def _coarse(
    graph: csr_array, points: FloatArray, places: FloatArray, trust: FloatArray, size: float
) -> FloatArray:
    """Where (N, 3) points go if the shape bends smoothly towards (N, 3) places."""
    centre, new_centre = points.mean(axis=0), places[trust > 0].mean(axis=0)
    rest, wanted = (
        torch.from_numpy(part).to(torch.float32)
        for part in ((points - centre) / size, (places - new_centre) / size)
    )
    weights = torch.from_numpy(trust).to(torch.float32)  # (N,)
    bending = DeformationGraph(rest, _NODES, rigidity=_RIGIDITY, graph=graph)
    bending.turn(fit_similarity(rest, wanted, weights))
    rows = torch.randperm(len(rest), generator=torch.Generator().manual_seed(0))[:_FITTED]  # (n,)
    doubted = weights
    for doubt in _DOUBTS:
        bent = bending.fit(  # (N, 3)
            wanted[rows], doubted[rows], rows=rows, stiffness=_STIFFNESS, rounds=5
        )
        away = (bent - wanted).square().sum(dim=1) / doubt**2  # (N,)
        doubted = weights / (1 + away).square()
    result: FloatArray = bent.numpy().astype(np.float64) * size + new_centre
    return result


def _doubted(trust: FloatArray, points: FloatArray, places: FloatArray, doubt: float) -> FloatArray:
    """(N,) trust, less for places that are far from the points."""
    away = np.square(points - places).sum(axis=1) / doubt**2  # (N,)
    weights: FloatArray = trust / np.square(1 + away)
    return weights


def _agreement(graph: csr_array, places: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    """(N,) from 0 to 1, how well a point's place agrees with those of its neighbours."""
    start, stop = graph.nonzero()  # (E,)
    kept = known[start] & known[stop]
    start, stop = start[kept], stop[kept]
    away = np.linalg.norm(places[start] - places[stop], axis=1)  # (E,)
    # The median over the neighbours: half of them may be wrong.
    order = np.lexsort((away, start))
    start, away = start[order], away[order]
    first, count = np.unique(start, return_index=True, return_counts=True)[1:]
    median = np.full(len(known), np.nan)
    median[start[first]] = away[first + count // 2]
    common = 3 * np.nanmedian(median) + 1e-12
    agreement: FloatArray = 1 / np.square(1 + np.square(np.nan_to_num(median) / common))
    return agreement
