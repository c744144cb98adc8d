"""Scaling the segments of a person at rest: vertices and joints keep together.

Each segment g has an affine map about its head c_g, with length along the bone and width and depth
across it; a child starts where its parent's map takes it. Blended over the segments,

    x' = sum_g w_g ( A_g (x - c_g) + c'_g ).

The weights w are the skinning weights of a segment's bones, smoothed along the surface so that
thick segments run into thin ones without a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Single = NDArray[np.float32]


class _Segment(NamedTuple):
    """Bones of a segment by the start of their names, the segment it hangs on, and its axis.

    The axis runs between the heads of two bones; a segment without one is scaled along x, y, z.
    """

    bones: tuple[str, ...]
    parent: str | None
    head: str
    tail: str | None = None
    paired: bool = True


_SEGMENTS: dict[str, _Segment] = {
    "pelvis": _Segment(("root",), None, "root", None, False),
    "waist": _Segment(("spine05", "spine04"), "pelvis", "spine05", None, False),
    "chest": _Segment(("spine03", "spine02", "spine01"), "waist", "spine03", None, False),
    "shoulder": _Segment(("clavicle", "shoulder01"), "chest", "clavicle", "upperarm01"),
    "neck": _Segment(("neck",), "chest", "neck01", "head", False),
    "head": _Segment(("head",), "neck", "head", None, False),
    "upperarm": _Segment(("upperarm",), "shoulder", "upperarm01", "lowerarm01"),
    "forearm": _Segment(("lowerarm",), "upperarm", "lowerarm01", "wrist"),
    "hand": _Segment(("wrist", "finger"), "forearm", "wrist", "finger3-1"),
    "thigh": _Segment(("upperleg",), "pelvis", "upperleg01", "lowerleg01"),
    "shank": _Segment(("lowerleg",), "thigh", "lowerleg01", "foot"),
    "foot": _Segment(("foot", "toe"), "shank", "foot", None),
}
_SMOOTHING_STEPS = 12


class SegmentScaling:
    """Scales the segments of every person of one body model.

    Parameters
    ----------
    weights
        (V, J) skinning weights.
    faces
        (F, 3)
    bone_index
        Position of each bone by name.
    """

    def __init__(
        self, weights: Single, faces: NDArray[np.int32], bone_index: Mapping[str, int]
    ) -> None:
        names = [
            f"{name}.{side}" if side else name
            for name, segment in _SEGMENTS.items()
            for side in ("LR" if segment.paired else ("",))
        ]
        self._names = [name.partition(".")[0] for name in names]
        self._parents, self._heads, self._tails = [], [], []
        owner = np.zeros(len(bone_index), np.int64)  # (J,)
        for number, name in enumerate(names):
            base, dot, side = name.partition(".")
            segment = _SEGMENTS[base]
            for bone, j in bone_index.items():
                if bone.startswith(segment.bones) and bone.endswith(dot + side):
                    owner[j] = number
            parent = segment.parent
            if parent is not None and _SEGMENTS[parent].paired:
                parent += dot + side
            self._parents.append(-1 if parent is None else names.index(parent))
            self._heads.append(bone_index[segment.head + dot + side])
            tail = segment.tail or segment.head
            self._tails.append(bone_index[tail + dot + side])
        self._owner = owner
        shares = np.stack([weights[:, owner == g].sum(1) for g in range(len(names))])  # (G, V)
        self._weights = _smoothed(shares, faces)  # (G, V)

    def apply(
        self, vertices: Single, joints: Single, scales: Mapping[str, tuple[float, float, float]]
    ) -> tuple[Single, Single]:
        """Scale a person at rest.

        Parameters
        ----------
        vertices, joints
            (V, 3) and (J, 3).
        scales
            (length, width, depth) by segment; those left out are 1.
        """
        heads = joints[self._heads].astype(np.float64)  # (G, 3)
        axes = joints[self._tails] - heads  # (G, 3)
        maps = [  # G times (3, 3)
            _scaling(axis, scales.get(name, (1.0, 1.0, 1.0)), upright=name != "foot")
            for axis, name in zip(axes, self._names, strict=True)
        ]
        moved = heads.copy()  # (G, 3)
        for g, parent in enumerate(self._parents):
            if parent >= 0:
                moved[g] = moved[parent] + maps[parent] @ (heads[g] - heads[parent])
        linear = np.stack(maps)  # (G, 3, 3)
        shift = moved - (linear @ heads[:, :, None])[:, :, 0]  # (G, 3)
        own = linear[self._owner] @ joints[:, :, None]  # (J, 3, 1)
        affine = np.concatenate([linear.reshape(-1, 9), shift], axis=1).astype(np.float32)
        blended = affine.T @ self._weights  # (12, V)
        x, y, z = vertices.T  # (V,) each
        scaled = np.empty_like(vertices, order="F")  # (V, 3)
        for row in range(3):
            a, b, c = blended[3 * row : 3 * row + 3]  # (V,) each
            scaled[:, row] = a * x + b * y + c * z + blended[9 + row]
        return scaled, (own[:, :, 0] + shift[self._owner]).astype(np.float32)


def _scaling(axis: Floats, scale: Sequence[float], *, upright: bool) -> Floats:
    """(3, 3) map with the given length, width and depth; a zero axis means x, y, z."""
    length, width, depth = scale
    norm = float(axis @ axis)
    if norm == 0.0:  # a foot is long along z and deep along y
        return np.diag((width, length, depth) if upright else (width, depth, length))
    along: Floats = width * np.eye(3) + (length - width) / norm * np.outer(axis, axis)
    return along


def _smoothed(values: Single, faces: NDArray[np.int32]) -> Single:
    """(G, V) values averaged with those of their neighbours several times; columns sum to one."""
    start = faces[:, [0, 1, 2]].reshape(-1)  # (3 F,); each edge of a closed mesh both ways
    stop = faces[:, [1, 2, 0]].reshape(-1)  # (3 F,)
    order = np.argsort(start, kind="stable")
    neighbours = stop[order]  # (3 F,)
    counts = np.bincount(start, minlength=values.shape[1])  # (V,)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])  # (V,)
    smooth = values.astype(np.float64)  # (G, V)
    for _ in range(_SMOOTHING_STEPS):
        mean = np.add.reduceat(smooth[:, neighbours], first, axis=1) / counts  # (G, V)
        smooth = 0.5 * smooth + 0.5 * mean
    return np.ascontiguousarray(smooth / smooth.sum(axis=0), np.float32)
