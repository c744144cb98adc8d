"""Shape a template by scaling its bones, with thickness interpolated along a chain of bones.

Each vertex is an axis point on a bone plus a radial offset; length scales the first and thickness
the second, so that short and thick bones never fold over each other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from animal_skeletons import Floats, Skeleton, base_name
from numpy.typing import NDArray

from ltenet.bodies.animal_proportions import GROUPS

CHAINS = (
    ("pelvis", "spine0", "spine1", "chest"),
    ("neck0", "neck1", "neck2"),
    ("torso0", "torso1", "torso2"),
    ("head", "muzzle", "nose"),
    ("tail0", "tail1", "tail2", "tail3", "tail4"),
    ("thigh", "shank", "hock"),
    ("scapula", "upperarm", "forearm", "cannon"),
    ("clavicle", "humerus", "ulna", "hand"),
)


class Species(NamedTuple):
    """Scales per bone or group (multiplied where both are given), pitches and size."""

    scales: dict[str, tuple[float, float, float]]
    pitches: dict[str, float]
    size: float = 1.0


def define_species(size: float, pitches: dict[str, float], **scales: tuple[float, ...]) -> Species:
    """Make a species; a missing lateral scale is 1."""
    full = {k: (v[0], v[1], v[2] if len(v) > 2 else 1.0) for k, v in scales.items()}
    return Species(full, pitches, size)


def bone_scales(skeleton: Skeleton, species: Species) -> tuple[Floats, Floats, Floats]:
    """Lengths (J,) and thickness at both ends (J, 3) each."""
    names = [base_name(n) for n in skeleton.names]
    lengths, thickness = np.ones(len(names)), np.ones((len(names), 3))
    for key, (length, thick, lateral) in species.scales.items():
        for j, name in enumerate(names):
            if name == key or name in GROUPS.get(key, ()):
                lengths[j] *= length
                thickness[j] *= (thick * lateral, thick, thick)
    start, end = thickness.copy(), thickness.copy()
    for j, parent in enumerate(skeleton.parents):
        if parent >= 0 and any(names[j] in c and names[parent] in c for c in CHAINS):
            start[j] = end[parent] = np.sqrt(thickness[j] * thickness[parent])
    return lengths, start, end


def scale_skeleton(skeleton: Skeleton, species: Species) -> tuple[Skeleton, Floats]:
    """Scale a skeleton; also give the world rotation of every bone (J, 3, 3)."""
    lengths, start, end = bone_scales(skeleton, species)
    axes = bone_axes(skeleton, start)  # (J, 3)
    rotations, heads = np.empty((len(lengths), 3, 3)), np.empty((len(lengths), 3))
    for j, parent in enumerate(skeleton.parents):
        base = base_name(skeleton.names[j])
        angle = np.radians(species.pitches.get(base, 0.0) * (1 if base.startswith("tail") else -1))
        c, s = np.cos(angle), np.sin(angle)
        local = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
        if parent < 0:
            rotations[j], heads[j] = local, skeleton.heads[j]
            continue
        offset = _carry(skeleton.heads[j : j + 1], parent, skeleton, lengths, start, end)[0]  # (3,)
        rotations[j] = rotations[parent] @ local
        heads[j] = heads[parent] + rotations[parent] @ offset
    tails = heads + np.einsum("jab,jb->ja", rotations, lengths[:, None] * axes)
    radii = skeleton.radii * np.stack([start[:, 1], end[:, 1]], axis=1)
    flat = skeleton.flat * (start[:, 0] + end[:, 0]) / (start[:, 1] + end[:, 1])
    blobs = []
    for blob in skeleton.blobs:
        j = skeleton.index(blob.bone)
        moved = _carry(np.array([blob.centre]), j, skeleton, lengths, start, end)[0]
        thick = (start[j] + end[j]) / 2
        centre = tuple(map(float, heads[j] + rotations[j] @ moved))
        size = (thick[0], thick[1], lengths[j])
        blobs.append(blob._replace(centre=centre, radii=tuple(np.multiply(blob.radii, size))))
    scaled = skeleton._replace(heads=heads, tails=tails, radii=radii, flat=flat, blobs=tuple(blobs))
    return scaled, rotations


def bone_axes(skeleton: Skeleton, start: Floats) -> Floats:
    """Axes (J, 3) before their length scales.

    On a wide trunk, and with thick legs, knees and elbows stand wider too.
    """
    axes = skeleton.tails - skeleton.heads  # (J, 3)
    carriers = {"thigh": ("pelvis", "shank"), "scapula": ("chest", "forearm")}
    carriers["upperarm"] = carriers["scapula"]
    for bone, name in enumerate(skeleton.names):
        if base_name(name) in carriers and "hpaw_l" in skeleton.names:
            trunk, lower = carriers[base_name(name)]
            wide = start[skeleton.index(trunk), 0], start[skeleton.index(f"{lower}_l"), 0]
            axes[bone, 0] *= max(1.0, wide[0]) * max(1.0, wide[1])
    return axes


def _carry(
    points: Floats, bone: int, skeleton: Skeleton, lengths: Floats, start: Floats, end: Floats
) -> Floats:
    """Points (V, 3) seen from one bone, scaled: axis point plus radial offset, in rest axes."""
    axis = skeleton.tails[bone] - skeleton.heads[bone]
    relative = points - skeleton.heads[bone]  # (V, 3)
    along = np.clip(relative @ axis / (axis @ axis), 0.0, 1.0)[:, None]  # (V, 1)
    thick = (1 - along) * start[bone] + along * end[bone]  # (V, 3)
    scaled = lengths[bone] * bone_axes(skeleton, start)[bone]  # (3,)
    return along * scaled + thick * (relative - along * axis)  # (V, 3)


def reshape(
    vertices: Floats, weights: NDArray[np.float32], skeleton: Skeleton, species: Species
) -> tuple[Floats, Skeleton]:
    """Rest mesh (V, 3) and skeleton of a species; ``weights`` is (J, V)."""
    lengths, start, end = bone_scales(skeleton, species)
    scaled, rotations = scale_skeleton(skeleton, species)
    shaped = np.zeros_like(vertices)
    for j in range(len(lengths)):
        local = _carry(vertices, j, skeleton, lengths, start, end)  # (V, 3)
        shaped += weights[j][:, None] * (local @ rotations[j].T + scaled.heads[j])
    return shaped, scaled


def level(
    vertices: Floats, weights: NDArray[np.float32], skeleton: Skeleton, species: Species
) -> tuple[Floats, Floats, Floats]:
    """Reshape with the hind legs stretched until all four soles stand on one plane.

    Returns
    -------
    vertices (V, 3), heads (J, 3), tails (J, 3), in units of the species' size, soles at y = 0.
    """
    owner = np.array([base_name(n) for n in skeleton.names])[np.argmax(weights, axis=0)]  # (V,)
    low, high, factor = 0.7, 1.4, 1.0
    for _ in range(14 if "fpaw" in owner else 1):
        scales = dict(species.scales)
        for bone in ("thigh", "shank", "hock"):
            old = scales.get(bone, (1.0, 1.0, 1.0))
            scales[bone] = (old[0] * factor, *old[1:])
        shaped, scaled = reshape(vertices, weights, skeleton, species._replace(scales=scales))
        if "fpaw" not in owner:
            break
        too_long = shaped[owner == "hpaw", 1].min() < shaped[owner == "fpaw", 1].min()
        low, high = (low, factor) if too_long else (factor, high)
        factor = (low + high) / 2
    ground = shaped[:, 1].min() if "fpaw" not in owner else shaped[owner == "fpaw", 1].min()
    origin = np.array([0.0, ground, scaled.heads[0, 2]])
    shift = [species.size * (a - origin) for a in (shaped, scaled.heads, scaled.tails)]
    return shift[0], shift[1], shift[2]
