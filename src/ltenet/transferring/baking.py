"""Texture baking: paint a mesh with the picture of another, at its points or in a new picture.

A new picture needs texture coordinates (uv). Each of its pixels lies in a triangle, so on the
surface; the map carries that position to the giver, whose picture is looked up there. Where texture
coordinates repeat a picture, one pixel would belong to many places: every triangle then gets a
place of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltenet.drawing.rasterizer import draw_triangles, empty_canvas
from ltenet.drawing.rendering import Image
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.textures import TexturedMesh
from ltenet.shape import Shape
from ltenet.transferring.surface import Surface

#: Side of a new picture in pixels.
SIDE = 1024
#: Pixels by which colours bleed beyond the triangles, to hide seams.
_BLEED = 8
_MISSING = 128.0
#: Least side of a triangle's own place in a picture, and greatest side of the picture, in pixels.
_OWN, _LARGEST = 6, 4096
#: Pixels that are looked up at once.
_BLOCK = 2**16

log = logging.getLogger(__name__)


def painted_points(giver: TexturedMesh, onto: Shape, places: FloatArray) -> Shape:
    """Return `onto` with colours looked up at (N, 3) positions on the giver; grey for NaN."""
    colors = _colors(giver, Surface(giver.shape), places)
    return replace(onto, colors=np.rint(colors).astype(np.uint8))


def painted_mesh(
    giver: TexturedMesh,
    onto: TexturedMesh,
    places: FloatArray,
    *,
    side: int | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> TexturedMesh:
    """Return `onto` with new pictures, looked up pixel by pixel on the giver.

    Parameters
    ----------
    giver
        The mesh with the picture.
    onto
        A mesh with texture coordinates; its pictures are replaced by new ones of the same size.
    places
        (N, 3) positions of the points of `onto` on the giver, NaN if unknown.
    side
        Width and height of the new pictures; None takes those of the old ones, or `SIDE`.
    tell
        Called with the share that is done.
    """
    surface = Surface(giver.shape)
    pictures: list[Image] = []
    painted = np.zeros_like(onto.painted)
    uv, corners = onto.uv, onto.corners  # (T, 2), (F, 3)
    if any(_repeats(uv[corners[onto.painted == number]]) for number in np.unique(onto.painted)):
        log.warning(
            "%s: the texture coordinates repeat the picture, so every triangle gets a place of its "
            "own in a new one",
            onto.shape.name,
        )
        places_of_own, least = _own_places(len(corners))
        uv, corners = places_of_own, np.arange(3 * len(corners)).reshape(-1, 3)
        side = max(side or SIDE, least)
        onto = replace(onto, uv=uv, corners=corners, painted=np.full(len(corners), -1))
    numbers = np.unique(onto.painted)
    for number in numbers:
        log.info("%s: baking picture %d", onto.shape.name, len(pictures) + 1)
        rows = np.flatnonzero(onto.painted == number)
        width = height = side or SIDE
        if number >= 0 and side is None:
            height, width = onto.pictures[number].shape[:2]
        faces, weights = _pixels(onto.uv[onto.corners[rows]], width, height)
        filled = np.flatnonzero(faces >= 0)  # (p,)
        assert onto.shape.faces is not None
        points = onto.shape.faces[rows[faces[filled]]]  # (p, 3)
        there = np.einsum("pk,pkd->pd", weights[filled], places[points])  # (p, 3)
        picture = np.full((height * width, 3), np.nan)
        for start in range(0, len(filled), _BLOCK):
            block = slice(start, start + _BLOCK)
            picture[filled[block]] = _colors(giver, surface, there[block])
            tell((len(pictures) + min(block.stop / len(filled), 1)) / len(numbers))
        painted[rows] = len(pictures)
        pictures.append(_bled(picture.reshape(height, width, 3)))
    return replace(onto, pictures=tuple(pictures), painted=painted)


def _colors(giver: TexturedMesh, surface: Surface, places: FloatArray) -> FloatArray:
    """(N, 3) colours of the giver nearest to (N, 3) positions; grey for NaN."""
    colors = np.full((len(places), 3), _MISSING)
    known = np.flatnonzero(np.isfinite(places).all(axis=1))
    nearest = surface.nearest(places[known])
    colors[known] = giver.colors_at(nearest.faces, nearest.weights)
    return colors


def _repeats(uv: FloatArray) -> bool:
    """Whether (F, 3, 2) triangles lie in several tiles, or one of them is larger than a tile."""
    if not len(uv):
        return False
    tiles = np.floor(uv.mean(axis=1))  # (F, 2)
    return bool((tiles != tiles[0]).any() or (np.ptp(uv, axis=1) > 1).any())


def _own_places(count: int) -> tuple[FloatArray, int]:
    """Texture coordinates (3 count, 2) that give each triangle half a cell of a square grid.

    Also returns how many pixels a side of the picture needs.
    """
    columns = int(np.ceil(np.sqrt((count + 1) // 2)))
    # Off the diagonal and the border by a seventh of the cell, so that colours do not mix.
    lower = np.array([[1, 1], [5, 1], [1, 5]]) / 7  # (3, 2)
    halves = np.stack([lower, 1 - lower])  # (2, 3, 2)
    number = np.arange(count)  # (F,)
    cell = np.stack([number // 2 % columns, number // 2 // columns], axis=1)  # (F, 2)
    uv: FloatArray = (halves[number % 2] + cell[:, None]) / columns  # (F, 3, 2)
    return uv.reshape(-1, 2), min(_OWN * columns, _LARGEST)


def _pixels(uv: FloatArray, width: int, height: int) -> tuple[IntArray, FloatArray]:
    """Triangle (P,), -1 for none, and barycentric weights (P, 3) of each pixel.

    `uv` (F, 3, 2) are the corners of the triangles in the picture.
    """
    uv = uv - np.floor(uv.mean(axis=1, keepdims=True))  # pictures repeat: wrap into the first tile
    count = len(uv)
    screen = np.empty((count, 3, 3))
    screen[..., 0] = uv[..., 0] * width
    screen[..., 1] = (1 - uv[..., 1]) * height
    # The rasteriser interpolates colours and keeps the largest depth: weights and triangle index.
    screen[..., 2] = np.arange(count)[:, None]
    canvas = empty_canvas(width, height)
    draw_triangles(
        canvas,
        screen.reshape(-1, 3),
        np.arange(3 * count).reshape(-1, 3),
        np.zeros((3 * count, 3)),
        np.tile(np.eye(3), (count, 1)),
    )
    there = np.isfinite(canvas.depth)
    faces = np.full(len(there), -1)
    faces[there] = np.rint(canvas.depth[there])
    return faces, canvas.colors


def _bled(picture: FloatArray) -> Image:
    """Let colours (H, W, 3) bleed into pixels that are NaN; the rest get the mean colour."""
    known: NDArray[np.bool_] = np.isfinite(picture[..., 0])
    colors = np.where(known[..., None], picture, 0.0)
    for _ in range(_BLEED):
        sums, count = np.zeros_like(colors), np.zeros(known.shape)
        padded = np.pad(colors, ((1, 1), (1, 1), (0, 0)))
        there = np.pad(known, 1)
        height, width = known.shape
        for down in range(3):
            for right in range(3):
                sums += padded[down : down + height, right : right + width]
                count += there[down : down + height, right : right + width]
        new = ~known & (count > 0)
        colors[new] = sums[new] / count[new][:, None]
        known = known | new
    if known.any():
        colors[~known] = colors[known].mean(axis=0)
    return np.rint(colors).astype(np.uint8)
