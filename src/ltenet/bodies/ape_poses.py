"""Pose families of bodies with arms: an ape from head to foot, and the rider half of a centaur.

Angles are in degrees. An arm is given as on a human: elevation from hanging (0) over level (90) to
overhead (180), azimuth from sideways (0) to forwards (90), and the flexion of the elbow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ltenet.bodies.animal_kinematics import euler_rotations
from ltenet.bodies.bones import Floats, Rig
from ltenet.geometry.rotations import axis_rotation, swing

Generator = np.random.Generator
_SIDES = np.array([1.0, -1.0])  # left, right


@dataclass(frozen=True)
class Arms:
    """Both arms, left first; every attribute is (2,).

    Attributes
    ----------
    elevation, azimuth, elbow, twist, wrist, curl
        See the module's docstring; twist turns the upper arm about itself, curl bends the fingers.
    world
        Directions are relative to the world and not to the chest (arms that stand on the ground).
    """

    elevation: Floats
    azimuth: Floats
    elbow: Floats
    twist: Floats
    wrist: Floats
    curl: Floats
    world: bool = False


@dataclass(frozen=True)
class ApePosture:
    """An ape: lean and bend of the trunk, both legs (2,), neck and head, arms.

    Attributes
    ----------
    lean
        Forward lean of the hips.
    bend, side, twist
        Forward, sideways and twisting bend of the spine.
    hip, spread, knee, ankle
        (2,) each: flexion of the hip, outward swing, flexion of knee and ankle.
    look
        (pitch, yaw, roll) of neck and head together.
    arms
        Both arms.
    """

    lean: float
    bend: float
    side: float
    twist: float
    hip: Floats
    spread: Floats
    knee: Floats
    ankle: Floats
    look: tuple[float, float, float]
    arms: Arms


def draw_arms(rng: Generator, *, calm: bool) -> Arms:
    """Arms hanging loosely, or anywhere a shoulder allows."""
    if calm:
        elevation, azimuth = rng.uniform(8, 45, 2), rng.uniform(-30, 70, 2)
        elbow = rng.uniform(5, 45, 2)
    else:
        elevation, azimuth = rng.uniform(10, 172, 2), rng.uniform(-25, 105, 2)
        if rng.random() < 0.4:  # both arms alike
            elevation[1], azimuth[1] = (
                elevation[0] + rng.normal(0, 8),
                azimuth[0] + rng.normal(0, 8),
            )
        elbow = 130 * rng.uniform(0, 1, 2) ** 1.4
    return Arms(
        elevation, azimuth, elbow, rng.normal(0, 25, 2), rng.normal(0, 15, 2), rng.uniform(0, 60, 2)
    )


def _posture(
    rng: Generator,
    *,
    lean: float = 0.0,
    bend: float = 0.0,
    hip: Floats,
    knee: Floats,
    spread: Floats | None = None,
    ankle: Floats | None = None,
    arms: Arms | None = None,
) -> ApePosture:
    """Fill in what a family leaves open."""
    look = (rng.normal(0.5 * lean, 12), rng.normal(0, 22), rng.normal(0, 7))
    return ApePosture(
        lean, bend, rng.normal(0, 6), rng.normal(0, 9), hip,
        rng.uniform(-3, 14, 2) if spread is None else spread, knee,
        rng.normal(0, 6, 2) if ankle is None else ankle, look,
        draw_arms(rng, calm=rng.random() < 0.45) if arms is None else arms,
    )  # fmt: skip


def _stand(rng: Generator) -> ApePosture:
    soft = rng.uniform(0, 35)
    hip, knee = soft + rng.normal(0, 6, 2), 1.4 * soft + np.abs(rng.normal(5, 6, 2))
    return _posture(rng, lean=rng.uniform(-4, 18), bend=rng.normal(6, 8), hip=hip, knee=knee)


def _walk(rng: Generator) -> ApePosture:
    stride = rng.choice((-1.0, 1.0)) * rng.uniform(14, 40)
    hip = stride * _SIDES + rng.uniform(0, 18)
    knee = np.where(hip > 0, rng.uniform(8, 50), rng.uniform(10, 45)) + rng.normal(0, 4, 2)
    return _posture(rng, lean=rng.uniform(0, 25), bend=rng.uniform(0, 20), hip=hip, knee=knee)


def _knuckle(rng: Generator) -> ApePosture:
    lean = rng.uniform(40, 75)
    stride = rng.normal(0, 16)
    hip = lean + stride * _SIDES + rng.uniform(0, 25)
    knee = rng.uniform(15, 55) + np.abs(rng.normal(0, 10, 2))
    free = draw_arms(rng, calm=False)
    lifted = rng.random(2) < (0.25 if rng.random() < 0.5 else 0.0)
    forwards = -stride * _SIDES + rng.uniform(-5, 25)  # on the ground, along the walk
    arms = Arms(
        np.where(lifted, free.elevation, np.abs(forwards)),
        np.where(lifted, 60.0, np.where(forwards > 0, 80.0, -80.0)),
        np.where(lifted, free.elbow, rng.uniform(0, 25, 2)), rng.normal(0, 10, 2),
        rng.normal(0, 10, 2), rng.uniform(20, 90, 2), world=True,
    )  # fmt: skip
    return _posture(rng, lean=lean, bend=rng.uniform(-8, 15), hip=hip, knee=knee, arms=arms)


def _sit(rng: Generator) -> ApePosture:
    lean = rng.uniform(-20, 15)
    hip = 88 + lean + rng.uniform(-8, 32, 2)
    knee, bend, arms = rng.uniform(10, 125) + rng.normal(0, 14, 2), rng.uniform(0, 30), None
    if rng.random() < 0.4:  # huddled: knees drawn up, arms in front of them
        hip, knee, bend = hip + 18, rng.uniform(105, 135, 2), rng.uniform(20, 48)
        arms = Arms(
            rng.uniform(25, 80, 2), rng.uniform(55, 100, 2), rng.uniform(50, 125, 2),
            rng.normal(0, 15, 2), rng.normal(0, 15, 2), rng.uniform(0, 60, 2),
        )  # fmt: skip
    return _posture(
        rng, lean=lean, bend=bend, hip=hip, knee=np.clip(knee, 0, 135), arms=arms,
        spread=rng.uniform(2, 38, 2), ankle=rng.normal(5, 12, 2),
    )  # fmt: skip


def _squat(rng: Generator) -> ApePosture:
    deep = rng.uniform(40, 115)
    return _posture(
        rng, lean=rng.uniform(15, 45), bend=rng.uniform(5, 30), hip=deep + rng.uniform(5, 35, 2),
        knee=deep * 1.15 + rng.normal(0, 6, 2), spread=rng.uniform(8, 32, 2),
        ankle=0.25 * deep + rng.normal(0, 4, 2),
    )  # fmt: skip


def _free(rng: Generator) -> ApePosture:
    return _posture(
        rng, lean=rng.uniform(-20, 60), bend=rng.normal(8, 16), hip=rng.uniform(-30, 105, 2),
        knee=rng.uniform(0, 115, 2), spread=rng.uniform(0, 45, 2), arms=draw_arms(rng, calm=False),
    )  # fmt: skip


def _reach(rng: Generator) -> ApePosture:
    soft = rng.uniform(0, 40)
    hip, knee = soft + rng.normal(0, 8, 2), 1.4 * soft + np.abs(rng.normal(5, 8, 2))
    arms, up = draw_arms(rng, calm=True), rng.random(2) < 0.3
    up[int(rng.integers(2))] = True
    arms = replace(
        arms, elevation=np.where(up, rng.uniform(110, 172, 2), arms.elevation),
        azimuth=np.where(up, rng.uniform(-5, 80, 2), arms.azimuth),
        elbow=np.where(up, 80 * rng.uniform(0, 1, 2) ** 1.5, arms.elbow),
    )  # fmt: skip
    lean = rng.uniform(-8, 18)
    return _posture(rng, lean=lean, bend=rng.normal(2, 8), hip=hip, knee=knee, arms=arms)


def _climb(rng: Generator) -> ApePosture:
    arms = Arms(
        rng.uniform(80, 172, 2), rng.uniform(10, 90, 2), 110 * rng.uniform(0, 1, 2) ** 1.4,
        rng.normal(0, 20, 2), rng.normal(0, 15, 2), rng.uniform(20, 85, 2),
    )  # fmt: skip
    up = rng.uniform(0, 1, 2)
    return _posture(
        rng, lean=rng.uniform(-10, 30), bend=rng.normal(0, 12), hip=115 * up + rng.normal(0, 6, 2),
        knee=115 * up + rng.uniform(0, 25, 2), spread=rng.uniform(5, 45, 2), arms=arms,
    )  # fmt: skip


def _crouch(rng: Generator) -> ApePosture:
    lean, deep = rng.uniform(30, 65), rng.uniform(80, 120)
    arms = Arms(
        rng.uniform(5, 35, 2), rng.uniform(20, 100, 2), rng.uniform(0, 45, 2),
        rng.normal(0, 12, 2), rng.normal(0, 12, 2), rng.uniform(10, 85, 2), world=True,
    )  # fmt: skip
    return _posture(
        rng, lean=lean, bend=rng.uniform(0, 30), hip=deep + rng.uniform(0, 25, 2),
        knee=deep * 1.1 + rng.normal(0, 6, 2), spread=rng.uniform(5, 35, 2),
        ankle=0.2 * deep + rng.normal(0, 4, 2), arms=arms,
    )  # fmt: skip


APE_FAMILIES: dict[str, Callable[[Generator], ApePosture]] = {
    "stand": _stand, "walk": _walk, "knuckle": _knuckle, "sit": _sit, "squat": _squat,
    "reach": _reach, "climb": _climb, "crouch": _crouch, "free": _free,
}  # fmt: skip
APE_ODDS = {
    "stand": 0.15, "walk": 0.12, "knuckle": 0.16, "sit": 0.18, "squat": 0.07, "reach": 0.12,
    "climb": 0.08, "crouch": 0.06, "free": 0.06,
}  # fmt: skip


class ArmPoser:
    """Turns arm goals into local rotations, for an ape as for a centaur."""

    def __init__(self, rig: Rig) -> None:
        def pair(name: str) -> list[int]:
            return [rig.index(f"{name}_{side}") for side in "lr"]

        self._clavicle, self._humerus, self._ulna, self._hand, self._fingers = map(
            pair, ("clavicle", "humerus", "ulna", "hand", "fingers")
        )

    def pose(self, out: Floats, arms: Arms, axes: Floats, chest: Floats) -> None:
        """Write the rotations of both arms into ``out`` (J, 3, 3).

        Parameters
        ----------
        axes
            (J, 3) rest axes of the bones.
        chest
            (3, 3) world rotation of the bone that carries the shoulders.
        """
        up, turn = np.radians(arms.elevation), np.radians(arms.azimuth)  # (2,) each
        sideways = _SIDES * np.sin(up) * np.cos(turn)  # (2,)
        goal = np.stack([sideways, -np.cos(up), np.sin(up) * np.sin(turn)], axis=1)  # (2, 3)
        if arms.world:
            goal = goal @ chest
        shrug = np.zeros((2, 3))
        shrug[:, 2] = 0.25 * _SIDES * np.maximum(arms.elevation - 60.0, 0.0)
        clavicle = euler_rotations(shrug)  # (2, 3, 3)
        rest = axes[self._humerus]  # (2, 3)
        fold = np.cross(rest, (0.0, 0.0, 1.0))  # (2, 3): bends the forearm forwards
        hinges = np.stack([rest, fold, fold, fold])  # (4, 2, 3)
        bends = np.stack([_SIDES * arms.twist, arms.elbow, arms.wrist, arms.curl])  # (4, 2)
        twisted, elbow, wrist, curl = axis_rotation(hinges, bends)  # (2, 3, 3) each
        out[self._clavicle] = clavicle
        out[self._humerus] = clavicle.transpose(0, 2, 1) @ swing(rest, goal) @ twisted
        out[self._ulna], out[self._hand], out[self._fingers] = elbow, wrist, curl


class ApePoser:
    """Turns ape postures into local rotations for one rig."""

    def __init__(self, rig: Rig) -> None:
        self._bones = len(rig.bones)
        self._spine = [rig.index(n) for n in ("spine0", "spine1", "chest")]
        self._neck, self._head = rig.index("neck0"), rig.index("head")
        self._legs = {
            name: [rig.index(f"{name}_{side}") for side in "lr"]
            for name in ("thigh", "shank", "foot")
        }
        self._arms = ArmPoser(rig)

    def pose(self, posture: ApePosture, axes: Floats) -> Floats:
        """Local rotations (J, 3, 3); ``axes`` (J, 3) are the rest axes."""
        angles = np.zeros((self._bones, 3))
        angles[0] = -posture.lean, 0.0, 0.0
        # On an upright spine a twist is a yaw and a sideways bend is a roll.
        angles[self._spine] = np.array([-posture.bend, posture.twist, posture.side]) / 3.0
        angles[self._neck], angles[self._head] = (
            share * np.array(posture.look) for share in (0.5, 0.5)
        )
        angles[self._legs["thigh"], 0] = posture.hip
        angles[self._legs["thigh"], 2] = _SIDES * posture.spread
        angles[self._legs["shank"], 0] = -posture.knee
        angles[self._legs["foot"], 0] = posture.ankle
        out = euler_rotations(angles)  # (J, 3, 3)
        chest = out[0] @ out[self._spine[0]] @ out[self._spine[1]] @ out[self._spine[2]]
        self._arms.pose(out, posture.arms, axes, chest)
        return out
