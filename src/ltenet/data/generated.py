"""What every generator of training shapes returns: a body, and the template behind its numbering.

Units and frame are those of the whole project: metres, y-up, facing +z, body's left = +x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GeneratedBody:
    """One generated shape.

    Attributes
    ----------
    vertices
        (V, 3) float32, metres, canonical frame.
    kind
        Pose family, for example ``"walk"``.
    category
        ``"human"``, or the species of an animal.
    template
        Name of the template; bodies of one template share their numbering.
    """

    vertices: NDArray[np.float32]
    kind: str
    category: str
    template: str


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
    """

    name: str
    faces: NDArray[np.int32]
    mirror: NDArray[np.int32]
    side: NDArray[np.int8]
    front: NDArray[np.int8]
    opposite: NDArray[np.int32]
