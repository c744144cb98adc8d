"""A z-buffer for triangles and balls, and shading, in numpy.

Screen coordinates are pixels: x to the right, y down, z towards the viewer. Normals are in the
camera's frame: x to the right, y up, z towards the viewer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.normals import unit_vectors

#: Candidate pixels handled at a time; each takes about 100 bytes.
_CHUNK = 500_000

_KEY_LIGHT = np.array([-0.45, 0.62, 0.64])  # from above the viewer's left shoulder
_HALFWAY = np.array([-0.25, 0.34, 0.91])  # between the key light and the viewer


class Canvas(NamedTuple):
    """The nearest surface at each pixel, row by row from the top.

    Attributes
    ----------
    width, height
        In pixels; P = width x height.
    depth
        (P,) towards the viewer, -inf in the background.
    normals
        (P, 3) unit vectors.
    colors
        (P, 3) in 0..1.
    """

    width: int
    height: int
    depth: FloatArray
    normals: FloatArray
    colors: FloatArray


def empty_canvas(width: int, height: int) -> Canvas:
    """Return a canvas that is all background."""
    count = width * height
    return Canvas(
        width, height, np.full(count, -np.inf), np.zeros((count, 3)), np.zeros((count, 3))
    )


def draw_triangles(
    canvas: Canvas, screen: FloatArray, faces: IntArray, normals: FloatArray, colors: FloatArray
) -> None:
    """Draw a mesh, interpolating normals and colours, both (N, 3) at the vertices."""
    corners = screen[faces]  # (F, 3, 3)
    # Pixel centres are at half-integers; each box holds the centres its triangle may cover.
    limits = np.array([canvas.width, canvas.height])
    low = np.maximum(np.ceil(corners[:, :, :2].min(axis=1) - 0.5), 0).astype(np.int64)  # (F, 2)
    high = np.minimum(np.floor(corners[:, :, :2].max(axis=1) - 0.5), limits - 1).astype(np.int64)
    double_area = _edge(corners[:, 0], corners[:, 1], corners[:, 2, 0], corners[:, 2, 1])  # (F,)
    mesh = _Mesh(faces, corners, low, high, double_area, normals, colors)
    drawn = (high >= low).all(axis=1) & (double_area != 0)
    # Boxes are drawn in batches of similar size: side 1, 2, 4, ...
    sides = np.where(drawn, (high - low).max(axis=1) + 1, 1)
    buckets = np.ceil(np.log2(sides)).astype(np.int64)
    for bucket in np.unique(buckets[drawn]):
        side = 2 ** int(bucket)
        members = np.flatnonzero(drawn & (buckets == bucket))
        step = max(1, _CHUNK // side**2)
        for start in range(0, len(members), step):
            chosen = members[start : start + step]
            _draw_boxes(canvas, mesh, chosen, side)


def draw_balls(canvas: Canvas, screen: FloatArray, colors: FloatArray, radius: float) -> None:
    """Draw a cloud as balls of one radius in pixels, with (N, 3) colours."""
    reach = int(np.ceil(radius))
    offsets = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * 2), axis=-1).reshape(-1, 2)
    step = max(1, _CHUNK // len(offsets))
    for start in range(0, len(screen), step):
        centres = screen[start : start + step]  # (C, 3)
        pixels = np.floor(centres[:, None, :2]).astype(np.int64) + offsets  # (C, O, 2)
        away = (pixels + 0.5 - centres[:, None, :2]) / radius  # (C, O, 2)
        squared = np.square(away).sum(axis=2)  # (C, O)
        inside = (squared < 1) & (pixels >= 0).all(axis=2)
        inside &= (pixels < (canvas.width, canvas.height)).all(axis=2)
        ball, offset = np.nonzero(inside)  # (K,)
        rise = np.sqrt(1 - squared[ball, offset])  # (K,)
        depth = centres[ball, 2] + radius * rise
        place = pixels[ball, offset, 1] * canvas.width + pixels[ball, offset, 0]
        nearest = _nearest(canvas, place, depth)
        place, ball, offset = place[nearest], ball[nearest], offset[nearest]
        sideways = away[ball, offset] * (1, -1)  # (K, 2)
        canvas.normals[place] = np.concatenate([sideways, rise[nearest][:, None]], axis=1)
        canvas.colors[place] = colors[start + ball]


def lit(canvas: Canvas, background: FloatArray) -> FloatArray:
    """(P, 3) shaded colours in 0..1: ambient, key light, specular, ambient occlusion."""
    there = np.isfinite(canvas.depth)
    normals = canvas.normals[there]  # (K, 3)
    key = np.clip(0.5 + 0.5 * normals @ unit_vectors(_KEY_LIGHT), 0, 1) ** 1.6
    sky = 0.5 + 0.5 * normals[:, 1]
    gloss = np.clip(normals @ unit_vectors(_HALFWAY), 0, 1) ** 40
    rim = np.clip(1 - normals[:, 2], 0, 1) ** 3
    light = (0.30 + 0.20 * sky + 0.74 * key) * (1 - 0.25 * rim)  # (K,)
    light *= 1 - 0.45 * _occlusion(canvas)[there]
    result = np.repeat(background[None], len(there), axis=0)  # (P, 3)
    result[there] = np.clip(canvas.colors[there] * light[:, None] + 0.08 * gloss[:, None], 0, 1)
    return result


class _Mesh(NamedTuple):
    """Triangles on the screen, with the pixels (low to high, inclusive) that each may cover."""

    faces: IntArray  # (F, 3)
    corners: FloatArray  # (F, 3, 3)
    low: IntArray  # (F, 2)
    high: IntArray  # (F, 2)
    double_area: FloatArray  # (F,)
    normals: FloatArray  # (N, 3)
    colors: FloatArray  # (N, 3)


def _draw_boxes(canvas: Canvas, mesh: _Mesh, chosen: IntArray, side: int) -> None:
    """Draw the chosen triangles, whose boxes fit into `side` x `side` pixels."""
    faces, corners, low, high, double_area, normals, colors = mesh
    steps = np.arange(side)
    x = low[chosen, 0, None, None] + steps[None, None, :]  # (C, 1, side)
    y = low[chosen, 1, None, None] + steps[None, :, None]  # (C, side, 1)
    first, second, third = (corners[chosen, corner, :2][:, None, None] for corner in range(3))
    pixel_x, pixel_y = x + 0.5, y + 0.5
    area = double_area[chosen, None, None]
    weights = [
        _edge(start, stop, pixel_x, pixel_y) / area
        for start, stop in ((second, third), (third, first))
    ]  # 2 x (C, side, side)
    last = 1 - weights[0] - weights[1]
    inside = (weights[0] >= 0) & (weights[1] >= 0) & (last >= 0)
    inside &= (x <= high[chosen, 0, None, None]) & (y <= high[chosen, 1, None, None])
    triangle, row, column = np.nonzero(inside)  # (K,)
    mixture = np.stack([part[triangle, row, column] for part in (*weights, last)], axis=1)  # (K, 3)
    face = chosen[triangle]
    depth = (mixture * corners[face, :, 2]).sum(axis=1)  # (K,)
    place = (low[face, 1] + row) * canvas.width + low[face, 0] + column
    nearest = _nearest(canvas, place, depth)
    place, face, mixture = place[nearest], face[nearest], mixture[nearest]
    blended = (mixture[:, :, None] * normals[faces[face]]).sum(axis=1)  # (K, 3)
    # On the screen y points down, so front faces have a negative area.
    towards = -np.sign(double_area[face])
    canvas.normals[place] = unit_vectors(blended * towards[:, None])
    canvas.colors[place] = (mixture[:, :, None] * colors[faces[face]]).sum(axis=1)


def _nearest(canvas: Canvas, place: IntArray, depth: FloatArray) -> IntArray:
    """Write depths that pass the depth test; return their rows, one for each pixel."""
    order = np.argsort(depth, kind="stable")
    order = order[depth[order] > canvas.depth[place[order]]]
    # numpy keeps the last assignment to an index, here the nearest.
    canvas.depth[place[order]] = depth[order]
    winners: IntArray = order[canvas.depth[place[order]] == depth[order]]
    return winners


def _occlusion(canvas: Canvas) -> FloatArray:
    """(P,) occlusion in 0..1: how far a pixel lies behind the mean depth around it."""
    depth = canvas.depth.reshape(canvas.height, canvas.width)
    there = np.isfinite(depth)
    filled = np.where(there, depth, 0.0)
    result = np.zeros_like(depth)
    for share in (80, 30):
        radius = max(2, min(depth.shape) // share)
        weight = _box_sum(there.astype(np.float64), radius)
        behind = _box_sum(filled, radius) / np.maximum(weight, 1) - filled
        result += np.where(there, np.clip(behind / (2.0 * radius), 0, 1), 0) / 2
    return result.reshape(-1)


def _box_sum(values: FloatArray, radius: int) -> FloatArray:
    """Sum over the square of side 2 radius + 1 around each pixel."""
    for axis in (0, 1):
        widths = [(0, 0), (0, 0)]
        widths[axis] = (radius + 1, radius)
        running = np.cumsum(np.pad(values, widths), axis=axis)
        length = values.shape[axis]
        upper = np.take(running, np.arange(length) + 2 * radius + 1, axis=axis)
        values = upper - np.take(running, np.arange(length), axis=axis)
    return values


def _edge(
    start: FloatArray, stop: FloatArray, x: NDArray[np.floating], y: NDArray[np.floating]
) -> FloatArray:
    """Twice the signed area of the triangle of an edge and a pixel."""
    along_x, along_y = stop[..., 0] - start[..., 0], stop[..., 1] - start[..., 1]
    area: FloatArray = along_x * (y - start[..., 1]) - along_y * (x - start[..., 0])
    return area
