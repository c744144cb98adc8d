"""A texture carried from one shape to the other: texture coordinates for the corners of both.

The page draws the receiver with the giver's own picture, so the detail is that of the picture, not
of the mesh: each point of the receiver lies in a triangle of the giver, which has texture
coordinates. Triangles across a seam would show everything in between; they get the colours of
their corners instead.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ltenet.correspondence import Correspondence
from ltenet.drawing.rendering import Image
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io.pictures import pillow
from ltenet.io.textures import TexturedMesh, read_textured
from ltenet.shape import Shape
from ltenet.transferring.surface import Surface
from ltenet.viewer.packing import UnsignedArray, quantize

#: Longest side of a picture in pixels, most pictures, and JPEG quality.
LONGEST_SIDE = 1024
MOST_PICTURES = 8
_QUALITY = 85
#: An edge is a seam if it stretches this much more in the picture than the triangles around it,
#: beyond a share of the picture that is always allowed.
_STRETCH = 4.0
_ALLOWED = 0.01
#: Gaps of the inverse map are filled from this far, as a share of the diameter.
_FILL = 0.03

logger = logging.getLogger(__name__)

Side = Literal["source", "target"]


@dataclass(frozen=True)
class Texture:
    """Data of the page for a texture on both shapes.

    Attributes
    ----------
    description
        The giver, the box of the texture coordinates, side and number of the pictures.
    arrays
        For each side `texture_colors` (N, 3), and for meshes, by corner, `corner_points` (U,),
        `corner_faces` (3 F,), `corner_uv` (U, 2), `corner_layer` (U,): 0 for none; then the
        `texture_pictures` above each other as one JPEG.
    """

    description: dict[str, Any]
    arrays: dict[str, UnsignedArray]


class _Painted:
    """One side: the colour of each point, and texture coordinates and picture of each corner."""

    def __init__(
        self, shape: Shape, colors: FloatArray, uv: FloatArray, layers: IntArray | None
    ) -> None:
        # (N, 3); uv (F, 3, 2), layers (F,) with 0 for none, or None for a cloud
        self.shape, self.colors, self.uv, self.layers = shape, colors, uv, layers

    def arrays(self, side: Side, low: FloatArray, size: FloatArray) -> dict[str, UnsignedArray]:
        shades = np.rint(self.colors).astype(np.uint8)
        arrays: dict[str, UnsignedArray] = {f"{side}_texture_colors": shades}
        if self.layers is None or self.shape.faces is None:
            return arrays
        steps = quantize(self.uv, low, size).reshape(-1, 2)  # (3 F, 2)
        layers = np.repeat(self.layers, 3)  # (3 F,)
        steps[layers == 0] = 0  # so that they are merged
        corners = np.column_stack([self.shape.faces.reshape(-1), steps, layers])  # (3 F, 4)
        unique, faces = np.unique(corners, axis=0, return_inverse=True)  # (U, 4), (3 F,)
        return arrays | {
            f"{side}_corner_points": unique[:, 0].astype(np.uint32),
            f"{side}_corner_faces": faces.reshape(-1).astype(np.uint32),
            f"{side}_corner_uv": unique[:, 1:3].astype(np.uint16),
            f"{side}_corner_layer": unique[:, 3].astype(np.uint8),
        }


def texture_of(path: str | os.PathLike[str]) -> TexturedMesh | None:
    """Read a textured mesh; failures are warnings, as a report can do without a texture."""
    try:
        mesh = read_textured(path)
    except MemoryError:
        raise
    except Exception as error:  # readers of pictures raise many kinds for damaged bytes
        logger.warning("the texture is left out: %s", error)
        return None
    return mesh if mesh is not None and usable(mesh) else None


def usable(mesh: TexturedMesh) -> bool:
    """Whether a triangle has a picture and all texture coordinates are finite."""
    return bool((mesh.painted >= 0).any() and np.isfinite(mesh.uv).all())


def build_texture(
    source: Shape, target: Shape, correspondence: Correspondence, mesh: TexturedMesh, giver: Side
) -> Texture:
    """Carry the texture of one shape of a map to the other.

    Parameters
    ----------
    source, target, correspondence
        The shapes and the map between them.
    mesh
        The shape with the texture.
    giver
        Which of the two it is.
    """
    pulled = giver == "target"
    receiver, onward = (source if pulled else target), correspondence.attached(source, target)
    if not pulled:
        onward = onward.inverse(fill=_FILL)
    own = _own(mesh)
    carried = _carried(mesh, receiver, onward.positions(mesh.shape))
    sides: dict[Side, _Painted] = {
        "source": carried if pulled else own,
        "target": own if pulled else carried,
    }
    low, high = mesh.uv.min(axis=0), mesh.uv.max(axis=0)  # (2,)
    side, strip = _strip(mesh.pictures[:MOST_PICTURES])
    arrays: dict[str, UnsignedArray] = {}
    for name, painted in sides.items():
        arrays |= painted.arrays(name, low, high - low)
    arrays["texture_pictures"] = np.frombuffer(strip, np.uint8)
    description = {
        "giver": giver,
        "uv_low": low.tolist(),
        "uv_size": (high - low).tolist(),
        "side": side,
        "layers": min(len(mesh.pictures), MOST_PICTURES),
    }
    return Texture(description, arrays)


def _own(mesh: TexturedMesh) -> _Painted:
    colors = mesh.baked().colors
    assert colors is not None
    return _Painted(mesh.shape, colors[:, :3].astype(float), mesh.uv[mesh.corners], _layers(mesh))


def _layers(mesh: TexturedMesh) -> IntArray:
    """(F,) picture of each triangle from 1; 0 for none or beyond `MOST_PICTURES`."""
    return np.where(mesh.painted < MOST_PICTURES, mesh.painted + 1, 0)


def _carried(mesh: TexturedMesh, receiver: Shape, places: FloatArray) -> _Painted:
    """Paint the receiver, whose points lie at (N, 3) positions on the giver, NaN if unknown."""
    known = np.flatnonzero(np.isfinite(places).all(axis=1))
    nearest = Surface(mesh.shape).nearest(places[known])
    count = len(receiver)
    colors = np.full((count, 3), 128.0)
    colors[known] = mesh.colors_at(nearest.faces, nearest.weights)
    uv = np.full((count, 2), np.nan)
    uv[known] = np.einsum("nk,nkd->nd", nearest.weights, mesh.uv[mesh.corners[nearest.faces]])
    layers, stretch = np.zeros(count, np.int64), np.zeros(count)
    layers[known] = _layers(mesh)[nearest.faces]
    stretch[known] = _stretches(mesh)[nearest.faces]
    if receiver.faces is None or not len(receiver.faces):
        return _Painted(receiver, colors, uv[:, None], None)
    faces = receiver.faces
    there, in_picture, worst = places[faces], uv[faces], stretch[faces].max(axis=1)
    whole = (layers[faces] == layers[faces[:, :1]]).all(axis=1) & np.isfinite(in_picture).all(
        axis=(1, 2)
    )
    for first, second in ((0, 1), (1, 2), (2, 0)):
        jump = np.linalg.norm(in_picture[:, first] - in_picture[:, second], axis=1)  # (F,)
        step = np.linalg.norm(there[:, first] - there[:, second], axis=1)  # (F,)
        with np.errstate(invalid="ignore"):
            whole &= jump <= _STRETCH * worst * step + _ALLOWED
    shown: IntArray = np.where(whole, layers[faces[:, 0]], 0)
    return _Painted(receiver, colors, np.nan_to_num(in_picture), shown)


def _stretches(mesh: TexturedMesh) -> FloatArray:
    """(F,) largest ratio of an edge's lengths in the picture and in space."""
    assert mesh.shape.faces is not None
    points, uv = mesh.shape.points[mesh.shape.faces], mesh.uv[mesh.corners]  # (F, 3, 3), (F, 3, 2)
    edges = [np.linalg.norm(np.roll(at, 1, axis=1) - at, axis=2) for at in (uv, points)]  # (F, 3)
    stretches: FloatArray = (edges[0] / np.maximum(edges[1], 1e-300)).max(axis=1)
    # Degenerate triangles say nothing about their neighbourhood.
    return np.minimum(stretches, 10 * float(np.median(stretches)))


def _strip(pictures: Sequence[Image]) -> tuple[int, bytes]:
    """All pictures, resized to squares and stacked, as one JPEG."""
    module = pillow()
    longest = max(max(picture.shape[:2]) for picture in pictures)
    side = min(LONGEST_SIDE, longest)
    layers: list[NDArray[np.uint8]] = [
        np.asarray(
            module.fromarray(np.ascontiguousarray(picture[..., :3])).resize(
                (side, side), module.Resampling.LANCZOS
            )
        )
        for picture in pictures
    ]
    buffer = io.BytesIO()
    module.fromarray(np.concatenate(layers)).save(
        buffer, "JPEG", quality=_QUALITY, subsampling=0, optimize=True
    )
    return side, buffer.getvalue()
