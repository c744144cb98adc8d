"""Families of poses of sports and play: throws, kicks, climbing, upside down, in mid-air."""

from __future__ import annotations

from ltenet.bodies.human_angles import Arm, Pose, Reach
from ltenet.bodies.human_moves import Dice, gesture, sometimes_gesture, standing, sway


def sport(dice: Dice) -> Pose:
    """Throw, punch, swing a bat, draw a bow or dive for a ball; the trunk turns with it."""
    pose = standing(dice, "sport")
    lead_arm, trail_arm, lead, trail = dice.order(pose)
    towards = 1.0 if lead is pose.legs[0] else -1.0
    lead.flexion, lead.knee = dice.within(10, 60), dice.within(5, 70)
    trail.flexion, trail.knee = dice.within(-28, 10), dice.within(5, 50)
    for leg in (lead, trail):
        leg.abduction, leg.twist = dice.within(4, 28), dice.within(0, 25)
    pose.turn, pose.bend = -towards * dice.within(0, 42), dice.around(6, 10)
    pose.look, pose.pitch = -0.7 * pose.turn + dice.around(0, 8), dice.within(-5, 25)
    style = dice.within(0, 1)
    if style < 0.3:  # throw: one arm cocked behind, the other ahead
        _aim(trail_arm, dice, (80, 140), (-25, 15), (40, 115))
        trail_arm.twist = dice.within(-60, 0)
        _aim(lead_arm, dice, (50, 110), (50, 95), (0, 50))
    elif style < 0.6:  # punch: one arm straight, the other guards
        _aim(lead_arm, dice, (70, 110), (70, 100), (0, 20))
        _aim(trail_arm, dice, (20, 60), (40, 80), (95, 125))
        for arm in pose.arms:
            arm.curl, arm.spread = dice.within(60, 80), -6.0
    elif style < 0.8:  # bat, club or racket: the hands meet on one side
        side, height, ahead = dice.within(0.0, 1.1), dice.within(-1.2, 0.8), dice.within(0.9, 1.5)
        for arm, outwards in ((lead_arm, side), (trail_arm, -side)):
            offset = (outwards + dice.within(0.12, 0.3), height, ahead)
            arm.reach = Reach("spine01", offset, dice.within(10, 70))
            arm.curl = dice.within(55, 75)
    else:  # bow: one arm straight to the side, the other drawn to the chin
        _aim(lead_arm, dice, (80, 100), (-10, 30), (0, 12))
        _aim(trail_arm, dice, (75, 100), (-15, 40), (110, 128))
    return pose


def _aim(
    arm: Arm,
    dice: Dice,
    elevation: tuple[float, float],
    azimuth: tuple[float, float],
    elbow: tuple[float, float],
) -> None:
    arm.elevation, arm.azimuth = dice.within(*elevation), dice.within(*azimuth)
    arm.elbow, arm.twist = dice.within(*elbow), dice.around(0, 12)


def kick(dice: Dice) -> Pose:
    """Lift one leg forwards, sideways or back, sometimes beside the head."""
    pose = standing(dice, "kick")
    _, _, lead, trail = dice.order(pose)
    trail.knee = dice.within(0, 20)
    style = dice.within(0, 1)
    if style < 0.45:
        lead.flexion, lead.knee = dice.within(15, 100), dice.within(0, 100)
        lead.abduction, pose.pitch = dice.within(0, 35), dice.within(-18, 8)
        trail.flexion += pose.pitch
    elif style < 0.6:  # roundhouse: high to the side, the trunk away from it
        lead.flexion, lead.knee = dice.within(20, 75), dice.within(0, 80)
        lead.abduction, lead.twist = dice.within(35, 65), dice.within(-20, 25)
        pose.roll = dice.within(5, 35) * (-1 if lead is pose.legs[0] else 1)
        trail.abduction += abs(pose.roll)
        trail.flexion += pose.pitch
    elif style < 0.7:  # the leg goes back, the trunk forward
        lead.flexion, lead.knee = dice.within(-30, -5), dice.within(0, 100)
        pose.pitch = dice.within(0, 50)
        trail.flexion += pose.pitch
    else:  # as high as the head, the trunk away from it
        lead.flexion, lead.knee = dice.within(100, 150), dice.within(0, 35)
        lead.abduction, lead.twist = dice.within(10, 35), dice.within(0, 25)
        pose.roll = dice.within(0, 30) * (-1 if lead is pose.legs[0] else 1)
        pose.pitch, trail.knee = dice.within(-35, 5), dice.within(0, 90)
        trail.abduction += abs(pose.roll)
        trail.flexion += pose.pitch + 0.6 * trail.knee
    lead.ankle = dice.around(-10, 12)
    sometimes_gesture(dice, pose, 0.6)
    return pose


def climb(dice: Dice) -> Pose:
    """Climb: hands at different heights above the head, knees drawn up by turns."""
    pose = standing(dice, "climb")
    for arm in pose.arms:
        _aim(arm, dice, (85, 168), (15, 80), (0, 100))
        arm.curl = dice.within(30, 75)
    for leg in pose.legs:
        up = dice.within(0, 1)
        leg.flexion, leg.knee = 100 * up + dice.around(0, 5), 110 * up + dice.within(0, 15)
        leg.abduction, leg.twist = dice.within(4, 40), dice.within(0, 35)
        leg.ankle = dice.around(-5, 12)
    sway(dice, pose, 0.8)
    pose.pitch, pose.nod = dice.around(0, 10), dice.around(-15, 12, -40, 15)
    return pose


def inverted(dice: Dice) -> Pose:
    """Stand on the hands or the head, turn a cartwheel, bridge over backwards."""
    pose = standing(dice, "inverted")
    style = dice.within(0, 1)
    # Tipped forwards or over one side: the front shows backwards or forwards.
    if dice.chance(0.6):
        pose.pitch = 180 + dice.around(0, 12, -35, 35)
    else:
        pose.roll = 180 + dice.around(0, 12, -35, 35)
    pose.bend, pose.nod = dice.around(-6, 10), dice.within(-40, 0)
    split = dice.chance(0.4)
    for sign, leg in zip((1, -1), pose.legs, strict=True):
        leg.flexion = sign * dice.within(5, 60) if split else dice.around(0, 15)
        leg.knee, leg.abduction = abs(dice.around(5, 25, -90, 90)), dice.within(0, 20)
        leg.ankle = dice.within(-45, 0)
    for arm in pose.arms:  # handstand
        _aim(arm, dice, (150, 170), (0, 60), (0, 20))
        arm.wrist, arm.curl = dice.within(-70, -30), dice.within(0, 12)
        if style > 0.8:  # headstand
            _aim(arm, dice, (60, 120), (40, 90), (60, 110))
    if style < 0.2:  # cartwheel
        for leg in pose.legs:
            leg.abduction, leg.flexion = dice.within(30, 48), dice.around(0, 8)
    elif style < 0.35:  # bridge
        pose.roll, pose.pitch = 0.0, -90 + dice.around(0, 12)
        pose.bend = -dice.within(15, 30)
        for leg in pose.legs:
            leg.flexion, leg.knee = dice.within(-28, 5), dice.within(60, 105)
    return pose


def airborne(dice: Dice) -> Pose:
    """Fall, dive or float in any direction."""
    pose = standing(dice, "airborne")
    pose.pitch, pose.roll = dice.within(-180, 180), dice.within(-60, 60)
    together = dice.chance(0.4)
    flexion, knee = dice.within(-20, 90), dice.within(0, 100)
    for leg in pose.legs:
        if not together:
            flexion, knee = dice.within(-25, 100), dice.within(0, 110)
        leg.flexion, leg.knee = flexion + dice.around(0, 5), knee
        leg.abduction, leg.ankle = dice.within(0, 40), dice.within(-40, 10)
    sometimes_gesture(dice, pose, 0.9)
    sway(dice, pose, 1.0)
    return pose


def all_fours(dice: Dice) -> Pose:
    """Hold a plank, walk on hands and feet, or push the hips up; heading +z."""
    pose = standing(dice, "fours")
    # Hips 0: a straight plank; 1: folded, with the hands and feet on the floor.
    hips = dice.within(0, 1)
    pose.pitch = 72 + 45 * hips + dice.around(0, 6)
    pose.bend, pose.nod = dice.around(0, 8, -15, 25), dice.within(-35, 5)
    pose.look = dice.around(0, 15)
    walking = dice.chance(0.5)
    for leg in pose.legs:
        leg.flexion = 75 * hips + dice.around(0, 16 if walking else 4)
        leg.knee = dice.within(0, 70 * hips) if walking else abs(dice.around(4, 6))
        leg.ankle, leg.toes = dice.within(0, 20), dice.within(10, 40)
        leg.abduction = dice.within(0, 14)
    for arm in pose.arms:
        arm.elevation = 84 + 50 * hips + pose.bend + dice.around(0, 12 if walking else 4)
        arm.azimuth, arm.elbow = dice.within(72, 95), dice.within(2, 30)
        if dice.chance(0.2):  # on the way down
            arm.elbow, arm.elevation = dice.within(60, 110), dice.within(30, 60)
        arm.wrist, arm.curl = dice.within(-75, -45), dice.within(0, 10)
    return pose


def stretch(dice: Dice) -> Pose:
    """Stretch one side, reach for a foot, or balance on one leg like a dancer."""
    pose = standing(dice, "stretch")
    lead_arm, trail_arm, lead, trail = dice.order(pose)
    towards = 1.0 if lead is pose.legs[0] else -1.0
    style = dice.within(0, 1)
    if style < 0.4:  # to the side, one arm over the head
        pose.lean = towards * dice.within(15, 40)
        pose.tilt = 0.4 * pose.lean
        _aim(trail_arm, dice, (140, 170), (0, 40), (5, 50))
        for leg in (lead, trail):
            leg.abduction = dice.within(5, 35)
    elif style < 0.7:  # balance, the trunk level and one leg back
        pose.pitch = dice.within(30, 85)
        lead.flexion, lead.knee = dice.within(-28, 5), dice.within(0, 60)
        trail.flexion, trail.knee = pose.pitch, dice.within(0, 15)
        gesture(dice, lead_arm, trail_arm)
    else:  # one leg high to the side or ahead
        lead.flexion, lead.knee = dice.within(40, 145), dice.within(0, 30)
        lead.abduction, lead.twist = dice.within(10, 45), dice.within(0, 40)
        pose.lean = -towards * dice.within(0, 25)
        gesture(dice, lead_arm, trail_arm)
    pose.turn = dice.around(0, 15, -40, 40)
    return pose
