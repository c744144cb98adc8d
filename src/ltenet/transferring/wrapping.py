"""Non-rigid registration: deform a mesh onto a target; its points and faces stay the same.

Three steps. The coarse one scales the mesh by what has partners, and follows the map by embedded
deformation [Sumner et al. 2007], robustly: partners that their neighbours contradict lose weight.
The fine one adds displacements d that are smooth at a length that shrinks from round to round,

    sum_i w_i |x_i + d_i - y_i|^2 + sum_i |(l^2 / h^2 L d)_i|^2,

with the graph Laplacian L, the mean edge length h and the closest points y_i on the target. The
last one relaxes the surroundings of folded triangles.

Where the target is a part, what it lacks is filled: those points follow their surroundings, nothing
attracts them, and they are marked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.linalg import splu

from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.normals import vertex_normals
from ltenet.geometry.surface_graph import distance_to_nearest, surface_graph
from ltenet.refinement.deformation import DeformationGraph, align
from ltenet.shape import Shape
from ltenet.transferring.folds import folded_faces
from ltenet.transferring.surface import Surface
from ltenet.transferring.unfolding import unfolded

#: Nodes of the deformation graph, its stiffness, and the weight that keeps frames rotations.
_NODES, _STIFFNESS, _RIGIDITY = 250, 0.003, 0.05
#: Points that the coarse step is fitted to; more cost time and change nothing.
_FITTED = 6000
#: Partners farther than this from the deformed points lose weight, round by round; in diameters of
#: the target.
_DOUBTS = (0.35, 0.12, 0.06, 0.035, 0.035)
#: Smoothness lengths of the fine step, in diameters of the target.
_SMOOTH = (0.035, 0.018, 0.0095)
#: The target attracts points within this distance, in diameters, whose normals agree this well.
_REACH, _FACING = 0.06, 0.3
#: Weight with which points of which nothing is known stay where the coarse step took them.
_HELD = 0.05
#: Points nearest to the border of an open target, and farther from it than this, in diameters, lie
#: beyond what the target shows.
_BEYOND = 0.005
#: Pairs of points at distances between these, in diameters of the source, tell the scale: poses
#: hardly change how far such points are apart, and noise of the map hardly matters. And how many.
_NEAR, _FAR, _PAIRS = 0.05, 0.15, 20_000
#: Points farther than this from every trusted point, in diameters of the source, are not attracted:
#: their part may be elsewhere, or missing on the target. And the trust this takes.
_LONELY, _BELIEVED = 0.035, 0.25


class Wrapped(NamedTuple):
    """A deformed mesh.

    Attributes
    ----------
    points
        (N, 3) new positions.
    folded
        Share of folded triangles.
    distance
        Mean distance to the target's surface, in diameters of the target, of what is not filled.
    filled
        (N,) True for points of which the target shows nothing: their places come from the shape of
        the source.
    """

    points: FloatArray
    folded: float
    distance: float
    filled: NDArray[np.bool_]


def wrap(
    source: Shape,
    target: Shape,
    places: FloatArray,
    trust: FloatArray,
    *,
    tell: Callable[[float], None] = lambda share: None,
) -> Wrapped:
    """Deform `source` onto `target`.

    Parameters
    ----------
    source, target
        The shapes; a cloud is linked by nearest neighbours.
    places
        (N, 3) partners of the source points, NaN if unknown.
    trust
        (N,) their weights, from 0 to 1.
    tell
        Called with the share that is done.
    """
    known = np.isfinite(places).all(axis=1) & (trust > 0)  # (N,)
    if known.sum() < 4:
        raise InputError(
            f"{source.name}: got {int(known.sum())} of {len(source)} points with a partner, "
            "expected at least 4 to deform a shape; try a lower threshold when matching"
        )
    size = target.diameter
    graph = surface_graph(source.points, source.faces)
    trust = np.where(known, trust, 0.0) * _agreement(graph, places, known)  # (N,)
    places = np.where(known[:, None], places, 0.0)  # (N, 3)
    scaled = source.points * _scale(source, places, trust > 0)  # (N, 3)
    points = _coarse(graph, scaled, places, trust, size)  # (N, 3)
    tell(0.3)
    believed = np.flatnonzero(trust > _BELIEVED)  # (b,)
    company = distance_to_nearest(graph, source.points, believed)  # (N,)
    attractable = company <= _LONELY * source.diameter  # (N,)
    field = _SmoothField(graph, points, still=~attractable)
    doubted = _doubted(trust, points, places, _DOUBTS[-1] * size)  # (N,)
    points = points + field.near(places - points, doubted, _SMOOTH[0] * size)
    surface = Surface(target)
    tell(0.5)
    for number, length in enumerate(_SMOOTH, 1):
        there = surface.nearest(points)
        beyond = surface.at_border(there) & (there.distances > _BEYOND * size)  # (N,)
        attracted = attractable & ~beyond & (there.distances < _REACH * size)  # (N,)
        if source.faces is not None and surface.faces is not None:
            facing = vertex_normals(points, source.faces) * surface.normals(there)  # (N, 3)
            attracted &= facing.sum(axis=1) > _FACING
        wanted = there.on(target.points)  # (N, 3)
        points = points + field.near(wanted - points, attracted.astype(float), length * size)
        tell(0.5 + 0.4 * number / len(_SMOOTH))
    folded = 0.0
    if source.faces is not None:
        points = unfolded(source.points, points, source.faces)
        folded = float(folded_faces(source.points, points, source.faces).mean())
    there = surface.nearest(points)
    beyond = surface.at_border(there) & (there.distances > _BEYOND * size)  # (N,)
    filled = ~attractable | beyond  # (N,)
    seen = there.distances[~filled] if not filled.all() else there.distances  # (n,)
    return Wrapped(points, folded, float(seen.mean()) / size, filled)


class _SmoothField:
    """Displacement fields that are smooth along the surface.

    They fade out where (N,) `still` is True: a smooth field goes on growing beyond what it was
    fitted to, and would bend limbs of which nothing is known.
    """

    def __init__(self, graph: csr_array, points: FloatArray, *, still: NDArray[np.bool_]) -> None:
        self._held = np.where(still, _HELD, 1e-8)  # (N,), a little keeps any part in place
        start, stop = graph.nonzero()  # (E,)
        self._edge = float(np.linalg.norm(points[start] - points[stop], axis=1).mean())
        degree = np.maximum(graph.sum(axis=1), 1)  # (N,)
        half = diags_array(1 / np.sqrt(degree))
        laplacian = eye_array(len(degree)) - half @ graph @ half
        self._bending = (laplacian @ laplacian).tocsc()

    def near(self, wanted: FloatArray, weights: FloatArray, length: float) -> FloatArray:
        """(N, 3) smooth displacements near the wanted ones, by (N,) weights."""
        stiffness = (length / self._edge) ** 4
        system = diags_array(weights + self._held) + stiffness * self._bending
        factor = splu(system.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
        field: FloatArray = factor.solve(weights[:, None] * wanted)
        return field


def _scale(source: Shape, places: FloatArray, known: NDArray[np.bool_]) -> float:
    """How much larger the (N, 3) places are than the source, by distances between nearby points."""
    rows = np.flatnonzero(known)  # (K,)
    rng = np.random.default_rng(0)
    first, second = rows[rng.integers(len(rows), size=(2, 50 * _PAIRS))]
    before = np.linalg.norm(source.points[first] - source.points[second], axis=1)
    near = (before > _NEAR * source.diameter) & (before < _FAR * source.diameter)
    near = np.flatnonzero(near)[:_PAIRS]
    if len(near) < 10:
        return 1.0
    after = np.linalg.norm(places[first[near]] - places[second[near]], axis=1)
    return float(np.median(after / before[near])) or 1.0


def _coarse(
    graph: csr_array, points: FloatArray, places: FloatArray, trust: FloatArray, size: float
) -> FloatArray:
    """(N, 3) points after a smooth deformation towards (N, 3) places."""
    centre, new_centre = points.mean(axis=0), places[trust > 0].mean(axis=0)
    rest, wanted = (
        torch.from_numpy(part).to(torch.float32)
        for part in ((points - centre) / size, (places - new_centre) / size)
    )
    weights = torch.from_numpy(trust).to(torch.float32)  # (N,)
    bending = DeformationGraph(rest, _NODES, rigidity=_RIGIDITY, graph=graph)
    frames = bending.frames(align(rest, wanted, weights).rotation)  # (r, 3, 3)
    rows = torch.randperm(len(rest), generator=torch.Generator().manual_seed(0))[:_FITTED]  # (n,)
    fitted, doubted = bending.at(rows), weights
    for doubt in _DOUBTS:
        found = fitted.fit(
            wanted[rows], doubted[rows], frames=frames, stiffness=_STIFFNESS, rounds=5, sized=True
        )
        bent, frames = bending.apply(found), found.frames  # (N, 3), (r, 3, 3)
        away = (bent - wanted).square().sum(dim=1) / doubt**2  # (N,)
        doubted = weights / (1 + away).square()
    result: FloatArray = bent.numpy().astype(np.float64) * size + new_centre
    return result


def _doubted(trust: FloatArray, points: FloatArray, places: FloatArray, doubt: float) -> FloatArray:
    """(N,) trust, reduced for places far from the points (Geman-McClure)."""
    away = np.square(points - places).sum(axis=1) / doubt**2  # (N,)
    weights: FloatArray = trust / np.square(1 + away)
    return weights


def _agreement(graph: csr_array, places: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    """(N,) from 0 to 1: how well the place of a point agrees with those of its neighbours."""
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
