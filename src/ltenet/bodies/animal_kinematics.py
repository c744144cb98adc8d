"""From a posture to rotations: the legs of a four-legged animal by inverse kinematics.

Each leg moves in a plane that a small roll at the hip or shoulder tilts outwards. In that plane a
point is the complex number ``forward + i up`` and a pitch by a is a product with ``exp(i a)``. The
paw and the metapodial bone are placed first; thigh and shank (upper arm and forearm) then close
the gap to the hip as two links of known length, the knee pointing forwards, the elbow backwards.
"""

from __future__ import annotations

import cmath
import math

import numpy as np

from ltenet.bodies.animal_postures import Leg, Posture
from ltenet.bodies.bones import Floats, Rig, pitch_rotation

_NECK_LEVELLING, _HEAD_LEVELLING, _TAIL_LEVELLING = 0.55, 0.2, 0.6
_TIGHTEST_JOINT = math.radians(40.0)  # between the two links of a fully bent leg
_HOCK_RANGE, _WRIST_RANGE = (-50.0, 95.0), (-120.0, 35.0)
_WIDEST_SPLAY = math.radians(40.0)


def roll_rotation(radians: float) -> Floats:
    """(3, 3) rotation about the forward axis that swings to the left what points down."""
    c, s = math.cos(radians), math.sin(radians)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def euler_rotations(angles: Floats) -> Floats:
    """Rotations (J, 3, 3) from pitch, yaw, roll (J, 3) in degrees; the roll acts first."""
    pitch, yaw, roll = np.radians(angles).T
    cp, sp, cy, sy, cr, sr = (f(a) for a in (pitch, yaw, roll) for f in (np.cos, np.sin))
    out = np.empty((len(angles), 3, 3))
    out[:, 0, 0], out[:, 0, 1], out[:, 0, 2] = cy * cr, -cy * sr, sy
    out[:, 1, 0] = cp * sr - sp * sy * cr
    out[:, 1, 1] = cp * cr + sp * sy * sr
    out[:, 1, 2] = sp * cy
    out[:, 2, 0] = -sp * sr - cp * sy * cr
    out[:, 2, 1] = -sp * cr + cp * sy * sr
    out[:, 2, 2] = cp * cy
    return out


def elevation(rotation: Floats) -> float:
    """Pitch in degrees of a bone with this world rotation (3, 3)."""
    return math.degrees(math.atan2(rotation[1, 2], rotation[2, 2]))


class QuadrupedPoser:
    """Turns postures into local rotations for one rig.

    Parameters
    ----------
    rig
        A rig with four legs, named as in the shipped templates.
    """

    def __init__(self, rig: Rig) -> None:
        self._bones = len(rig.bones)
        find = rig.index
        self._trunk = [find(n) for n in ("spine0", "spine1", "chest")]
        self._neck = [j for j, n in enumerate(rig.bones) if n.startswith(("neck", "torso"))]
        self._tail = [j for j, n in enumerate(rig.bones) if n.startswith("tail")]
        self._rider = "torso0" in rig.bones
        self._head = find("head")
        self._jaw = find("jaw") if "jaw" in rig.bones else None
        self._ears = [find(n) for n in ("ear_l", "ear_r")] if "ear_l" in rig.bones else []
        hind, fore = ("thigh", "shank", "hock", "hpaw"), ("upperarm", "forearm", "cannon", "fpaw")
        self._legs = [
            [find(f"{name}_{side}") for name in names] for names in (hind, fore) for side in "lr"
        ]
        self._hinges = [leg[0] for leg in self._legs]
        self._scapulas = [find("scapula_l"), find("scapula_r")]

    def pose(self, posture: Posture, offsets: Floats, soles: Floats) -> tuple[Floats, Floats]:
        """Local rotations (J, 3, 3), and where to put the head of the root (3,).

        Parameters
        ----------
        posture
            What the animal does.
        offsets
            (J, 3) heads of the scaled skeleton relative to their parents', in rest axes.
        soles
            (4,) height of the four paw joints above the ground at rest.
        """
        angles = np.zeros((self._bones, 3))
        turn = np.array([-1.4 * posture.arch, posture.bend, posture.twist]) / 3.0
        angles[self._trunk] = turn
        spine = euler_rotations(angles[self._trunk])  # (3, 3, 3)
        # The trunk with a level pelvis at the origin: where are the shoulders seen from the hips?
        world, chest_head = np.eye(3), np.zeros(3)
        for rotation, bone in zip(spine, self._trunk, strict=True):
            chest_head = chest_head + world @ offsets[bone]
            world = world @ rotation
        blades = [
            offsets[s] + offsets[leg[0]]
            for s, leg in zip(self._scapulas, self._legs[2:], strict=True)
        ]
        shoulders = chest_head + world @ ((blades[0] + blades[1]) / 2)  # (3,)
        hips = (offsets[self._legs[0][0]] + offsets[self._legs[1][0]]) / 2  # (3,)
        heights = [
            soles[k] - sum(offsets[j][1] for j in leg[1:]) for k, leg in enumerate(self._legs)
        ]
        line = complex(shoulders[2] - hips[2], shoulders[1] - hips[1])
        hip_height = posture.hips * heights[0]
        shoulder_height = posture.shoulders * heights[2]
        if posture.pitch is None:
            slope = min(1.0, max(-1.0, (shoulder_height - hip_height) / abs(line)))
            tilt = math.degrees(math.asin(slope) - cmath.phase(line))
        else:
            rest = complex(
                *(sum(offsets[j] for j in self._trunk) + (blades[0] + blades[1]) / 2 - hips)[[2, 1]]
            )
            tilt = posture.pitch - math.degrees(cmath.phase(line) - cmath.phase(rest))
        pelvis = pitch_rotation(tilt)  # (3, 3)
        chest = pelvis @ world  # (3, 3)
        root = np.array([0.0, hip_height, 0.0]) - pelvis @ hips  # (3,)
        if posture.pitch is not None and posture.legs[2].reach is None:
            root[1] += shoulder_height - (root + pelvis @ shoulders)[1]
        self._pose_ends(angles, posture, tilt, elevation(chest))
        hinges: list[Floats] = []
        for k, leg in enumerate(self._legs):
            goal, trunk, shrug = posture.legs[k], pelvis if k < 2 else chest, 0.0
            joint = root + pelvis @ offsets[leg[0]]
            if k >= 2:
                blade = self._scapulas[k - 2]
                shrug = 0.3 * max(-60.0, min(60.0, goal.swing))
                angles[blade, 0] = shrug
                swung = offsets[blade] + pitch_rotation(shrug) @ offsets[leg[0]]
                joint = root + pelvis @ chest_head + chest @ swung
            side = 1.0 if k % 2 == 0 else -1.0
            solved = _solve_leg(goal, offsets[leg[1:]], trunk, joint, soles[k], side, hind=k < 2)
            angles[leg[1:], 0] = solved[2:]
            # The scapula carries the upper arm along; the leg was solved against the trunk.
            hinges.append(_hinge_rotation(-shrug, solved[0], solved[1]))
        out = euler_rotations(angles)  # (J, 3, 3)
        out[0] = roll_rotation(math.radians(posture.roll)) @ pelvis
        out[self._hinges] = hinges
        return out, root

    def _pose_ends(self, angles: Floats, posture: Posture, hips: float, chest: float) -> None:
        """Fill in neck, head, jaw, ears and tail (pitch, yaw, roll)."""
        neck = np.array(posture.neck)
        # The torso of a centaur stays upright, a neck only makes up for a part of the slope.
        neck[0] -= (0.85 if self._rider else _NECK_LEVELLING) * chest
        angles[self._neck] = neck / len(self._neck)
        angles[self._head] = posture.head
        if not self._rider:
            angles[self._head, 0] -= _HEAD_LEVELLING * chest
        if self._jaw is not None:
            angles[self._jaw, 0] = -posture.jaw
        for ear, pitch in zip(self._ears, posture.ears, strict=False):
            angles[ear, 0] = pitch
        root, rest = self._tail[0], self._tail[1:]
        angles[root, :2] = -posture.tail[0] - _TAIL_LEVELLING * hips, posture.tail[1]
        angles[rest, :2] = np.array([-posture.curl[0], posture.curl[1]]) / len(rest)


def _hinge_rotation(before: float, roll: float, pitch: float) -> Floats:
    """(3, 3): a pitch in degrees, then a roll in radians, then one more pitch in degrees."""
    tilted = roll_rotation(roll) @ pitch_rotation(pitch)
    return pitch_rotation(before) @ tilted if before else tilted


def _solve_leg(
    goal: Leg, links: Floats, trunk: Floats, joint: Floats, sole: float, side: float, *, hind: bool
) -> tuple[float, float, float, float, float]:
    """Close one leg between the trunk and its foot.

    Parameters
    ----------
    links
        (3, 3) rest vectors from hip to knee, hock and paw (shoulder to elbow, wrist and paw).
    trunk, joint
        World rotation (3, 3) of the trunk and position (3,) of the hip or shoulder.
    sole
        Height of the paw joint above the ground at rest.
    side
        +1 on the left, -1 on the right.

    Returns
    -------
    Roll of the leg's plane in radians and pitch of the upper bone in degrees, both against the
    trunk; then the pitches of lower bone, metapodial bone and paw in degrees, each against the one
    before.
    """
    (x1, y1, z1), (x2, y2, z2), (x3, y3, z3) = links.tolist()
    upper, lower, cannon = complex(z1, y1), complex(z2, y2), complex(z3, y3)
    rest = upper + lower + cannon
    width, length = x1 + x2 + x3, abs(rest)
    swing = math.radians(goal.swing)
    if goal.reach is None:
        ahead = rest.real + math.sin(swing) * length
        drop = sole + goal.lift * length - float(joint[1])
        aside = width + side * goal.splay * length
        # Feet walk where their end of the trunk is heading: on a bent trunk they would cross.
        heading = math.atan2(trunk[0, 2], trunk[2, 2])
        c, s = math.cos(heading), math.sin(heading)
        target = np.array([c * aside + s * ahead, drop, c * ahead - s * aside])  # (3,)
        x, y, z = (target @ trunk).tolist()
        level = elevation(trunk)
    else:
        foot = rest * goal.reach * cmath.exp(1j * swing)
        x, y, z = width + side * goal.splay * length, foot.imag, foot.real
        level = 0.0
    depth = math.copysign(math.sqrt(max(x * x + y * y - width * width, 1e-12)), y)
    tilt = math.remainder(math.atan2(y, x) - math.atan2(depth, width), math.tau)
    tilt = max(-_WIDEST_SPLAY, min(_WIDEST_SPLAY, tilt))
    cannon_pitch, paw_pitch = goal.cannon - level, goal.paw - level
    gap = complex(z, depth) - cannon * cmath.exp(1j * math.radians(cannon_pitch))
    a, b = abs(upper), abs(lower)
    shortest = math.sqrt(a * a + b * b - 2 * a * b * math.cos(_TIGHTEST_JOINT))
    distance = max(shortest, min(0.997 * (a + b), abs(gap)))
    opening = math.acos(max(-1.0, min(1.0, (a * a + distance**2 - b * b) / (2 * a * distance))))
    thigh = cmath.rect(a, cmath.phase(gap) + (opening if hind else -opening))
    shank = cmath.rect(distance, cmath.phase(gap)) - thigh
    thigh_pitch = math.degrees(cmath.phase(thigh / upper))
    knee = math.degrees(cmath.phase(shank / lower * upper / thigh))
    low, high = _HOCK_RANGE if hind else _WRIST_RANGE
    # Whole turns do not matter to a rotation but would to the limits.
    bend = math.remainder(cannon_pitch - thigh_pitch - knee, 360.0)
    bend = max(low, min(high, bend))
    paw = math.remainder(paw_pitch - thigh_pitch - knee - bend, 360.0)
    return tilt, thigh_pitch, knee, bend, paw
