"""What every generator of training shapes returns: a body, and the template behind its numbering.

Units and frame are those of the whole project: metres, y-up, facing +z, body's left = +x.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Float64Array = NDArray[np.float64]


@dataclass(frozen=True)
class GeneratedBody:
    """One generated shape.

    Attributes
    ----------
    vertices
        (V, 3) float32, metres, canonical frame.
    family
        Pose family, for example ``"walk"``.
    category
        ``"human"``, or the species of an animal.
    template
        Name of the template; bodies of one template share their numbering.
    build
        Build of a human, for example ``"muscular"``, or whether the proportions of an animal are
        those of its species or wider; empty if not known.
    """

    vertices: NDArray[np.float32]
    family: str
    category: str
    template: str
    build: str = ""


@dataclass(frozen=True)
class Template:
    """What the bodies of one numbering have in common.

    Attributes
    ----------
    name
        Short name, for example ``"human"``.
    faces
        (F, 3) int32, oriented outwards.
    mirror
        (V,) int32, left/right partner of each vertex; an involution.
    side
        (V,) int8: +1 on the body's left, -1 on its right, 0 in the middle.
    front
        (V,) int8: +1 on the front, -1 on the back of its body part in the rest pose, 0 undecided.
    opposite
        (V,) int32, front/back partner: the nearest vertex across the axis of the same body part.
    size
        (V,) float32, how thick the body part is at rest, see `part_sizes`; None if not known.
    rest
        (V, 3) float32 in the rest pose, upright and facing +z; None if not known.
    regions
        (V,) masks of what may be all that a scan shows, by name: ``"arm.L"``, ``"lower"``.
    """

    name: str
    faces: NDArray[np.int32]
    mirror: NDArray[np.int32]
    side: NDArray[np.int8]
    front: NDArray[np.int8]
    opposite: NDArray[np.int32]
    size: NDArray[np.float32] | None = None
    rest: NDArray[np.float32] | None = None
    regions: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)


def individual_rng(seed: int, individual: int) -> np.random.Generator:
    """Draws the build of one individual, apart from the streams that draw poses."""
    return np.random.default_rng([seed, individual, 1])


def part_sizes(vertices: NDArray[np.floating], weights: NDArray[np.floating]) -> Float64Array:
    """Thickness of the body part around each vertex, from skinning weights alone.

    The size of a part is the spread of its vertices across its longest axis; between two parts it
    goes over from one to the other as the weights do.

    Parameters
    ----------
    vertices
        (V, 3) in the rest pose.
    weights
        (J, V) share of each part in each vertex; columns sum to one.

    Returns
    -------
    (V,) sizes; their geometric mean is 1.
    """
    mass = np.maximum(weights.sum(axis=1, dtype=np.float64), 1e-9)  # (J,)
    points = np.asarray(vertices - vertices.mean(axis=0), dtype=np.float64)  # (V, 3)
    centres = weights @ points / mass[:, None]  # (J, 3)
    squares = (points[:, :, None] * points[:, None, :]).reshape(-1, 9)  # (V, 9)
    moments = (weights @ squares / mass[:, None]).reshape(-1, 3, 3)  # (J, 3, 3)
    moments -= centres[:, :, None] * centres[:, None, :]
    narrow = np.linalg.eigvalsh(moments)[:, :2].sum(axis=1)  # (J,)
    logarithms = 0.5 * np.log(np.maximum(narrow, 1e-12)) @ weights  # (V,)
    sizes: Float64Array = np.exp(logarithms - logarithms.mean())  # (V,)
    return sizes
