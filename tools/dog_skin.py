"""Read the rigged dog of dm-control and give it our bones.

Layout of a MuJoCo ``.skn`` file (little endian): four int32 counts (vertices, texture coordinates,
faces, bones), the float32 vertices and texture coordinates, the int32 faces, then per bone a name
of 40 bytes, float32 position and quaternion, an int32 count, and that many int32 vertex ids and
float32 weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import animal_skeletons as skeletons
import numpy as np
from animal_skeletons import Floats, Skeleton
from numpy.typing import NDArray

TO_CANONICAL = [1, 2, 0]  # (forward, left, up) -> (left, up, forward)
JAW_CLOSING = np.radians(17.0)


class SkinBone(NamedTuple):
    """One bone: its head in the rest pose (x forward, y left, z up) and its weighted vertices."""

    name: str
    head: NDArray[np.float64]  # (3,)
    vertices: NDArray[np.int32]  # (n,)
    weights: NDArray[np.float32]  # (n,)


class Skin(NamedTuple):
    """Vertices (V, 3), faces (F, 3) and bones of a skin file."""

    vertices: NDArray[np.float64]
    faces: NDArray[np.int32]
    bones: tuple[SkinBone, ...]


def read_skin(path: Path) -> Skin:
    """Read a ``.skn`` file."""
    data = path.read_bytes()
    position = 16
    n_vertices, n_texture, n_faces, n_bones = np.frombuffer(data, "<i4", 4).tolist()

    def take(kind: str, count: int) -> NDArray[np.generic]:
        nonlocal position
        values = np.frombuffer(data, kind, count, position)
        position += values.nbytes
        return values

    vertices = take("<f4", 3 * n_vertices).reshape(-1, 3).astype(np.float64)
    take("<f4", 2 * n_texture)
    faces = take("<i4", 3 * n_faces).reshape(-1, 3).astype(np.int32)
    bones = []
    for _ in range(n_bones):
        name = take("u1", 40).tobytes().split(b"\0")[0].decode()
        head = take("<f4", 3).astype(np.float64)
        take("<f4", 4)
        count = int(take("<i4", 1)[0])
        ids, weights = take("<i4", count).astype(np.int32), take("<f4", count).astype(np.float32)
        bones.append(SkinBone(name, head, ids, weights))
    return Skin(vertices, faces, tuple(bones))


def dog_skeleton(path: Path) -> tuple[Skeleton, Floats, NDArray[np.int32], Floats]:
    """Bones of the scanned dog, with its vertices (mouth closed), faces and weights (V, J)."""
    skin = read_skin(path)
    heads = {bone.name: bone.head for bone in skin.bones}
    c7, c5, c3, c1 = (heads[f"C_{k}"] for k in (7, 5, 3, 1))
    middle: list[tuple[str, str | None, Floats, Floats]] = [
        ("pelvis", None, heads["pelvis"], heads["L_7"]),
        ("spine0", "pelvis", heads["L_7"], heads["L_1"]),
        ("spine1", "spine0", heads["L_1"], np.array([0.06, 0, 0.49])),
        ("chest", "spine1", np.array([0.06, 0, 0.49]), c7 - (0, 0, 0.02)),
        ("neck0", "chest", c7, c5),
        ("neck1", "neck0", c5, c3),
        ("neck2", "neck1", c3, c1),
        ("head", "neck2", c1, np.array([0.36, 0, 0.70])),
        ("jaw", "head", heads["jaw"], np.array([0.44, 0, 0.63])),
        ("muzzle", "head", np.array([0.365, 0, 0.69]), np.array([0.415, 0, 0.678])),
        ("nose", "muzzle", np.array([0.415, 0, 0.678]), np.array([0.465, 0, 0.665])),
    ]
    joints = [heads[f"Ca_{k}"] for k in (5, 9, 12, 15, 18)] + [np.array([-0.735, 0, 0.34])]
    middle += [
        (f"tail{k}", f"tail{k - 1}" if k else "pelvis", joints[k], joints[k + 1]) for k in range(5)
    ]
    fore = ("scapula", "upper_arm", "lower_arm", "hand", "finger")
    hind = ("upper_leg", "lower_leg", "foot", "toe")
    ours = {"scapula": "scapula", "upper_arm": "upperarm", "lower_arm": "forearm"}
    ours |= {"hand": "cannon", "finger": "fpaw", "upper_leg": "thigh", "lower_leg": "shank"}
    ours |= {"foot": "hock", "toe": "hpaw"}
    left: list[tuple[str, str, Floats, Floats]] = [
        ("ear", "head", np.array([0.285, 0.055, 0.725]), np.array([0.30, 0.085, 0.80]))
    ]
    for limb, root, end in (
        (fore, "chest", (0.225, 0.05, 0.02)),
        (hind, "pelvis", (-0.48, 0.08, 0.02)),
    ):
        stops = [heads[f"{name}_L"] for name in limb] + [np.array(end)]
        for k, name in enumerate(limb):
            left.append((ours[name], ours[limb[k - 1]] if k else root, stops[k], stops[k + 1]))

    def bone(parent: str | None, head: Floats, tail: Floats) -> skeletons.Bone:
        return skeletons.Bone(parent, tuple(head[TO_CANONICAL]), tuple(tail[TO_CANONICAL]), 0, 0)

    skeleton = skeletons.assemble(
        {name: bone(p, h, t) for name, p, h, t in middle},
        {name: bone(p, h, t) for name, p, h, t in left},
    )
    owner = {"torso": "chest", "pelvis": "pelvis", "skull": "head", "jaw": "jaw"}
    owner |= {f"L_{k}": "spine0" for k in range(1, 8)}
    owner |= {f"C_{k}": f"neck{2 - (k - 1) // 2 if k < 7 else 0}" for k in range(1, 8)}
    tails = {k: f"tail{min(4, sum(k >= s for s in (9, 12, 15, 18)))}" for k in range(5, 22)}
    owner |= {f"Ca_{k}": tails.get(k, "pelvis") for k in range(1, 22)}
    owner |= {f"{a}_{s.upper()}": f"{b}_{s}" for a, b in ours.items() for s in "lr"}
    weights = np.zeros((len(skin.vertices), len(skeleton.names)))
    for part in skin.bones:
        weights[part.vertices, skeleton.index(owner[part.name])] += part.weights
    weights /= np.maximum(weights.sum(1, keepdims=True), 1e-9)
    vertices = _close_mouth(skin.vertices, weights[:, skeleton.index("jaw")], heads["jaw"])
    return (
        skeleton,
        vertices[:, TO_CANONICAL],
        skin.faces,
        _split_weights(weights, vertices, skeleton),
    )


def _close_mouth(vertices: Floats, jaw: Floats, hinge: Floats) -> Floats:
    """Turn the jaw up; the dog was scanned with its mouth open."""
    x, y, z = (vertices - hinge).T
    c, s = np.cos(JAW_CLOSING), np.sin(JAW_CLOSING)
    turned = np.stack([c * x - s * z, y, s * x + c * z], axis=1)
    return vertices + jaw[:, None] * (turned - (vertices - hinge))


def _split_weights(weights: Floats, vertices: Floats, skeleton: Skeleton) -> Floats:
    """Give the ears, muzzle, nose and rib cage bones of their own by smooth masks."""

    def ramp(x: Floats) -> Floats:
        x = np.clip(x, 0.0, 1.0)
        return x * x * (3.0 - 2.0 * x)

    weights = weights.copy()
    forward, sideways, up = vertices.T
    skull = weights[:, skeleton.index("head")].copy()
    rest = skull.copy()
    for side, sign in (("_l", 1.0), ("_r", -1.0)):
        ear = ramp((up - 0.715) / 0.03) * ramp((sign * sideways - 0.028) / 0.02)
        ear *= skull * ramp((0.345 - forward) / 0.02)
        weights[:, skeleton.index("ear" + side)] = ear
        rest -= ear
    muzzle, nose = ramp((forward - 0.345) / 0.05), ramp((forward - 0.395) / 0.045)
    weights[:, skeleton.index("muzzle")] = rest * muzzle * (1 - nose)
    weights[:, skeleton.index("nose")] = rest * nose
    weights[:, skeleton.index("head")] = rest * (1 - muzzle)
    ribs = weights[:, skeleton.index("chest")].copy()
    back = ramp((0.10 - forward) / 0.08)
    weights[:, skeleton.index("spine1")] = ribs * back
    weights[:, skeleton.index("chest")] = ribs * (1 - back)
    return weights / np.maximum(weights.sum(1, keepdims=True), 1e-9)
