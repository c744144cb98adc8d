"""From joint angles to the rotations of one person's bones.

The angles count from a soldier at attention, but the rest pose of the body model is another one
(arms out, elbows bent, legs apart) and differs between people. `pose_rotations` makes up for that,
so that an arm held out sideways is horizontal for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.human_angles import Leg, Pose, Reach
from ltenet.geometry.rotations import axis_rotation, swing

_X, _Y, _Z = np.eye(3)
_SIDES = np.array([1.0, -1.0])  # left, right: the sign of x

# How the turns of the trunk and of the neck are shared out along their bones.
_SPINE = {"spine05": 0.15, "spine04": 0.22, "spine03": 0.23, "spine02": 0.22, "spine01": 0.18}
_NECK = {"neck01": 0.2, "neck02": 0.2, "neck03": 0.25, "head": 0.35}

# Beyond this elevation of the arm the shoulder girdle takes part in raising it.
_GIRDLE_STARTS, _GIRDLE_SHARE = 45.0, 0.28

# The fingers of the rest pose are slightly bent already.
_REST_CURL = 15.0


def pose_rotations(
    pose: Pose, joints: NDArray[np.float32], bone_index: Mapping[str, int]
) -> NDArray[np.float64]:
    """Rotation of every bone about its head, in the axes of the rest pose.

    Parameters
    ----------
    pose
        The joint angles.
    joints
        (J, 3) heads of this person's bones at rest.
    bone_index
        Position of each bone by name.

    Returns
    -------
    (J, 3, 3)
    """
    turns = _Turns(bone_index)
    turns.add("root", _X, pose.pitch)
    turns.add("root", _Z, -pose.roll)
    for bone, share in _SPINE.items():
        turns.add(bone, _X, share * pose.bend)
        turns.add(bone, _Z, -share * pose.lean)
        turns.add(bone, _Y, share * pose.turn)
    for bone, share in _NECK.items():
        turns.add(bone, _Y, share * pose.look)
        turns.add(bone, _X, share * pose.nod)
        turns.add(bone, _Z, -share * pose.tilt)
    for side, (name, sign) in enumerate(zip("LR", _SIDES.tolist(), strict=True)):
        leg = _reaching(pose.legs[side], side, joints.astype(np.float64), bone_index)
        thigh = joints[bone_index[f"lowerleg01.{name}"]] - joints[bone_index[f"upperleg01.{name}"]]
        astride = float(np.degrees(np.arctan2(sign * thigh[0], -thigh[1])))
        turns.add(f"upperleg01.{name}", _X, -leg.flexion)
        turns.add(f"upperleg01.{name}", _Z, sign * (leg.abduction - astride))
        turns.add(f"upperleg01.{name}", _Y, 0.5 * sign * leg.twist)
        turns.add(f"upperleg02.{name}", _Y, 0.5 * sign * leg.twist)
        turns.add(f"lowerleg01.{name}", _X, leg.knee)
        turns.add(f"foot.{name}", _X, -leg.ankle)
        for toe in range(1, 6):
            turns.add(f"toe{toe}-1.{name}", _X, -leg.toes)
    _turn_arms(turns, pose, joints.astype(np.float64))
    return turns.product()


def _reaching(
    leg: Leg, side: int, joints: NDArray[np.float64], bone_index: Mapping[str, int]
) -> Leg:
    """Replace the reach of a leg by angles of hip and knee."""
    if leg.reach is None:
        return leg
    hip, knee, ankle = (
        joints[bone_index[f"{bone}.{'LR'[side]}"]] for bone in ("upperleg01", "lowerleg01", "foot")
    )  # (3,) each
    lengths = float(np.linalg.norm(knee - hip)), float(np.linalg.norm(ankle - knee))
    target = _target(leg.reach, side, joints, bone_index, lengths[1])  # (3,)
    angle, sign = np.radians(leg.reach.swivel), float(_SIDES[side])
    pole = np.array([sign * np.sin(angle), 0.0, np.cos(angle)])  # (3,)
    thigh, shin = _two_bones(target - hip, *lengths, pole)  # (3,), (3,)
    abduction = np.degrees(np.arcsin(np.clip(sign * thigh[0], -1, 1)))
    flexion = np.degrees(np.arctan2(thigh[2], -thigh[1]))
    axes, angles = np.array([_X, _Z]), np.array([-flexion, sign * abduction])
    first, second = axis_rotation(axes, angles)  # (3, 3) each
    back = first @ second @ -_Z  # (3,) where the shin of an untwisted leg goes
    across = shin - (shin @ thigh) * thigh  # (3,)
    twist = -np.degrees(np.arctan2(thigh @ _cross(back, across), back @ across))
    bent = np.degrees(np.arccos(np.clip(thigh @ shin, -1, 1)))
    # At rest the leg is slightly bent already.
    before, after = (
        float(np.degrees(np.arctan2(bone[2], -bone[1]))) for bone in (knee - hip, ankle - knee)
    )
    return replace(
        leg,
        flexion=float(flexion) - before,
        abduction=float(abduction),
        twist=sign * float(twist),
        knee=float(bent) - (before - after),
    )


class _Turns:
    """Elementary rotations, collected by bone and multiplied all at once.

    Per bone the first one added is the outermost: ``add(A); add(B)`` gives A B.
    """

    def __init__(self, bone_index: Mapping[str, int]) -> None:
        self.index = bone_index
        self._rounds: list[list[tuple[int, NDArray[np.float64], float]]] = []
        self._counts = [0] * len(bone_index)

    def add(self, bone: str, axis: NDArray[np.float64], degrees: float) -> None:
        number = self.index[bone]
        turn = self._counts[number]
        self._counts[number] = turn + 1
        if turn == len(self._rounds):
            self._rounds.append([])
        self._rounds[turn].append((number, axis, degrees))

    def product(self) -> NDArray[np.float64]:
        flat = [entry for entries in self._rounds for entry in entries]
        matrices = axis_rotation(
            np.array([axis for _, axis, _ in flat]), np.array([degrees for _, _, degrees in flat])
        )  # (N, 3, 3)
        product = np.tile(np.eye(3), (len(self._counts), 1, 1))  # (J, 3, 3)
        start = 0
        for entries in self._rounds:
            bones = [number for number, _, _ in entries]
            product[bones] = product[bones] @ matrices[start : start + len(entries)]
            start += len(entries)
        return product


def _turn_arms(turns: _Turns, pose: Pose, joints: NDArray[np.float64]) -> None:
    """Rotations of clavicles, arms, hands and fingers; arrays hold left and right, (2, ...)."""

    def both(bone: str) -> NDArray[np.float64]:
        return joints[[turns.index[f"{bone}.L"], turns.index[f"{bone}.R"]]]  # (2, 3)

    shoulder, elbow, wrist = both("upperarm01"), both("lowerarm01"), both("wrist")  # (2, 3) each
    upper, upper_length = _unit(elbow - shoulder)  # (2, 3), (2,)
    fore, fore_length = _unit(wrist - elbow)  # (2, 3), (2,)
    hinge, _ = _unit(_cross(upper, fore))  # (2, 3)
    rest_flexion = np.degrees(np.arccos(np.clip((upper * fore).sum(1), -1, 1)))  # (2,)

    elevation = np.radians([arm.elevation for arm in pose.arms])  # (2,)
    azimuth = np.radians([arm.azimuth for arm in pose.arms])  # (2,)
    direction = np.stack(
        [
            _SIDES * np.sin(elevation) * np.cos(azimuth),
            -np.cos(elevation),
            np.sin(elevation) * np.sin(azimuth),
        ],
        1,
    )  # (2, 3)
    twist = _SIDES * [arm.twist for arm in pose.arms]  # (2,)
    flexion = np.array([arm.elbow for arm in pose.arms])  # (2,)
    for side, arm in enumerate(pose.arms):
        if arm.reach is None:
            continue
        target = _target(arm.reach, side, joints, turns.index, float(fore_length[side]))  # (3,)
        angle = np.radians(arm.reach.swivel)
        pole = np.array([_SIDES[side] * np.sin(angle), -np.cos(angle), -0.15])  # (3,)
        direction[side], forearm = _two_bones(
            target - shoulder[side], float(upper_length[side]), float(fore_length[side]), pole
        )
        flexion[side] = np.degrees(np.arccos(np.clip(direction[side] @ forearm, -1, 1)))
        # The twist brings the hinge of the elbow into the plane of the bent arm.
        have = swing(upper[side], direction[side]) @ hinge[side]  # (3,)
        want = _cross(direction[side], forearm)  # (3,)
        twist[side] = np.degrees(np.arctan2(direction[side] @ _cross(have, want), have @ want))

    for side, (name, sign, arm) in enumerate(zip("LR", _SIDES.tolist(), pose.arms, strict=True)):
        raised = float(np.degrees(np.arccos(np.clip(-direction[side, 1], -1, 1))))
        lift = max(raised - _GIRDLE_STARTS, 0.0) * _GIRDLE_SHARE
        forwards = max(float(direction[side, 2]), 0.0)
        girdle = (
            (_Z, 0.7 * sign * lift),
            (_Y, -0.3 * sign * lift * forwards),
            (_Z, 0.3 * sign * lift),
        )
        turns.add(f"clavicle.{name}", *girdle[0])
        turns.add(f"clavicle.{name}", *girdle[1])
        turns.add(f"shoulder01.{name}", *girdle[2])
        # The direction of the arm is meant in the frame of the chest: undo the girdle first.
        for axis, degrees in reversed(girdle):
            turns.add(f"upperarm01.{name}", axis, -degrees)
        turns.add(f"upperarm01.{name}", *_axis_and_angle(upper[side], direction[side]))
        turns.add(f"upperarm01.{name}", upper[side], 0.4 * twist[side])
        turns.add(f"upperarm02.{name}", upper[side], 0.6 * twist[side])
        turns.add(f"lowerarm01.{name}", hinge[side], flexion[side] - rest_flexion[side])
        turns.add(f"lowerarm01.{name}", fore[side], 0.4 * sign * arm.pronation)
        turns.add(f"lowerarm02.{name}", fore[side], 0.6 * sign * arm.pronation)
    _turn_hands(turns, pose, both)


def _turn_hands(turns: _Turns, pose: Pose, both: Callable[[str], NDArray[np.float64]]) -> None:
    """Rotations of wrists and fingers."""
    along, _ = _unit(both("finger3-2") - both("finger3-1"))  # (2, 3) towards the finger tips
    across, _ = _unit(both("finger5-1") - both("finger2-1"))  # (2, 3) index to little finger
    bent = _cross(along, both("finger3-3") - both("finger3-2"))  # (2, 3)
    # The line through the knuckles is the hinge; the bend at rest tells the sign of flexion.
    hinge = across * np.sign((across * bent).sum(1))[:, None]  # (2, 3)
    palm = _cross(hinge, along)  # (2, 3) the way the finger tips go when they flex
    thumb, _ = _unit(both("finger1-3") - both("finger1-2"))  # (2, 3)
    thumb_hinge, _ = _unit(_cross(thumb, across + 0.5 * palm))  # (2, 3)
    spread_axis = _cross(along, across)  # (2, 3)
    for side, (name, arm) in enumerate(zip("LR", pose.arms, strict=True)):
        turns.add(f"wrist.{name}", hinge[side], arm.wrist)
        curl = arm.curl - _REST_CURL
        for finger in range(2, 6):
            turns.add(f"finger{finger}-1.{name}", spread_axis[side], (finger - 3.5) * arm.spread)
            turns.add(f"finger{finger}-1.{name}", hinge[side], curl)
            turns.add(f"finger{finger}-2.{name}", hinge[side], 1.1 * curl)
            turns.add(f"finger{finger}-3.{name}", hinge[side], 0.7 * curl)
        turns.add(f"finger1-2.{name}", thumb_hinge[side], 0.35 * curl)
        turns.add(f"finger1-3.{name}", thumb_hinge[side], 0.6 * curl)


def _target(
    reach: Reach,
    side: int,
    joints: NDArray[np.float64],
    bone_index: Mapping[str, int],
    unit: float,
) -> NDArray[np.float64]:
    """Point (3,) at which wrist or ankle aim, in the rest pose; offsets are in this unit."""
    bone, _, whose = reach.bone.partition(".")
    if whose:
        bone = f"{bone}.{'LR'[side if whose == 'same' else 1 - side]}"
    outwards, up, forwards = reach.offset
    offset = np.array([_SIDES[side] * outwards, up, forwards])  # (3,)
    return np.asarray(joints[bone_index[bone]] + unit * offset)


def _two_bones(
    target: NDArray[np.float64], upper: float, lower: float, pole: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Directions (3,), (3,) of the two bones of a limb that bring its end to a target (3,).

    The law of cosines gives the angle at the root, the pole (3,) the side that elbow or knee
    point to.
    """
    distance = float(np.linalg.norm(target))
    towards = target / max(distance, 1e-6)  # (3,)
    # Nearly straight and fully folded limbs look broken; stop a little before both.
    reached = min(max(distance, abs(upper - lower) + 0.25 * lower), 0.985 * (upper + lower))
    cosine = (upper**2 + reached**2 - lower**2) / (2 * upper * reached)
    pole, _ = _unit(pole - (pole @ towards) * towards)  # (3,)
    direction = cosine * towards + np.sqrt(max(1 - cosine**2, 0.0)) * pole  # (3,)
    end, _ = _unit(reached * towards - upper * direction)  # (3,)
    return direction, end


def _axis_and_angle(
    start: NDArray[np.float64], end: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Axis (3,) and degrees of the smallest rotation between two unit vectors."""
    axis = _cross(start, end)  # (3,)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-9:
        return _Z, 0.0 if start @ end > 0 else 180.0
    return axis, float(np.degrees(np.arctan2(sine, start @ end)))


def _cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cross product (..., 3); `numpy.cross` spends most of its time on argument checks."""
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)


def _unit(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Split vectors into directions (..., 3) and lengths (...)."""
    length = np.sqrt((vectors * vectors).sum(-1))  # (...)
    return vectors / length[..., None], length
