"""Pictures of shapes without a graphics card: a z-buffer, soft light, PNG files.

The camera looks along -z with y up, so a shape in the canonical frame shows its front. The
projection is orthographic. Pictures are supersampled by two against jagged edges.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltenet.drawing.bitmap_font import text_mask
from ltenet.drawing.rasterizer import draw_balls, draw_triangles, empty_canvas, lit
from ltenet.errors import InputError
from ltenet.files import atomic_path
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.normals import vertex_normals
from ltenet.geometry.rotations import axis_rotation, compose
from ltenet.shape import Shape

Image = NDArray[np.uint8]

_PLAIN_MESH = (202, 207, 214)
_PLAIN_CLOUD = (96, 126, 164)
_SUPERSAMPLING = 2
_MARGIN = 1.08
_FADING = 0.35


def render(
    points: ArrayLike,
    faces: ArrayLike | None = None,
    *,
    colors: ArrayLike | None = None,
    size: tuple[int, int] = (320, 320),
    yaw: float = 25.0,
    pitch: float = 12.0,
    span: float | None = None,
    background: tuple[int, int, int] = (255, 255, 255),
) -> Image:
    """Render a mesh, or a cloud as small balls.

    Parameters
    ----------
    points
        (N, 3) coordinates.
    faces
        (F, 3) vertex indices; None for a cloud.
    colors
        (N, 3) or (N, 4) uint8 colours of the points, or one (3,) for all; plain by default.
    size
        Width and height of the picture in pixels.
    yaw, pitch
        Rotation in degrees about the vertical, then towards the viewer.
    span
        Length that fills the shorter side; None fits the shape.
    background
        Colour of the background.

    Returns
    -------
    (height, width, 3) uint8.
    """
    shape = Shape(
        points=np.asarray(points),
        faces=None if faces is None else np.asarray(faces),
        name="shape to render",
    )
    plain = _PLAIN_CLOUD if shape.faces is None else _PLAIN_MESH
    shades = _point_colors(plain if colors is None else colors, len(shape))  # (N, 3)
    width, height = (_SUPERSAMPLING * side for side in _checked_size(size))
    turned = shape.points @ _view(yaw, pitch).T  # (N, 3)
    low, high = turned.min(axis=0), turned.max(axis=0)
    centre = (low + high) / 2  # (3,)
    if span is None:
        extent = np.maximum((high - low)[:2], 1e-12) / (width, height)
        pixels_per_unit = 1 / (float(extent.max()) * _MARGIN)
    else:
        pixels_per_unit = min(width, height) / span
    screen = (turned - centre) * (pixels_per_unit, -pixels_per_unit, pixels_per_unit)
    screen += (width / 2, height / 2, 0)  # (N, 3) x to the right, y down, z to the viewer

    canvas = empty_canvas(width, height)
    if shape.faces is None or len(shape.faces) == 0:
        radius = _ball_radius((high - low)[:2] * pixels_per_unit, len(shape), min(width, height))
        # Clouds are transparent: far points fade a little, so that the front stands out.
        far = (high[2] - turned[:, 2:]) / max(float(high[2] - low[2]), 1e-12)  # (N, 1)
        faded = shades + _FADING * far * (np.array(background) / 255 - shades)  # (N, 3)
        draw_balls(canvas, screen, faded, radius)
    else:
        normals = vertex_normals(turned, shape.faces)  # (N, 3)
        draw_triangles(canvas, screen, shape.faces, normals, shades)
    large = lit(canvas, np.array(background) / 255).reshape(height, width, 3)
    blocks = large.reshape(height // _SUPERSAMPLING, _SUPERSAMPLING, -1, _SUPERSAMPLING, 3)
    image: Image = np.round(255 * blocks.mean(axis=(1, 3))).astype(np.uint8)
    return image


def contact_sheet(
    tiles: Sequence[Image],
    *,
    columns: int,
    captions: Sequence[str] | None = None,
    gap: int = 6,
    background: tuple[int, int, int] = (255, 255, 255),
) -> Image:
    """Arrange pictures of one size in a grid, each with its caption below.

    Parameters
    ----------
    tiles
        (H, W, 3) uint8 pictures.
    columns
        Pictures in a row.
    captions
        One per picture; long ones are truncated.
    gap
        Pixels between pictures.
    background
        Colour of the gaps.

    Returns
    -------
    (height, width, 3) uint8.
    """
    if not tiles or columns < 1 or len({tile.shape for tile in tiles}) != 1:
        raise InputError(
            f"got {len(tiles)} pictures in {columns} columns, expected at least one picture and "
            "column, all pictures of one size; try rendering them with the same size"
        )
    if captions is not None and len(captions) != len(tiles):
        raise InputError(
            f"got {len(captions)} captions for {len(tiles)} pictures, expected one per picture; "
            "try empty captions for the others"
        )
    height, width, _ = tiles[0].shape
    scale = max(1, round(width / 160))
    strip = 0 if captions is None else 8 * scale + 6
    rows = -(-len(tiles) // columns)
    sheet = np.empty(
        (rows * (height + strip + gap) + gap, columns * (width + gap) + gap, 3), np.uint8
    )
    sheet[:] = background
    ink = (40, 44, 52) if sum(background) > 382 else (225, 228, 232)
    for place, tile in enumerate(tiles):
        top = gap + place // columns * (height + strip + gap)
        left = gap + place % columns * (width + gap)
        sheet[top : top + height, left : left + width] = tile
        if captions is not None and captions[place]:
            mask = text_mask(_cut(captions[place], width // (6 * scale)), scale=scale)
            start = left + (width - mask.shape[1]) // 2
            area = sheet[top + height + 3 :, start:][: mask.shape[0], : mask.shape[1]]
            area[mask] = ink
    return sheet


def write_png(path: str | os.PathLike[str], image: Image, *, force: bool = False) -> None:
    """Write an (H, W), (H, W, 3) or (H, W, 4) uint8 picture, reproducibly."""
    with atomic_path(path, force=force) as temporary:
        temporary.write_bytes(png_bytes(image))


def png_bytes(image: Image) -> bytes:
    """Encode an (H, W), (H, W, 3) or (H, W, 4) uint8 picture."""
    kinds = {1: 0, 3: 2, 4: 6}
    pixels = np.asarray(image)
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels
    if (
        pixels.dtype != np.uint8
        or pixels.ndim != 3
        or pixels.shape[2] not in kinds
        or not pixels.size
    ):
        raise InputError(
            f"picture: got {image.dtype} of shape {image.shape}, expected uint8 of (H, W), "
            "(H, W, 3) or (H, W, 4); try scaling it to 0..255 first"
        )
    height, width, channels = pixels.shape
    # A zero before each row means no filter.
    rows = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))
    header = struct.pack(">IIBBBBB", width, height, 8, kinds[channels], 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", header)
        + _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9))
        + _chunk(b"IEND", b"")
    )


def _view(yaw: float, pitch: float) -> FloatArray:
    """(3, 3) rotation about the vertical, then towards the viewer."""
    return compose(axis_rotation((1, 0, 0), pitch), axis_rotation((0, 1, 0), yaw))


def _ball_radius(extent: FloatArray, count: int, side: int) -> float:
    """Radius at which balls spread evenly over the picture would nearly touch."""
    length = float(extent.max())
    if length < 1:
        return side / 32
    area = max(float(extent.prod()), 0.05 * length**2)
    return float(np.clip(0.5 * np.sqrt(area / count), 1.5, side / 32))


def _point_colors(colors: ArrayLike, count: int) -> FloatArray:
    """(N, 3) in 0..1."""
    given = np.asarray(colors)
    if given.shape == (3,) and given.dtype.kind in "iu" and 0 <= given.min() <= given.max() <= 255:
        given = np.broadcast_to(given.astype(np.uint8), (count, 3))
    if given.dtype != np.uint8 or given.shape not in ((count, 3), (count, 4)):
        raise InputError(
            f"got colours of type {given.dtype} and shape {given.shape} for {count} points, "
            "expected uint8 of shape (N, 3), or one triple of 0..255; try scaling floats"
        )
    return given[:, :3] / 255


def _checked_size(size: tuple[int, int]) -> tuple[int, int]:
    if min(size) < 1 or max(size) > 8192:
        raise InputError(
            f"got a picture of {size[0]} x {size[1]} pixels, expected sides of 1 to 8192; "
            "try a smaller size"
        )
    return size


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: max(letters - 2, 0)] + ".."
