"""Pictures of textures: read with Pillow, an optional dependency; looked up between pixels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ltenet.drawing.rendering import Image
from ltenet.errors import MissingError
from ltenet.geometry.arrays import FloatArray
from ltenet.io.formats.text import failure, read_bytes

#: Parsers of Pillow that a file may reach: what textures are made of, and nothing else.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TGA", "TIFF")
#: Pixels for each byte of a file; DEFLATE packs at most 1,032 bytes into one [RFC 1951].
PIXELS_PER_BYTE = 1032


def pillow() -> Any:
    """Return the module `PIL.Image`."""
    try:
        import PIL.Image
    except ImportError:
        raise MissingError(
            "got a texture, expected Pillow to read and write it; try pip install 'ltenet[texture]'"
        ) from None
    return PIL.Image


def read_picture(path: Path) -> Image:
    """Read (H, W, 3) or (H, W, 4) uint8 from a PNG, a JPEG or another of `FORMATS`."""
    return decoded(path, read_bytes(path))


def decoded(path: Path, data: bytes) -> Image:
    """Decode a picture that a file at `path` is or holds."""
    module = pillow()
    try:
        picture = module.open(io.BytesIO(data), formats=FORMATS)
        width, height = picture.size
        if width * height > PIXELS_PER_BYTE * len(data):
            raise ValueError(f"{width} x {height} pixels in {len(data)} bytes")
        transparent = picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info
        return np.asarray(picture.convert("RGBA" if transparent else "RGB"), dtype=np.uint8)
    except Exception as error:  # Pillow raises whatever its parsers stumble over
        raise failure(
            path,
            None,
            f"got a picture that cannot be read ({type(error).__name__}: {error}), expected a PNG "
            "or a JPEG",
            "try exporting the texture again",
        ) from None


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
