"""Skeletons of capsules behind the animal templates.

Frame of the project: x to the body's left, y up, z forward. Bones of the left side are listed and
mirrored. Names are shared by all four templates, so that one set of pose families drives them all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Point = tuple[float, float, float]

RIDER_SCALE = 1.22  # of the human half of a centaur, against the horse of the capsule template


class Bone(NamedTuple):
    """A tapered capsule; ``parent`` of a sided bone may be a middle bone or of the same side."""

    parent: str | None
    head: Point
    tail: Point
    radius: float
    tail_radius: float
    flat: float = 1.0  # lateral radius over vertical radius


class Blob(NamedTuple):
    """An ellipsoid of flesh that is no bone: rib cage, belly, buttocks."""

    centre: Point
    radii: Point
    bone: str
    share: float = 1.0


class Skeleton(NamedTuple):
    """Arrays over J bones, parents first, and the fleshy blobs between them."""

    names: tuple[str, ...]
    parents: NDArray[np.int64]  # (J,)
    heads: Floats  # (J, 3)
    tails: Floats  # (J, 3)
    radii: Floats  # (J, 2)
    flat: Floats  # (J,)
    blobs: tuple[Blob, ...]

    def index(self, name: str) -> int:
        """Position of a bone."""
        return self.names.index(name)


def base_name(name: str) -> str:
    """Name of a bone without its side."""
    return name.removesuffix("_l").removesuffix("_r")


def mirrored_bones(names: tuple[str, ...]) -> NDArray[np.int64]:
    """(J,) index of each bone's partner on the other side."""
    swap = {"_l": "_r", "_r": "_l"}
    return np.array([names.index(n[:-2] + swap[n[-2:]] if n[-2:] in swap else n) for n in names])


def assemble(
    middle: dict[str, Bone], left: dict[str, Bone], blobs: tuple[Blob, ...] = ()
) -> Skeleton:
    """Mirror the left side and turn the tables into arrays."""
    bones = dict(middle)
    for suffix, sign in (("_l", 1.0), ("_r", -1.0)):
        for name, bone in left.items():
            parent = bone.parent if bone.parent in middle else f"{bone.parent}{suffix}"
            head, tail = ((sign * p[0], p[1], p[2]) for p in (bone.head, bone.tail))
            bones[name + suffix] = bone._replace(parent=parent, head=head, tail=tail)
    names = tuple(bones)
    both = [*blobs]
    for blob in blobs:
        if blob.centre[0] != 0.0:
            x, y, z = blob.centre
            name = blob.bone.removesuffix("_l") + "_r" if blob.bone.endswith("_l") else blob.bone
            both.append(blob._replace(centre=(-x, y, z), bone=name))
    return Skeleton(
        names,
        np.array([-1 if b.parent is None else names.index(b.parent) for b in bones.values()]),
        np.array([b.head for b in bones.values()]),
        np.array([b.tail for b in bones.values()]),
        np.array([(b.radius, b.tail_radius) for b in bones.values()]),
        np.array([b.flat for b in bones.values()]),
        tuple(both),
    )


def quadruped() -> Skeleton:
    """Build a generic four-legged animal, between a dog and a horse; its trunk is 0.57 long."""
    flat = 0.87
    middle = {
        "pelvis": Bone(None, (0, 0.615, -0.30), (0, 0.625, -0.15), 0.105, 0.105, flat),
        "spine0": Bone("pelvis", (0, 0.625, -0.15), (0, 0.625, -0.03), 0.105, 0.112, flat),
        "spine1": Bone("spine0", (0, 0.625, -0.03), (0, 0.605, 0.09), 0.112, 0.126, flat),
        "chest": Bone("spine1", (0, 0.605, 0.09), (0, 0.60, 0.27), 0.130, 0.105, flat),
        "neck0": Bone("chest", (0, 0.64, 0.25), (0, 0.72, 0.325), 0.088, 0.076, flat),
        "neck1": Bone("neck0", (0, 0.72, 0.325), (0, 0.80, 0.385), 0.076, 0.066, flat),
        "neck2": Bone("neck1", (0, 0.80, 0.385), (0, 0.88, 0.435), 0.066, 0.060, flat),
        "head": Bone("neck2", (0, 0.895, 0.435), (0, 0.900, 0.53), 0.066, 0.058),
        "jaw": Bone("head", (0, 0.862, 0.475), (0, 0.836, 0.600), 0.040, 0.024, 0.95),
        "muzzle": Bone("head", (0, 0.888, 0.535), (0, 0.868, 0.605), 0.046, 0.038),
        "nose": Bone("muzzle", (0, 0.868, 0.605), (0, 0.852, 0.668), 0.038, 0.028),
        "tail0": Bone("pelvis", (0, 0.655, -0.37), (0, 0.615, -0.44), 0.032, 0.026),
        "tail1": Bone("tail0", (0, 0.615, -0.44), (0, 0.555, -0.49), 0.026, 0.023),
        "tail2": Bone("tail1", (0, 0.555, -0.49), (0, 0.485, -0.525), 0.023, 0.021),
        "tail3": Bone("tail2", (0, 0.485, -0.525), (0, 0.415, -0.55), 0.021, 0.019),
        "tail4": Bone("tail3", (0, 0.415, -0.55), (0, 0.340, -0.57), 0.019, 0.014),
    }
    left = {
        "ear": Bone("head", (0.042, 0.930, 0.445), (0.072, 1.03, 0.435), 0.032, 0.014),
        "thigh": Bone("pelvis", (0.060, 0.57, -0.30), (0.092, 0.385, -0.235), 0.088, 0.052),
        "shank": Bone("thigh", (0.092, 0.385, -0.235), (0.090, 0.215, -0.365), 0.050, 0.026),
        "hock": Bone("shank", (0.090, 0.215, -0.365), (0.088, 0.052, -0.345), 0.027, 0.023),
        "hpaw": Bone("hock", (0.088, 0.043, -0.345), (0.088, 0.028, -0.280), 0.030, 0.025),
        "scapula": Bone("chest", (0.052, 0.67, 0.16), (0.085, 0.50, 0.26), 0.055, 0.056),
        "upperarm": Bone("scapula", (0.085, 0.50, 0.26), (0.094, 0.385, 0.185), 0.054, 0.042),
        "forearm": Bone("upperarm", (0.094, 0.385, 0.185), (0.086, 0.195, 0.205), 0.038, 0.024),
        "cannon": Bone("forearm", (0.086, 0.195, 0.205), (0.083, 0.052, 0.205), 0.025, 0.023),
        "fpaw": Bone("cannon", (0.083, 0.043, 0.205), (0.083, 0.028, 0.270), 0.030, 0.025),
    }
    blobs = (
        Blob((0, 0.545, 0.10), (0.100, 0.112, 0.155), "chest"),
        Blob((0, 0.590, -0.10), (0.088, 0.085, 0.140), "spine0", 0.6),
    )
    return assemble(middle, left, blobs)


def gorilla() -> Skeleton:
    """Build an ape standing upright with its long arms held away from the body."""
    middle = {
        "pelvis": Bone(None, (0, 0.52, -0.01), (0, 0.64, 0.0), 0.125, 0.135, 1.25),
        "spine0": Bone("pelvis", (0, 0.64, 0.0), (0, 0.76, 0.01), 0.142, 0.148, 1.22),
        "spine1": Bone("spine0", (0, 0.76, 0.01), (0, 0.89, 0.0), 0.148, 0.155, 1.25),
        "chest": Bone("spine1", (0, 0.89, 0.0), (0, 1.07, -0.02), 0.155, 0.110, 1.35),
        "neck0": Bone("chest", (0, 1.07, -0.01), (0, 1.17, 0.035), 0.092, 0.074),
        "head": Bone("neck0", (0, 1.18, 0.045), (0, 1.29, 0.055), 0.098, 0.092, 0.9),
        "muzzle": Bone("head", (0, 1.185, 0.105), (0, 1.165, 0.165), 0.062, 0.046, 1.0),
    }
    left = {
        "clavicle": Bone("chest", (0.05, 1.02, 0.0), (0.205, 1.02, -0.01), 0.085, 0.082),
        "humerus": Bone("clavicle", (0.205, 1.02, -0.01), (0.40, 0.765, -0.01), 0.080, 0.060),
        "ulna": Bone("humerus", (0.40, 0.765, -0.01), (0.575, 0.51, 0.02), 0.064, 0.038),
        "hand": Bone("ulna", (0.575, 0.51, 0.02), (0.63, 0.425, 0.04), 0.042, 0.050, 0.85),
        "fingers": Bone("hand", (0.63, 0.425, 0.04), (0.67, 0.355, 0.055), 0.046, 0.030, 0.85),
        "thigh": Bone("pelvis", (0.085, 0.50, 0.0), (0.135, 0.275, 0.035), 0.105, 0.070),
        "shank": Bone("thigh", (0.135, 0.275, 0.035), (0.155, 0.065, -0.01), 0.070, 0.046),
        "foot": Bone("shank", (0.155, 0.045, -0.03), (0.175, 0.032, 0.10), 0.045, 0.036, 1.2),
        "toes": Bone("foot", (0.175, 0.032, 0.10), (0.185, 0.028, 0.165), 0.034, 0.024, 1.4),
    }
    blobs = (
        Blob((0, 0.74, 0.06), (0.165, 0.150, 0.125), "spine0", 0.9),
        Blob((0, 0.95, 0.05), (0.190, 0.110, 0.110), "chest", 0.8),
        Blob((0.075, 0.53, -0.07), (0.085, 0.085, 0.075), "pelvis", 0.8),
        Blob((0, 1.27, 0.0), (0.070, 0.085, 0.075), "head", 0.8),
    )
    return assemble(middle, left, blobs)


def with_rider_torso(horse: Skeleton) -> Skeleton:
    """Make a centaur: a human torso, arms and head in place of the neck and head of a horse."""
    drop = ("neck", "head", "jaw", "muzzle", "nose", "ear")
    keep = [j for j, name in enumerate(horse.names) if not name.startswith(drop)]
    middle, left = {}, {}
    for j in keep:
        parent = None if horse.parents[j] < 0 else base_name(horse.names[horse.parents[j]])
        head, tail = (tuple(map(float, a[j])) for a in (horse.heads, horse.tails))
        bone = Bone(parent, head, tail, *map(float, horse.radii[j]), float(horse.flat[j]))
        if horse.names[j].endswith("_l"):
            left[base_name(horse.names[j])] = bone
        elif not horse.names[j].endswith("_r"):
            middle[horse.names[j]] = bone
    base = np.add(middle["chest"].tail, (0.0, 0.055, -0.015))  # where the human waist begins

    def bone(parent: str, head: Point, tail: Point, *size: float) -> Bone:
        start, end = (tuple(map(float, base + RIDER_SCALE * np.array(p))) for p in (head, tail))
        return Bone(parent, start, end, RIDER_SCALE * size[0], RIDER_SCALE * size[1], *size[2:])

    def blob(centre: Point, radii: Point, name: str) -> Blob:
        middle = tuple(map(float, base + RIDER_SCALE * np.array(centre)))
        return Blob(middle, tuple(RIDER_SCALE * r for r in radii), name, 0.7)

    middle |= {
        "torso0": bone("chest", (0, 0, 0), (0, 0.10, 0.010), 0.090, 0.082, 1.2),
        "torso1": bone("torso0", (0, 0.10, 0.01), (0, 0.20, 0.0), 0.080, 0.088, 1.35),
        "torso2": bone("torso1", (0, 0.20, 0), (0, 0.31, -0.01), 0.088, 0.056, 1.6),
        "neck0": bone("torso2", (0, 0.31, -0.01), (0, 0.385, 0.0), 0.036, 0.032),
        "head": bone("neck0", (0, 0.43, 0.020), (0, 0.485, 0.020), 0.054, 0.064, 0.86),
    }
    left |= {
        "clavicle": bone("torso2", (0.03, 0.285, -0.01), (0.132, 0.285, -0.015), 0.040, 0.048),
        "humerus": bone("clavicle", (0.132, 0.285, -0.015), (0.24, 0.16, -0.02), 0.046, 0.036),
        "ulna": bone("humerus", (0.24, 0.16, -0.02), (0.353, 0.045, 0.0), 0.037, 0.023),
        "hand": bone("ulna", (0.353, 0.045, 0.0), (0.393, 0.002, 0.01), 0.024, 0.030, 0.8),
        "fingers": bone("hand", (0.393, 0.002, 0.01), (0.43, -0.037, 0.02), 0.027, 0.018),
    }
    blobs = (
        *(b for b in horse.blobs if b.centre[0] >= 0.0),
        blob((0, 0.24, 0.03), (0.115, 0.070, 0.058), "torso2"),
        blob((0, 0.435, 0.052), (0.034, 0.048, 0.034), "head"),
    )
    return assemble(middle, left, blobs)
