"""Landmarks carried along a map, to positions between points and robust to wrong partners.

A landmark is projected onto its surface. The points around it and their partners define an affine
map of the neighbourhood: first a robust fit, which rejects outliers, then moving least squares, in
which the nearest points count most. A landmark at a point goes to that point's partner, and one
between points goes in between.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ltenet.correspondence import Correspondence
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.neighbors import nearest_neighbors
from ltenet.geometry.normals import vertex_normals
from ltenet.io.landmarks import Landmarks
from ltenet.shape import Shape
from ltenet.transferring.surface import Surface

logger = logging.getLogger(__name__)

#: Points around a landmark that it follows.
_NEIGHBORS = 16
#: A landmark farther than this from any matched point is lost; in diameters.
_REACH = 0.06
#: A landmark farther than this from the surface gives a warning; in diameters.
_FLOATING = 0.023
_ROUNDS = 8
#: Weight of neighbours with another orientation.
_ELSEWHERE = 1e-3
#: Residuals below this count as exact; in distances between neighbours.
_EXACT = 0.02
#: Ridge of the affine fit, which is singular across flat neighbourhoods.
_RIDGE = 1e-4
#: A partner beyond this many times the median residual is an outlier.
_WRONG = 4.0


def carry_landmarks(
    correspondence: Correspondence,
    landmarks: Landmarks,
    *,
    source: Shape,
    target: Shape,
    to_source: bool,
) -> Landmarks:
    """Return the landmarks on the other shape, with the same names; NaN where the map is silent.

    Where the map has scores, each landmark has the probability of the partners around it.

    Parameters
    ----------
    correspondence
        The map from source to target; neither direction inverts it.
    landmarks
        On the target if `to_source`, else on the source, in the coordinates of the shapes.
    """
    matched = correspondence.matched  # (N,)
    here, there = source.points[matched], correspondence.positions(target)[matched]  # (n, 3)
    giver, receiver = source, target
    numbers = np.flatnonzero(matched)  # (n,) which points of the giver lie `here`
    if to_source:
        here, there, giver, receiver = there, here, target, source
        numbers = correspondence.indices[matched]
    given = np.asarray(np.isfinite(landmarks.points).all(axis=1))  # (L,)
    places = np.full_like(landmarks.points, np.nan)  # (L, 3)
    probabilities = np.full(len(landmarks), np.nan)  # (L,)
    if given.any() and len(here):
        surface = Surface(giver)
        nearest = surface.nearest(landmarks.points[given])
        _warn_of_floating(landmarks, given, nearest.distances, surface, giver)
        asked = nearest.on(giver.points)  # (l, 3)
        distances, near = nearest_neighbors(here, asked, _NEIGHBORS)  # (l, k)
        weights = np.ones_like(distances)
        if giver.faces is not None:
            # Near points may lie on the other side of a thin part, or on the next finger.
            normals = vertex_normals(giver.points, giver.faces)[numbers[near]]  # (l, k, 3)
            facing = np.einsum("lkd,ld->lk", normals, surface.normals(nearest))  # (l, k)
            weights = np.maximum(facing, _ELSEWHERE)
        carried = _carried(here[near] - asked[:, None], there[near], distances, weights)
        carried[distances[:, 0] > _REACH * giver.diameter] = np.nan
        places[given] = carried
        if correspondence.scores is not None:
            scores = correspondence.scores[matched][near]  # (l, k)
            probabilities[given] = _nearby_mean(scores, distances, weights)
    lost = [
        name for name, place in zip(landmarks.names, places, strict=True) if place[0] != place[0]
    ]
    if lost:
        logger.warning("no partner on %s for %s", receiver.name, ", ".join(lost))
    found = np.isfinite(places).all(axis=1)  # (L,)
    if found.any():
        places[found] = Surface(receiver).nearest(places[found]).on(receiver.points)
    indices = None
    if landmarks.indices is not None:
        indices = np.full(len(landmarks), -1)
        indices[found] = KDTree(receiver.points).query(places[found])[1]
    if landmarks.probabilities is not None:  # of the landmarks given, independent of the map
        probabilities *= np.nan_to_num(landmarks.probabilities, nan=1.0)
    probabilities[~found] = np.nan
    return replace(landmarks, points=places, indices=indices, probabilities=probabilities)


def _nearby_mean(values: FloatArray, distances: FloatArray, weights: FloatArray) -> FloatArray:
    """Means (L,) of (L, k) values at neighbours, of which the nearest count most."""
    spacing = np.median(distances, axis=1, keepdims=True) + 1e-300  # (L, 1)
    share = weights / (np.square(distances) + np.square(_EXACT * spacing))  # (L, k)
    means: FloatArray = (share * values).sum(axis=1) / share.sum(axis=1)
    return means


def _carried(
    offsets: FloatArray, goals: FloatArray, distances: FloatArray, weights: FloatArray
) -> FloatArray:
    """Images (L, 3) of points whose neighbours, at (L, k, 3) offsets, go to (L, k, 3) goals."""
    spacing = np.median(distances, axis=1, keepdims=True) + 1e-300  # (L, 1)
    broad = weights / (1 + np.square(distances / spacing))  # (L, k)
    residual = np.linalg.norm(goals - np.median(goals, axis=1, keepdims=True), axis=2)  # (L, k)
    for _ in range(_ROUNDS):
        # Partners beyond the median residual lose weight.
        common = np.median(residual, axis=1, keepdims=True) + _EXACT * spacing  # (L, 1)
        doubted = broad / np.square(1 + np.square(residual / common))  # (L, k)
        residual = np.linalg.norm(_affine(offsets, goals, doubted)[1], axis=2)  # (L, k)
    right = weights * (residual <= _WRONG * common)  # (L, k)
    # The smaller the residuals, the more the nearest points count; a noisy map is averaged.
    sharp = right / (np.square(distances) + np.square(common))  # (L, k)
    return _affine(offsets, goals, sharp)[0]


def _affine(
    offsets: FloatArray, goals: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Images (L, 3) of the origins under the best affine maps, and residuals (L, k, 3)."""
    share = weights / weights.sum(axis=1, keepdims=True)  # (L, k)
    centre = np.einsum("lk,lkd->ld", share, offsets)  # (L, 3)
    goal = np.einsum("lk,lkd->ld", share, goals)  # (L, 3)
    old, new = offsets - centre[:, None], goals - goal[:, None]  # (L, k, 3)
    spread = np.einsum("lk,lki,lkj->lij", share, old, old)  # (L, 3, 3)
    size = np.trace(spread, axis1=1, axis2=2)[:, None, None] + 1e-300
    mixed = np.einsum("lk,lki,lkj->lij", share, old, new)  # (L, 3, 3)
    matrix = np.linalg.solve(spread + _RIDGE * size * np.eye(3), mixed)  # (L, 3, 3)
    image: FloatArray = goal - np.einsum("li,lij->lj", centre, matrix)
    return image, new - old @ matrix


def _warn_of_floating(
    landmarks: Landmarks,
    given: NDArray[np.bool_],
    distances: FloatArray,
    surface: Surface,
    giver: Shape,
) -> None:
    limit = _FLOATING * giver.diameter
    if (distances <= limit).all():
        return
    names = [landmarks.names[place] for place in np.flatnonzero(given)[distances > limit]]
    hint = ""
    if (surface.nearest(landmarks.points[given] * (-1, -1, 1)).distances <= limit).all():
        hint = (
            "; with x and y negated they lie on it: the landmarks are in "
            f"{landmarks.system or 'one of LPS and RAS'} and the shape is in the other"
        )
    logger.warning("%s: not on the surface of %s%s", ", ".join(names), giver.name, hint)
