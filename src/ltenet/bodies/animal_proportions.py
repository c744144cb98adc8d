"""Proportions of animals: more species from the shipped builds, and individuals between them.

Bones are scaled by group, in length and thickness. A derived species scales a shipped build: a
giraffe is a horse with another neck and other legs. An individual varies its species, a little or
widely; wide draws fill the space between the species, so that an unknown one lies inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ltenet.bodies.bones import (
    Build,
    Floats,
    Rig,
    make_build,
    pitch_rotation,
    place_bones,
    scaled_skeleton,
    skin,
)

#: Bones of each group, without their side; a bone not listed is a group of its own.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "trunk": ("pelvis", "spine0", "spine1", "chest"),
    "neck": ("neck0", "neck1", "neck2"),
    "face": ("muzzle", "nose"),
    "tail": ("tail0", "tail1", "tail2", "tail3", "tail4"),
    "upper": ("thigh", "scapula", "upperarm"),
    "lower": ("shank", "forearm"),
    "cannons": ("hock", "cannon"),
    "paws": ("hpaw", "fpaw"),
    "arms": ("humerus", "ulna"),
    "torso": ("torso0", "torso1", "torso2"),
    "legs": ("thigh", "shank", "hock", "scapula", "upperarm", "forearm", "cannon"),
    "hind": ("thigh", "shank", "hock"),
    "fore": ("upperarm", "forearm", "cannon"),
    "hands": ("hand", "fingers"),
    "feet": ("foot", "toes"),
    "skull": ("head", "jaw", "muzzle", "nose"),
}


@dataclass(frozen=True)
class Derived:
    """A species made from a shipped one.

    Attributes
    ----------
    base
        Species of the same template.
    size
        Scales everything.
    scales
        (length, thickness) or (length, thickness, width over thickness) by bone or group; what
        names a bone twice multiplies.
    pitches
        Degrees by which bones are lifted at rest, by bone.
    """

    base: str
    size: float = 1.0
    scales: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    pitches: Mapping[str, float] = field(default_factory=dict)


_GIRAFFE = {
    "neck": (2.1, 0.72), "skull": (0.72, 0.8), "trunk": (0.8, 0.88), "upper": (1.05, 0.9),
    "lower": (1.35, 0.85), "cannons": (1.4, 0.85), "tail": (0.75, 0.7),
}  # fmt: skip
_DEER = {
    "neck": (0.95, 0.68), "skull": (0.78, 0.85), "trunk": (0.92, 0.78), "upper": (0.95, 0.8),
    "lower": (1.05, 0.72), "cannons": (1.1, 0.7), "tail": (0.25, 0.7), "ear": (1.8, 1.3),
}  # fmt: skip
_PIG = {
    "trunk": (0.95, 0.92), "neck": (0.6, 1.05), "upper": (0.7, 0.85), "lower": (0.5, 0.85),
    "cannons": (0.45, 0.85), "tail": (0.35, 0.7), "ear": (1.5, 1.2), "head": (0.95, 0.95),
    "jaw": (1.0, 0.8), "face": (1.05, 0.75),
}  # fmt: skip
_BEAR = {
    "trunk": (0.95, 1.25), "neck": (0.9, 1.18), "legs": (0.88, 1.3), "paws": (1.05, 1.15),
    "tail": (0.12, 0.9), "face": (1.15, 0.8), "jaw": (1.05, 0.85), "ear": (0.9, 1.1),
}  # fmt: skip
_RABBIT = {
    "trunk": (0.85, 1.2), "neck": (0.8, 1.1), "hind": (1.3, 1.15), "fore": (0.75, 0.9),
    "hpaw": (1.8, 1.0), "tail": (0.1, 1.6), "ear": (3.2, 1.2), "face": (1.2, 1.0),
}  # fmt: skip
_COUGAR = {
    "neck": (1.05, 0.76), "skull": (0.85, 0.82), "trunk": (1.0, 0.88), "legs": (1.02, 0.88),
    "tail4": (1.0, 0.7),
}  # fmt: skip

DERIVED: Mapping[str, Mapping[str, Derived]] = {
    "capsule": {
        "giraffe": Derived("horse", 1.5, _GIRAFFE, {"neck0": 24, "head": -26}),
        "elephant": Derived(
            "hippo", 1.5,
            {"upper": (1.3, 0.95), "lower": (1.7, 0.9), "cannons": (1.5, 0.85), "neck": (0.8, 0.8),
             "trunk": (0.85, 0.95), "head": (0.85, 0.95), "jaw": (0.6, 0.6), "ear": (5.0, 3.0),
             "muzzle": (0.8, 0.7), "nose": (7.0, 0.36), "tail": (1.8, 0.7)},
            {"nose": -55, "muzzle": -20, "neck0": 12, "ear": 115},
        ),
        "rhino": Derived(
            "hippo", 1.0,
            {"trunk": (0.95, 0.88), "lower": (1.3, 0.9), "upper": (1.1, 0.95), "ear": (1.8, 1.0),
             "cannons": (1.2, 0.85), "jaw": (0.85, 0.7), "face": (1.2, 0.6), "neck": (1.2, 0.8)},
        ),
        "camel": Derived(
            "horse", 1.1,
            {"neck": (1.3, 0.7), "skull": (0.85, 0.85), "trunk": (0.88, 1.02), "lower": (1.12, 0.9),
             "cannons": (1.1, 0.95), "spine1": (1.0, 1.18), "tail": (0.6, 0.6), "paws": (1.2, 1.2)},
            {"neck0": -14, "neck2": 16},
        ),
        "deer": Derived("horse", 0.65, _DEER, {"neck0": 14, "head": -6, "tail0": 20}),
        "pig": Derived("cow", 0.6, _PIG, {"head": 10}),
        "goat": Derived(
            "cow", 0.5,
            {"trunk": (0.8, 0.82), "neck": (1.0, 0.75), "legs": (0.92, 0.8), "tail": (0.25, 1.0),
             "skull": (0.85, 0.85), "ear": (1.6, 1.0)},
            {"neck0": 26, "head": -8},
        ),
        "bear": Derived("lion", 1.0, _BEAR, {"neck0": -4}),
        "cougar": Derived("lion", 0.8, _COUGAR),
        "rabbit": Derived("cat", 0.5, _RABBIT, {"ear": 30}),
        "raccoon": Derived(
            "fox", 0.8,
            {"trunk": (0.85, 1.45), "legs": (0.72, 1.25), "neck": (0.8, 1.25), "skull": (0.95, 1.2),
             "tail": (0.7, 0.9), "ear": (0.6, 1.0)},
        ),
    },
    "dog": {
        "giraffe": Derived("horse", 1.5, _GIRAFFE, {"neck0": 22, "head": -20}),
        "deer": Derived("horse", 0.65, _DEER, {"neck0": 12, "head": -6, "tail0": 20}),
        "pig": Derived("cow", 0.6, _PIG, {"head": 6}),
        "bear": Derived("lion", 1.0, _BEAR),
        "cougar": Derived("lion", 0.8, _COUGAR),
        "rabbit": Derived("cat", 0.5, _RABBIT, {"ear": 30}),
    },
    "gorilla": {
        "orangutan": Derived(
            "gorilla", 0.9,
            {"arms": (1.22, 0.8), "hands": (1.15, 0.9), "thigh": (0.8, 0.85), "shank": (0.78, 0.85),
             "trunk": (1.0, 0.95), "neck0": (0.8, 1.0)},
        ),
        "macaque": Derived(
            "chimpanzee", 0.6,
            {"arms": (0.8, 0.9), "thigh": (1.05, 1.0), "shank": (1.05, 0.9), "trunk": (1.05, 0.92),
             "muzzle": (1.3, 0.9), "clavicle": (0.85, 0.9)},
        ),
        "hominid": Derived(
            "chimpanzee", 1.3,
            {"arms": (0.88, 1.05), "thigh": (1.5, 1.1), "shank": (1.5, 1.05), "muzzle": (0.7, 0.9),
             "clavicle": (1.1, 1.0), "feet": (1.15, 1.0), "hands": (0.9, 0.95)},
        ),
    },
    "centaur": {
        "centaur_pony": Derived(
            "centaur", 0.8,
            {"legs": (0.78, 1.05), "trunk": (0.85, 0.95), "torso": (1.1, 1.02), "head": (1.1, 1.1),
             "tail": (0.8, 1.2)},
        ),
        "centaur_tall": Derived(
            "centaur_slender", 1.1,
            {"legs": (1.1, 0.95), "trunk": (1.05, 0.92), "arms": (1.05, 0.95), "head": (0.9, 0.9)},
        ),
        "centaur_brute": Derived(
            "centaur_stout", 1.1,
            {"torso": (1.0, 1.15), "arms": (1.05, 1.2), "clavicle": (1.2, 1.1), "head": (0.9, 0.95),
             "legs": (0.95, 1.1), "hands": (1.15, 1.1)},
        ),
    },
}  # fmt: skip


def derive_builds(rig: Rig) -> Rig:
    """Add the derived species to the shipped ones of a rig."""
    builds = dict(rig.builds)
    for species, derived in DERIVED[rig.template.name].items():
        builds[species] = derive_build(rig, derived)
    return replace(rig, builds=builds)


def derive_build(rig: Rig, derived: Derived) -> Build:
    """Scale a shipped build at rest, and lift its bones."""
    base = rig.builds[derived.base]
    lengths, thickness = np.full(len(rig.bones), 1.0), np.full((len(rig.bones), 3), 1.0)
    for group, scale in derived.scales.items():
        members = group_members(rig, group)
        lengths[members] *= scale[0]
        thickness[members] *= scale[1]
        if len(scale) > 2:
            thickness[members, 0] *= scale[2]
    rotations = np.tile(np.eye(3), (len(rig.bones), 1, 1))  # (J, 3, 3)
    for group, degrees in derived.pitches.items():
        # What points backwards is lifted by the opposite turn.
        turn = pitch_rotation(-degrees if group.startswith("tail") else degrees)
        rotations[group_members(rig, group)] = turn
    offsets, axes = scaled_skeleton(rig, base, lengths, thickness)
    placement = place_bones(rig, offsets, axes, rotations)
    skinned = derived.size * skin(rig, base, thickness, axes, placement)  # (V, 3)
    # Skinning weights are symmetric up to rounding only; large scales would show it.
    flipped = skinned[rig.template.mirror] * np.array([-1, 1, 1], np.float32)  # (V, 3)
    vertices = 0.5 * (skinned + flipped)  # (V, 3)
    vertices[vertices[:, 0] * rig.template.side < 0, 0] = 0.0  # neither half enters the other
    heads, tails = derived.size * placement.heads, derived.size * placement.tails  # (J, 3) each
    build = make_build(vertices.astype(np.float32), heads, tails, rig.weights)
    return replace(build, soles=derived.size * thickness[:, 1] * base.soles)


def group_members(rig: Rig, group: str) -> list[int]:
    """Bones of a group, on both sides."""
    names = GROUPS.get(group, (group,))
    return [j for j, bone in enumerate(rig.bones) if bone.rsplit("_", 1)[0] in names]


# How individuals differ: standard deviations of the logarithms of length and thickness by group,
# for the ordinary ones of a species and for those that stray widely from it.
_ORDINARY = {
    "legs": (0.04, 0.05), "neck": (0.06, 0.05), "skull": (0.04, 0.04), "tail": (0.1, 0.1),
    "trunk": (0.03, 0.05), "ear": (0.1, 0.08), "arms": (0.04, 0.05),
}  # fmt: skip
_WIDE = {
    "legs": (0.14, 0.2), "hind": (0.05, 0.08), "lower": (0.08, 0.08), "cannons": (0.1, 0.08),
    "paws": (0.15, 0.15), "neck": (0.28, 0.18), "skull": (0.12, 0.14), "face": (0.22, 0.14),
    "trunk": (0.12, 0.16), "spine0": (0.05, 0.12), "chest": (0.05, 0.1), "tail": (0.5, 0.3),
    "ear": (0.4, 0.25), "arms": (0.16, 0.16), "hands": (0.15, 0.12), "feet": (0.15, 0.12),
    "torso": (0.12, 0.14), "clavicle": (0.1, 0.1), "thigh": (0.05, 0.08),
}  # fmt: skip
_BONE_LENGTH, _BONE_THICKNESS, _BODY_LENGTH, _BODY_THICKNESS = 0.06, 0.06, 0.04, 0.08
_LARGEST = 0.75  # of any of these logarithms


class IndividualScales:
    """Draws the bone scales of individuals of one rig."""

    def __init__(self, rig: Rig) -> None:
        sided = [n.rsplit("_", 1)[0] for n in rig.bones]
        # Both sides share their jitter, or a body would limp in its bones.
        self._kinds = np.array([sided.index(n) for n in sided])  # (J,)
        self._groups = {
            wide: _group_deviations(rig, table)
            for wide, table in ((False, _ORDINARY), (True, _WIDE))
        }
        # Tails may vanish, as those of bears and rabbits do.
        shortest = [-1.8 if n.startswith("tail") else -_LARGEST for n in sided]
        self._shortest = np.array(shortest)  # (J,)

    def draw(self, rng: np.random.Generator, *, wide: bool) -> tuple[Floats, Floats]:
        """Lengths (J,) and thickness (J, 3) of one individual."""
        members, deviations = self._groups[wide]  # (J, G), (2, G)
        drawn = deviations * rng.standard_normal(deviations.shape)  # (2, G)
        length, thick = drawn @ members.T  # (J,) each
        bones = len(self._kinds)
        length += rng.normal(0, _BONE_LENGTH, bones)[self._kinds] + rng.normal(0, _BODY_LENGTH)
        across = rng.normal(0, _BONE_THICKNESS, (bones, 2))[self._kinds]  # (J, 2)
        across += thick[:, None] + rng.normal(0, _BODY_THICKNESS)
        length = np.clip(length, self._shortest, _LARGEST)
        across = np.clip(across, -_LARGEST, _LARGEST)
        return np.exp(length), np.exp(across)[:, [0, 1, 1]]


def _group_deviations(rig: Rig, table: Mapping[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    """Which bones (J, G) belong to the groups of this rig, and their deviations (2, G)."""
    columns, deviations = [], []
    for group, pair in table.items():
        members = group_members(rig, group)
        if members:
            column = np.zeros(len(rig.bones))
            column[members] = 1.0
            columns.append(column)
            deviations.append(pair)
    return np.stack(columns, axis=1), np.array(deviations).T
