"""Parts of the human template: who belongs to which, what is front and back, what may collide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.collision import CollisionCheck, CollisionTest, spread
from ltenet.geometry.normals import vertex_normals

# Part -> the bones whose names start so; paired parts get the side as a suffix.
_BONES = {
    "head": ("head", "neck03", "neck02"),
    "trunk": ("root", "spine", "neck01", "clavicle", "shoulder01"),
    "upperarm": ("upperarm",),
    "forearm": ("lowerarm",),
    "hand": ("wrist", "finger"),
    "thigh": ("upperleg",),
    "shank": ("lowerleg",),
    "foot": ("foot", "toe"),
}

# Part -> the joints at the two ends of its axis ("trunk" and "head" have none of their own).
_AXES = {
    "head": ("neck02", "head"),
    "trunk": ("root", "neck01"),
    "upperarm": ("upperarm01", "lowerarm01"),
    "forearm": ("lowerarm01", "wrist"),
    "hand": ("wrist", "finger3-1"),
    "thigh": ("upperleg01", "lowerleg01"),
    "shank": ("lowerleg01", "foot"),
    "foot": ("foot", "toe3-1"),
}

# How far thighs and upper arms may press into the flesh of the trunk, in metres.
_SQUEEZE = 0.02

# Below this cosine between normal and front a vertex is on the flank.
_FLANK = 0.3


def body_parts(weights: NDArray[np.float32], bones: Sequence[str]) -> NDArray[np.str_]:
    """Name of each vertex's part, such as ``"hand.L"`` or ``"trunk"``.

    Parameters
    ----------
    weights
        (V, J) skinning weights.
    bones
        Names of the J bones.

    Returns
    -------
    (V,)
    """
    part_of_bone = []
    for bone in bones:
        part = next(name for name, starts in _BONES.items() if bone.startswith(starts))
        paired = part not in ("head", "trunk")
        part_of_bone.append(part + bone[-2:] if paired else part)
    names = np.array(part_of_bone)  # (J,)
    parts = np.unique(names)  # (P,)
    # Sum over the bones of a part before choosing: joints between two bones of a part stay in it.
    shares = np.stack([weights[:, names == part].sum(1) for part in parts], 1)  # (V, P)
    return np.asarray(parts[shares.argmax(1)])


def body_regions(
    vertices: NDArray[np.float32],
    joints: NDArray[np.float32],
    parts: NDArray[np.str_],
    bone_index: Mapping[str, int],
) -> dict[str, NDArray[np.bool_]]:
    """Masks (V,) of what a scan may be limited to: limbs, head and shoulders, half bodies.

    Parameters
    ----------
    vertices, joints
        (V, 3) and (J, 3), the rest pose.
    parts
        (V,) names of `body_parts`.
    bone_index
        Position of each bone by name.
    """

    def of(*names: str) -> NDArray[np.bool_]:
        return np.isin(parts, names)  # (V,)

    shoulders, waist = (joints[bone_index[bone], 1] for bone in ("upperarm01.L", "spine04"))
    trunk, height = of("trunk"), vertices[:, 1]
    arms = {
        side: of(*(f"{part}.{side}" for part in ("upperarm", "forearm", "hand"))) for side in "LR"
    }
    legs = {side: of(*(f"{part}.{side}" for part in ("thigh", "shank", "foot"))) for side in "LR"}
    regions = {f"arm.{side}": mask for side, mask in arms.items()}
    regions |= {f"leg.{side}": mask for side, mask in legs.items()}
    regions["head"] = of("head") | (trunk & (height > shoulders - 0.06))
    regions["upper"] = of("head") | arms["L"] | arms["R"] | (trunk & (height > waist))
    regions["lower"] = legs["L"] | legs["R"] | (trunk & (height < waist))
    regions["trunk"] = of("head", "trunk")
    return regions


def front_and_back(
    vertices: NDArray[np.float32],
    joints: NDArray[np.float32],
    faces: NDArray[np.int32],
    parts: NDArray[np.str_],
    bone_index: Mapping[str, int],
) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """Front or back of each vertex's part, and the partner on the other side of it.

    The front of a part is the direction nearest to +z that is perpendicular to its axis. A foot
    points that way itself: its front is up, since the instep continues the shin. The front of a
    hand is the palm, as in anatomy.

    Parameters
    ----------
    vertices, joints
        (V, 3) and (J, 3), the rest pose.
    faces
        (F, 3) outwards.
    parts
        (V,) names of `body_parts`.
    bone_index
        Position of each bone by name.

    Returns
    -------
    front
        (V,) int8, +1, -1 or 0 on the flanks.
    opposite
        (V,) int32, the vertex of the same part that lies straight through it, front to back; one
        on the flank has one on the flank.
    """
    normals = vertex_normals(vertices, faces)  # (V, 3)
    front = np.zeros(len(vertices), np.int8)  # (V,)
    opposite = np.arange(len(vertices), dtype=np.int32)  # (V,)
    for part in np.unique(parts):
        name, dot, side = str(part).partition(".")
        start, end = (joints[bone_index[bone + dot + side]] for bone in _AXES[name])
        axis = (end - start) / np.linalg.norm(end - start)  # (3,)
        if name == "hand":
            ahead = _palm(joints, bone_index, side)  # (3,)
        else:
            ahead = np.array([0.0, 1.0, 0.0] if name == "foot" else [0.0, 0.0, 1.0])  # (3,)
        ahead = ahead - (ahead @ axis) * axis  # (3,)
        ahead /= np.linalg.norm(ahead)
        members = np.flatnonzero(parts == part)  # (M,)
        points = vertices[members].astype(np.float64)  # (M, 3)
        facing = normals[members] @ ahead  # (M,)
        front[members] = np.where(np.abs(facing) > _FLANK, np.sign(facing), 0)
        # Straight through: the same place seen along ``ahead``, at least half a thickness deeper.
        depth = points @ ahead  # (M,)
        flat = points - depth[:, None] * ahead  # (M, 3)
        thickness = np.quantile(depth, 0.95) - np.quantile(depth, 0.05)
        beside = ((flat[:, None] - flat[None]) ** 2).sum(-1)  # (M, M)
        short = np.maximum(0.5 * thickness - np.abs(depth[:, None] - depth), 0.0)  # (M, M)
        other = front[members] == -front[members][:, None]  # (M, M)
        opposite[members] = members[np.where(other, beside + short**2, np.inf).argmin(1)]
    return front, opposite


def _palm(
    joints: NDArray[np.float32], bone_index: Mapping[str, int], side: str
) -> NDArray[np.float64]:
    """Direction (3,) the palm faces at rest: where the slightly bent fingers point."""

    def segment(start: str, end: str) -> NDArray[np.float64]:
        difference = joints[bone_index[f"{end}.{side}"]] - joints[bone_index[f"{start}.{side}"]]
        return np.asarray(difference / np.linalg.norm(difference), np.float64)  # (3,)

    across, along = segment("finger2-1", "finger5-1"), segment("wrist", "finger3-1")  # (3,) each
    normal = np.cross(across, along)  # (3,)
    bent = segment("finger3-2", "finger3-3") - segment("finger3-1", "finger3-2")  # (3,)
    return np.asarray(normal * np.sign(normal @ bent))


def collision_test(
    vertices: NDArray[np.float32], faces: NDArray[np.int32], parts: NDArray[np.str_]
) -> CollisionTest:
    """Self-collision test of the human template.

    Parameters
    ----------
    vertices
        (V, 3), the rest pose.
    faces
        (F, 3) outwards.
    parts
        (V,) names of `body_parts`.
    """

    def members(*names: str) -> NDArray[np.int64]:
        return np.flatnonzero(np.isin(parts, names))

    def pick(count: int, *names: str) -> NDArray[np.int64]:
        return spread(vertices, members(*names), count)

    checks = []
    body = pick(550, "trunk", "head", "thigh.L", "thigh.R")
    for side, other in ("LR", "RL"):
        arm = pick(110, f"forearm.{side}", f"hand.{side}")
        checks.append(CollisionCheck(arm, body))
        other_arm = pick(220, f"upperarm.{other}", f"forearm.{other}", f"hand.{other}")
        checks.append(CollisionCheck(arm, other_arm))
        leg = pick(90, f"shank.{side}", f"foot.{side}")
        other_leg = pick(240, f"thigh.{other}", f"shank.{other}", f"foot.{other}")
        checks.append(CollisionCheck(leg, other_leg))
        shank = pick(130, f"shank.{side}", f"foot.{side}")
        checks.append(CollisionCheck(pick(60, f"forearm.{side}", f"hand.{side}"), shank))
        # Knees and elbows only: the other ends of thigh and upper arm always touch the trunk.
        knee = spread(vertices, _lower(vertices, members(f"thigh.{side}"), 0.5), 50)
        checks.append(CollisionCheck(knee, pick(200, "trunk", "head"), _SQUEEZE))
        checks.append(CollisionCheck(knee, pick(160, f"thigh.{other}")))
        elbow = spread(vertices, _lower(vertices, members(f"upperarm.{side}"), 0.4), 30)
        checks.append(CollisionCheck(elbow, pick(300, "trunk", "head"), _SQUEEZE))
    return CollisionTest(faces, checks)


def _lower(
    vertices: NDArray[np.float32], members: NDArray[np.int64], share: float
) -> NDArray[np.int64]:
    """Keep the lowest share of some vertices."""
    heights = vertices[members, 1]  # (M,)
    return np.asarray(members[heights < np.quantile(heights, share)])
