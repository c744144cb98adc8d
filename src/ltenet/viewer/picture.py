"""The coloured pair as a PNG, without a browser."""

from __future__ import annotations

from ltenet.correspondence import Correspondence
from ltenet.drawing.rendering import Image, contact_sheet, render
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
    tiles = [
        render(shape.points, shape.faces, colors=shades, size=size, yaw=yaw, pitch=pitch)
        for shape, shades in zip((source, target), colors, strict=True)
    ]
    return contact_sheet(tiles, columns=2, captions=[source.name, target.name])
