"""The animal templates that ship with the package, as rigs."""

from __future__ import annotations

from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.animal_proportions import derive_builds
from ltenet.bodies.bones import Rig, generations, make_build
from ltenet.bodies.generated import Template, part_sizes


def load_rig(name: str) -> Rig:
    """Read a template that ships with the package, and derive its other species."""
    path = resources.files("ltenet") / "bodies" / "assets" / f"{name}.npz"
    with path.open("rb") as stream, np.load(stream) as data:
        arrays = {key: data[key] for key in data.files}
    mirror = arrays["mirror"].astype(np.int32)  # (V,)
    parents = arrays["parents"].astype(np.int64)  # (J,)
    weights = np.zeros((len(parents), len(mirror)), dtype=np.float32)  # (J, V)
    np.put_along_axis(
        weights, arrays["weight_bones"].T.astype(np.int64), arrays["weight_values"].T, 0
    )
    weights /= weights.sum(axis=0)
    rest = arrays["vertices"] * arrays["units"][:, None, None].astype(np.float32)  # (S, V, 3)
    bones = tuple(map(str, arrays["bones"]))
    template = Template(
        name=name,
        faces=arrays["faces"].astype(np.int32),
        mirror=mirror,
        side=np.where(mirror == np.arange(len(mirror)), 0, np.sign(rest[0, :, 0])).astype(np.int8),
        front=arrays["front"],
        opposite=arrays["opposite"].astype(np.int32),
        size=part_sizes(rest[0], weights).astype(np.float32),
        rest=rest[0],
        regions=_regions(bones, weights),
    )
    heads, tails = arrays["heads"].astype(np.float64), arrays["tails"].astype(np.float64)
    builds = {
        str(species): make_build(rest[k], heads[k], tails[k], weights)
        for k, species in enumerate(arrays["species"])
    }
    return derive_builds(Rig(template, bones, parents, generations(parents), weights, builds))


# Regions that a scan may be limited to, by the bones they own; a star stands for either side.
_HEAD = ("head", "jaw", "muzzle", "nose", "ear", "neck")
_ARM_BONES = ("clavicle", "humerus", "ulna", "hand", "fingers")
_FORELEG, _LEG = ("scapula", "upperarm", "forearm", "cannon", "fpaw"), ("thigh", "shank", "hock")
_FOOT = ("hpaw", "foot", "toes")
_REGIONS: dict[str, tuple[str, ...]] = {
    "head": (*_HEAD, "torso2"),
    "front": (*_HEAD, *_FORELEG, *_ARM_BONES, "chest", "torso"),
    "rear": (*_LEG, *_FOOT, "pelvis", "spine", "tail"),
    "upper": (*_HEAD, *_ARM_BONES, "chest", "torso", "spine1"),
    "foreleg*": _FORELEG,
    "leg*": (*_LEG, *_FOOT),
    "arm*": _ARM_BONES,
}


def _regions(bones: tuple[str, ...], weights: NDArray[np.float32]) -> dict[str, NDArray[np.bool_]]:
    """Masks (V,) of the regions that this skeleton has; ``weights`` is (J, V)."""
    owner = np.argmax(weights, axis=0)  # (V,)
    regions = {}
    for name, starts in _REGIONS.items():
        for side in ("_l", "_r") if name.endswith("*") else ("",):
            members = [
                j for j, bone in enumerate(bones) if bone.startswith(starts) and bone.endswith(side)
            ]
            if members:
                regions[name.replace("*", f".{side[1:].upper()}")] = np.isin(owner, members)  # (V,)
    return regions


_DISTAL = ("shank", "hock", "hpaw", "forearm", "cannon", "fpaw", "foot", "toes")
_ARM = ("ulna", "fingers")  # the hand between them goes where they go
_BULK = ("pelvis", "spine", "chest", "torso")


def forbidden_pairs(rig: Rig) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of bones that must not meet: legs, tail, head and arms, and the trunk.

    Returns
    -------
    first, second : each (P,) bone indices.
    """
    first, second = [], []
    for a, one in enumerate(rig.bones):
        for b, two in enumerate(rig.bones):
            if a != b and _must_not_meet(one, two) and not (a > b and _must_not_meet(two, one)):
                first.append(a)
                second.append(b)
    return np.array(first), np.array(second)


def _must_not_meet(one: str, two: str) -> bool:
    """Whether the first bone may not enter the second."""
    limb = {"thigh": 0, "shank": 0, "hock": 0, "hpaw": 0, "foot": 0, "toes": 0}
    limb |= {"upperarm": 1, "forearm": 1, "cannon": 1, "fpaw": 1}
    limb |= {"humerus": 2, "ulna": 2, "fingers": 2}
    base, other = one.rsplit("_", 1)[0], two.rsplit("_", 1)[0]
    if base in _DISTAL:
        if other in limb:
            return (limb[base], one[-1]) != (limb[other], two[-1])
        # Knees and elbows lie against the trunk by nature.
        near = () if base in ("shank", "forearm") else _BULK
        return other.startswith(("neck", "head", "muzzle", "nose", *near))
    if base in _ARM:
        if other in limb:
            return (limb[base], one[-1]) != (limb[other], two[-1])
        return other.startswith((*_BULK, "neck", "head", "muzzle"))
    if base.startswith("tail") and base != "tail0":
        return other in limb or other.startswith(_BULK)
    if base in ("head", "muzzle", "nose"):
        return other in ("upperarm", "thigh") or other.startswith(_BULK)
    return False
