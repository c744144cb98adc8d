"""Landmarks follow the map: to places between points, past partners that are wrong.

A landmark is put on the nearest place of its surface. The points around it and their partners give
an affine map of the neighbourhood: first a robust one, which shows partners that do not fit and are
left out, then one that counts the nearest points most (moving least squares), so that a landmark at
a point goes to that point's partner and one between points goes in between.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ltenet.correspondence import Correspondence
from ltenet.shape import FloatArray, IntArray, Shape
from ltenet.transferring.landmark_files import Landmarks
from ltenet.transferring.surface import Surface, point_normals

logger = logging.getLogger(__name__)

#: Points around a landmark that have a say.
_NEIGHBORS = 16
#: A landmark whose nearest point with a partner is farther away than this has none; in diameters.
_REACH = 0.05
#: Farther from the surface than this it is worth a warning; in diameters.
_FLOATING = 0.02
_ROUNDS = 8
#: Weight of neighbours that face elsewhere.
_ELSEWHERE = 1e-3
#: Residuals below this are exact; in distances between neighbours.
_EXACT = 0.02
#: Pull of the affine map towards none at all, for the direction that flat neighbourhoods lack.
_RIDGE = 1e-4
#: Beyond this many times the common residual a partner is wrong.
_WRONG = 4.0


def carry_landmarks(
    correspondence: Correspondence,
    landmarks: Landmarks,
    *,
    source: Shape,
    target: Shape,
    to_source: bool,
) -> Landmarks:
    """Landmarks on the other shape, with the same names; NaN where the map does not reach.

    Parameters
    ----------
    correspondence
        The map from source to target; both directions use it as it is, without an inverse.
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
    if given.any() and len(here):
        surface = Surface(giver)
        nearest = surface.nearest(landmarks.points[given])
        _warn_of_floating(landmarks, given, nearest.distances, surface, giver)
        asked = nearest.on(giver.points)  # (l, 3)
        distances, near = _neighbors(here, asked)  # (l, k)
        weights = np.ones_like(distances)
        if giver.faces is not None:
            # The other side of a thin part, or the next finger, is near and yet somewhere else.
            normals = point_normals(giver.points, giver.faces)[numbers[near]]  # (l, k, 3)
            facing = np.einsum("lkd,ld->lk", normals, surface.normals(nearest))  # (l, k)
            weights = np.maximum(facing, _ELSEWHERE)
        carried = _carried(here[near] - asked[:, None], there[near], distances, weights)
        carried[distances[:, 0] > _REACH * giver.diameter] = np.nan
        places[given] = carried
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
    return replace(landmarks, points=places, indices=indices)


def _neighbors(here: FloatArray, asked: FloatArray) -> tuple[FloatArray, IntArray]:
    k = min(_NEIGHBORS, len(here))
    distances, near = KDTree(here).query(asked, k=k)
    return distances.reshape(len(asked), k), near.reshape(len(asked), k)


def _carried(
    offsets: FloatArray, goals: FloatArray, distances: FloatArray, weights: FloatArray
) -> FloatArray:
    """Where (L, 3) places go whose neighbours, at (L, k, 3) offsets, go to (L, k, 3) goals."""
    spacing = np.median(distances, axis=1, keepdims=True) + 1e-300  # (L, 1)
    broad = weights / (1 + np.square(distances / spacing))  # (L, k)
    residual = np.linalg.norm(goals - np.median(goals, axis=1, keepdims=True), axis=2)  # (L, k)
    for _ in range(_ROUNDS):
        # The middle residual is what is common here; partners beyond it lose their say.
        common = np.median(residual, axis=1, keepdims=True) + _EXACT * spacing  # (L, 1)
        doubted = broad / np.square(1 + np.square(residual / common))  # (L, k)
        residual = np.linalg.norm(_affine(offsets, goals, doubted)[1], axis=2)  # (L, k)
    right = weights * (residual <= _WRONG * common)  # (L, k)
    # The surer the partners, the more the nearest counts; a noisy map is averaged.
    sharp = right / (np.square(distances) + np.square(common))  # (L, k)
    return _affine(offsets, goals, sharp)[0]


def _affine(
    offsets: FloatArray, goals: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Image (L, 3) of the origin under the affine maps that fit best, and residuals (L, k, 3)."""
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
