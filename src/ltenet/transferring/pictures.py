"""Pictures of textures: read with Pillow, an optional dependency; looked up between pixels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ltenet.errors import MissingError
from ltenet.formats.text import failure, read_bytes
from ltenet.rendering import Image
from ltenet.shape import FloatArray


def pillow() -> Any:
    """Return the module `PIL.Image`."""
    try:
        import PIL.Image
    except ImportError:
        raise MissingError(
            "Pillow is not installed; textures need it to read pictures; "
            "pip install 'ltenet[texture]'"
        ) from None
    return PIL.Image


def read_picture(path: Path) -> Image:
    """Read (H, W, 3) or (H, W, 4) uint8 from a PNG, a JPEG or whatever else Pillow knows."""
    data = read_bytes(path)
    module = pillow()
    try:
        return as_array(module.open(io.BytesIO(data)))
    except Exception as error:  # Pillow raises whatever its parsers stumble over
        raise failure(
            path,
            None,
            f"the picture cannot be read ({type(error).__name__}: {error}), a PNG or a JPEG is "
            "needed",
            "export the texture again",
        ) from None


def as_array(picture: Any) -> Image:
    """(H, W, 3) or, with transparency, (H, W, 4) uint8 of a picture of Pillow."""
    transparent = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
    return np.asarray(picture.convert("RGBA" if transparent else "RGB"), dtype=np.uint8)


def looked_up(picture: Image, uv: FloatArray) -> FloatArray:
    """Colours (N, 3), 0 to 255, at (N, 2) coordinates: u to the right, v up, both from 0 to 1.

    Between the centres of pixels colours are mixed; beyond the border the picture is repeated.
    """
    height, width = picture.shape[:2]
    x, y = uv[:, 0] * width - 0.5, (1 - uv[:, 1]) * height - 0.5  # (N,)
    left, top = np.floor(x).astype(np.int64), np.floor(y).astype(np.int64)
    right_share, low_share = (x - left)[:, None], (y - top)[:, None]  # (N, 1)
    colors = np.zeros((len(uv), 3))
    for step_x, share_x in ((0, 1 - right_share), (1, right_share)):
        for step_y, share_y in ((0, 1 - low_share), (1, low_share)):
            pixels = picture[(top + step_y) % height, (left + step_x) % width, :3]  # (N, 3)
            colors += share_x * share_y * pixels
    return colors
