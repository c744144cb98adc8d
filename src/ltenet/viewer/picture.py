"""The coloured pair as a PNG, without a browser."""

from __future__ import annotations

import numpy as np

from ltenet.correspondence import Correspondence
from ltenet.drawing.rendering import Image, contact_sheet, render
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import kabsch
from ltenet.shape import Shape
from ltenet.viewer.colors import color_frame, position_colors


def picture(
    source: Shape,
    target: Shape,
    correspondence: Correspondence,
    *,
    size: tuple[int, int] = (640, 720),
    yaw: float = 25.0,
    pitch: float = 8.0,
) -> Image:
    """Draw the target coloured by position and, left of it, the source coloured by the map.

    The target stands upright if the map says how, and the source is turned as the map turns it, so
    that both are seen from the same side.

    Parameters
    ----------
    source, target
        The shapes of the map.
    correspondence
        The map; source points without a partner are grey.
    size
        Width and height of each of the two pictures, in pixels.
    yaw, pitch
        Rotation in degrees about the vertical, then towards the viewer.

    Returns
    -------
    (height, width, 3) uint8.
    """
    frame = color_frame(target.points)
    colors = (
        position_colors(correspondence.positions(target), frame),  # (N, 3)
        position_colors(target.points, frame),  # (M, 3)
    )
    target = target.rotated(_upright(correspondence))
    places, matched = correspondence.positions(target), correspondence.matched  # (N, 3), (N,)
    if matched.sum() >= 3:
        source = source.rotated(kabsch(source.points[matched], places[matched]).rotation)
    tiles = [
        render(shape.points, shape.faces, colors=shades, size=size, yaw=yaw, pitch=pitch)
        for shape, shades in zip((source, target), colors, strict=True)
    ]
    return contact_sheet(tiles, columns=2, captions=[source.name, target.name])


def _upright(correspondence: Correspondence) -> FloatArray:
    """(3, 3) rotation that turns the target upright; none for maps that do not say."""
    try:
        rotation = np.asarray(correspondence.details.get("upright"), dtype=np.float64)
    except (TypeError, ValueError):  # a file may say anything
        return np.eye(3)
    fits = rotation.shape == (3, 3) and np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-3)
    return rotation if fits else np.eye(3)
