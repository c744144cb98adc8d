"""Paint one mesh with the picture of another: at its points, or into a picture of its own.

A picture of one's own needs places in it (uv). Each of its pixels lies in a triangle, so on the
surface; the map carries that place to the painted mesh, whose picture is looked up there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltenet.rasterizer import draw_triangles, empty_canvas
from ltenet.rendering import Image
from ltenet.shape import FloatArray, IntArray, Shape
from ltenet.transferring.surface import Surface
from ltenet.transferring.textured import TexturedMesh

#: Side of a new picture in pixels.
SIDE = 1024
#: Pixels by which colours reach beyond the triangles, so that seams do not show.
_BLEED = 8
_MISSING = 128.0


def painted_points(giver: TexturedMesh, onto: Shape, places: FloatArray) -> Shape:
    """Return `onto` with colours looked up at (N, 3) places on the giver; grey where NaN."""
    colors = _colors(giver, Surface(giver.shape), places)
    return replace(onto, colors=np.rint(colors).astype(np.uint8))


def painted_mesh(
    giver: TexturedMesh, onto: TexturedMesh, places: FloatArray, *, side: int | None = None
) -> TexturedMesh:
    """Return `onto` with new pictures, whose pixels are looked up on the giver.

    Parameters
    ----------
    giver
        The mesh with the picture.
    onto
        A mesh with places in a picture; its own pictures are replaced by ones of the same size.
    places
        (N, 3) where the points of `onto` lie on the giver, NaN where that is not known.
    side
        Width and height of the new pictures; None takes those of the old ones, or `SIDE`.
    """
    surface = Surface(giver.shape)
    pictures: list[Image] = []
    painted = np.zeros_like(onto.painted)
    for number in np.unique(onto.painted):
        rows = np.flatnonzero(onto.painted == number)
        width = height = side or SIDE
        if number >= 0 and side is None:
            height, width = onto.pictures[number].shape[:2]
        faces, weights = _pixels(onto.uv[onto.corners[rows]], width, height)
        filled = np.flatnonzero(faces >= 0)  # (p,)
        assert onto.shape.faces is not None
        corners = onto.shape.faces[rows[faces[filled]]]  # (p, 3)
        there = np.einsum("pk,pkd->pd", weights[filled], places[corners])  # (p, 3)
        picture = np.full((height * width, 3), np.nan)
        picture[filled] = _colors(giver, surface, there)
        painted[rows] = len(pictures)
        pictures.append(_bled(picture.reshape(height, width, 3)))
    return replace(onto, pictures=tuple(pictures), painted=painted)


def _colors(giver: TexturedMesh, surface: Surface, places: FloatArray) -> FloatArray:
    """Colours (N, 3) of the giver nearest to (N, 3) places; grey where these are NaN."""
    colors = np.full((len(places), 3), _MISSING)
    known = np.flatnonzero(np.isfinite(places).all(axis=1))
    nearest = surface.nearest(places[known])
    colors[known] = giver.colors_at(nearest.faces, nearest.weights)
    return colors


def _pixels(uv: FloatArray, width: int, height: int) -> tuple[IntArray, FloatArray]:
    """Triangle (P,), -1 for none, and barycentric weights (P, 3) at each pixel.

    `uv` (F, 3, 2) are the corners of the triangles in the picture.
    """
    uv = uv - np.floor(uv.mean(axis=1, keepdims=True))  # pictures repeat: all into the first one
    count = len(uv)
    screen = np.empty((count, 3, 3))
    screen[..., 0] = uv[..., 0] * width
    screen[..., 1] = (1 - uv[..., 1]) * height
    # The rasteriser mixes colours and keeps the largest depth: weights and number of the triangle.
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
    """Let colours (H, W, 3) run into pixels that are NaN; the mean colour is left for the rest."""
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
