"""What all families of poses are made of: dice, a standing person, and free gestures.

The functions that return nothing amend the pose that is being made up.
"""

from __future__ import annotations

import numpy as np

from ltenet.bodies.human_angles import Arm, Leg, Pose


class Dice:
    """Short names for random draws; each call takes the next numbers of one generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def within(self, low: float, high: float) -> float:
        """Draw evenly between two bounds."""
        return low + (high - low) * self._rng.random()

    def around(self, mean: float, deviation: float, low: float = -1e9, high: float = 1e9) -> float:
        """Draw from a normal distribution, clipped to bounds."""
        return min(max(mean + deviation * self._rng.standard_normal(), low), high)

    def chance(self, probability: float) -> bool:
        """Return true with this probability."""
        return bool(self._rng.random() < probability)

    def sign(self) -> float:
        """Draw +1 or -1."""
        return 1.0 if self._rng.random() < 0.5 else -1.0

    def order(self, pose: Pose) -> tuple[Arm, Arm, Leg, Leg]:
        """Pick the side that leads: lead arm, trail arm, lead leg, trail leg."""
        lead = int(self._rng.random() < 0.5)
        return pose.arms[lead], pose.arms[1 - lead], pose.legs[lead], pose.legs[1 - lead]


def relaxed_arm(dice: Dice) -> Arm:
    """Let an arm hang; the hand is open, half closed or a fist."""
    arm = Arm(
        elevation=abs(dice.around(14, 9)) + 6,
        azimuth=dice.around(15, 30, -40, 90),
        twist=dice.around(0, 14),
        elbow=abs(dice.around(16, 14)) + 3,
        pronation=dice.around(0, 25, -60, 60),
        wrist=dice.around(0, 12, -35, 35),
        curl=0.0,
        spread=dice.around(-3, 4, -8, 8),
    )
    hand = dice.within(0, 1)
    if hand < 0.4:
        arm.curl = dice.within(0, 12)
    elif hand < 0.7:
        arm.curl = dice.within(12, 45)
    else:
        arm.curl, arm.spread = dice.within(60, 80), -6.0
    return arm


def relaxed_leg(dice: Dice) -> Leg:
    """Stand on a leg, nearly straight."""
    return Leg(
        flexion=dice.around(3, 5),
        abduction=dice.around(5, 4, -1, 16),
        twist=dice.around(5, 7),
        knee=abs(dice.around(3, 6)),
        ankle=dice.around(0, 5),
    )


def standing(dice: Dice, family: str) -> Pose:
    """Stand at ease; the other families start from here."""
    return Pose(
        family,
        arms=(relaxed_arm(dice), relaxed_arm(dice)),
        legs=(relaxed_leg(dice), relaxed_leg(dice)),
        pitch=dice.around(0, 3),
        bend=dice.around(4, 6),
        lean=dice.around(0, 4),
        turn=dice.around(0, 8),
        nod=dice.around(0, 10, -30, 30),
        tilt=dice.around(0, 6),
        look=dice.around(0, 22, -60, 60),
    )


def gesture(dice: Dice, *arms: Arm) -> None:
    """Raise the given arms freely, half of the time symmetrically."""
    together = dice.chance(0.5)
    elevation, azimuth = dice.within(15, 165), dice.within(-15, 95)
    elbow = dice.within(0, 1) ** 1.5 * 125
    for arm in arms:
        if not together:
            elevation, azimuth = dice.within(15, 165), dice.within(-15, 95)
            elbow = dice.within(0, 1) ** 1.5 * 125
        arm.elevation = min(max(elevation + dice.around(0, 7), 12), 170)
        # Nobody's upper arm points straight up and far forwards or backwards at once.
        arm.azimuth = azimuth if elevation < 125 else min(max(azimuth, -5), 70)
        arm.elbow = elbow + abs(dice.around(0, 5))
        arm.twist = dice.around(0, 28, -55, 55)


def sometimes_gesture(dice: Dice, pose: Pose, probability: float = 0.45) -> None:
    """Raise one arm or both, with this probability."""
    if dice.chance(probability):
        gesture(dice, *(pose.arms if dice.chance(0.7) else dice.order(pose)[:1]))


def sway(dice: Dice, pose: Pose, amount: float) -> None:
    """Bend, lean and turn the trunk at random."""
    pose.bend = dice.around(5, 13 * amount, -20, 40)
    pose.lean = dice.around(0, 11 * amount, -25, 25)
    pose.turn = dice.around(0, 18 * amount, -40, 40)
