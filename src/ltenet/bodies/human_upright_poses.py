"""Families of poses on the feet.

"Lead" and "trail" are the two sides of the body in random order.
"""

from __future__ import annotations

from ltenet.bodies.human_angles import Arm, Pose, Reach
from ltenet.bodies.human_moves import Dice, gesture, sometimes_gesture, standing, sway


def scan(dice: Dice) -> Pose:
    """Stand still for a scanner or an animator: A-pose, T-pose or arms by the sides."""
    pose = standing(dice, "scan")
    style, still = dice.within(0, 1), dice.within(0, 0.5)
    if style < 0.45:
        elevation = dice.around(40, 12, 15, 75)
    else:
        elevation = dice.around(88, 5) if style < 0.75 else dice.within(8, 20)
    apart, azimuth = dice.around(7, 6, -1, 24), dice.around(3, 7)
    pronation, curl = dice.around(0, 30, -60, 60), dice.within(0, 14)
    elbow = abs(dice.around(4, 6))
    for arm in pose.arms:
        arm.elevation, arm.azimuth = elevation + dice.around(0, 2), azimuth + dice.around(0, 2)
        arm.elbow, arm.twist = elbow + abs(dice.around(0, 2)), dice.around(0, 6)
        arm.pronation, arm.wrist = pronation + dice.around(0, 4), dice.around(0, 6)
        arm.curl = curl
    for leg in pose.legs:
        leg.abduction, leg.flexion = apart + dice.around(0, 1), dice.around(0, 2)
        leg.knee, leg.twist = abs(dice.around(0, 3)), dice.around(5, 5)
    for name in ("pitch", "bend", "lean", "turn", "nod", "tilt", "look"):
        setattr(pose, name, still * getattr(pose, name))
    return pose


def stand(dice: Dice) -> Pose:
    """Stand at ease or at attention."""
    pose = standing(dice, "stand")
    style = dice.within(0, 1)
    if style < 0.25:  # at attention
        for arm in pose.arms:
            arm.elevation, arm.elbow = dice.within(5, 14), dice.within(2, 15)
        for leg in pose.legs:
            leg.abduction = dice.within(-1, 4)
    elif style < 0.5:  # the weight on one leg
        _, _, lead, _ = dice.order(pose)
        lead.flexion, lead.knee = dice.within(5, 22), dice.within(10, 40)
        lead.twist, lead.abduction = dice.within(0, 30), dice.within(2, 16)
        pose.roll = dice.around(0, 4)
    return pose


def walk(dice: Dice) -> Pose:
    """Step out; the arms swing against the legs."""
    pose = standing(dice, "walk")
    lead_arm, trail_arm, lead, trail = dice.order(pose)
    stride = dice.within(0.4, 1.1)
    lead.flexion, trail.flexion = 30 * stride + dice.around(0, 4), -18 * stride + dice.around(0, 4)
    lead.knee, trail.knee = dice.within(2, 20), dice.within(5, 45)
    lead.ankle, trail.ankle = dice.around(5, 6), dice.around(-8, 8)
    trail.toes = dice.within(0, 25)
    _swing_arms(dice, lead_arm, trail_arm, stride, (8, 45))
    pose.turn = (1 if lead is pose.legs[0] else -1) * 10 * stride
    return pose


def run(dice: Dice) -> Pose:
    """Run, elbows bent."""
    pose = standing(dice, "run")
    lead_arm, trail_arm, lead, trail = dice.order(pose)
    stride = dice.within(0.6, 1.2)
    lead.flexion, trail.flexion = 52 * stride + dice.around(0, 5), -20 * stride + dice.around(0, 5)
    lead.knee, trail.knee = dice.within(30, 100), dice.within(10, 90)
    lead.ankle, trail.ankle = dice.around(5, 8), dice.around(-15, 10)
    _swing_arms(dice, lead_arm, trail_arm, 1.3 * stride, (65, 110))
    pose.bend, pose.pitch = dice.within(2, 14), dice.within(0, 12)
    pose.turn = (1 if lead is pose.legs[0] else -1) * 13 * stride
    return pose


def _swing_arms(
    dice: Dice, lead: Arm, trail: Arm, stride: float, elbow: tuple[float, float]
) -> None:
    """Swing the arms against the legs: back on the side of the leading leg."""
    lead.elevation, lead.azimuth = 18 + 18 * stride, dice.within(-68, -40)
    trail.elevation, trail.azimuth = 16 + 24 * stride, dice.within(48, 75)
    for arm in (lead, trail):
        arm.elbow, arm.twist = dice.within(*elbow), dice.around(0, 8)


def arms(dice: Dice) -> Pose:
    """Gesture with one arm or both."""
    pose = standing(dice, "arms")
    gesture(dice, *(pose.arms if dice.chance(0.75) else dice.order(pose)[:1]))
    sway(dice, pose, 0.7)
    return pose


def overhead(dice: Dice) -> Pose:
    """Raise one arm or both above the head."""
    pose = standing(dice, "overhead")
    elevation, azimuth, elbow = dice.within(130, 168), dice.within(0, 60), dice.within(0, 70)
    arms = pose.arms if dice.chance(0.7) else dice.order(pose)[:1]
    for arm in arms:
        arm.elevation = elevation + dice.around(0, 6, -12, 8)
        arm.azimuth = azimuth + dice.around(0, 8)
        arm.elbow, arm.twist = max(elbow + dice.around(0, 8), 2), dice.around(0, 20, -40, 40)
    pose.bend, pose.nod = dice.around(-2, 7), dice.around(-8, 12, -30, 20)
    return pose


def crossed(dice: Dice) -> Pose:
    """Fold the arms in front of the chest, one over the other."""
    pose = standing(dice, "crossed")
    lead, trail, _, _ = dice.order(pose)
    height, ahead = dice.within(-1.0, -0.6), dice.within(0.8, 1.4)
    gap = dice.within(0.3, 0.45)
    for arm, over in ((lead, 1.0), (trail, 0.0)):
        arm.reach = Reach(
            "upperarm01.other",
            (dice.within(0.2, 0.65), height + gap * (over - 0.5), ahead + gap * over),
            dice.around(78, 8),
        )
        arm.wrist, arm.curl = dice.around(0, 10), dice.within(5, 35)
    return pose


def hips(dice: Dice) -> Pose:
    """Put the hands on the hips."""
    pose = standing(dice, "hips")
    for arm in pose.arms if dice.chance(0.7) else dice.order(pose)[:1]:
        arm.reach = Reach(
            "upperleg01.same",
            (dice.within(0.55, 1.2), dice.within(0.35, 0.9), dice.within(-0.1, 0.35)),
            dice.around(100, 12, 60, 130),
        )
        arm.pronation, arm.wrist, arm.curl = (
            dice.around(0, 20),
            dice.around(10, 12),
            dice.within(10, 50),
        )
    sway(dice, pose, 0.4)
    return pose


def touch(dice: Dice) -> Pose:
    """Bring a hand to the head, to the other shoulder or in front of the chest."""
    pose = standing(dice, "touch")
    for arm in pose.arms if dice.chance(0.4) else dice.order(pose)[:1]:
        place = dice.within(0, 1)
        if place < 0.4:
            bring_to_head(dice, arm)
        elif place < 0.6:
            offset = (dice.within(-0.1, 0.4), dice.within(-0.3, 0.2), dice.within(0.5, 0.9))
            arm.reach = Reach("upperarm01.other", offset, dice.within(10, 60))
        else:
            offset = (dice.within(0.0, 0.8), dice.within(-0.8, 0.4), dice.within(1.0, 1.9))
            arm.reach = Reach("spine01", offset, dice.within(0, 60))
    return pose


def bring_to_head(dice: Dice, arm: Arm) -> None:
    """Bring a hand to its side of the head."""
    offset = (dice.within(0.45, 0.9), dice.within(-0.1, 0.9), dice.within(-0.1, 0.7))
    arm.reach = Reach("head", offset, dice.within(30, 110))


def hands(dice: Dice) -> Pose:
    """Bring the hands together: before the chest or belly, behind the back or the head."""
    pose = standing(dice, "hands")
    place, swivel = dice.within(0, 1), dice.within(15, 70)
    outwards = dice.within(0.25, 0.75)  # of the wrists; the fingers meet
    if place < 0.4:  # folded or clapping before the chest
        bone, height, ahead = "spine01", dice.within(-0.7, 0.3), dice.within(1.0, 1.8)
    elif place < 0.65:  # clasped before the belly
        bone, height, ahead = "spine05", dice.within(-0.5, 0.4), dice.within(0.8, 1.4)
    elif place < 0.8:  # behind the back
        bone, height, ahead = "spine05", dice.within(-0.4, 0.4), dice.within(-1.2, -0.75)
        outwards, swivel = dice.within(0.35, 0.8), dice.within(40, 80)
    else:  # behind the head
        bone, height, ahead = "head", dice.within(-0.2, 0.4), dice.within(-0.75, -0.35)
        outwards, swivel = dice.within(0.4, 0.85), dice.within(80, 125)
    gap = dice.around(0, 0.05)
    for sign, arm in zip((1, -1), pose.arms, strict=True):
        offset = (outwards, height + sign * gap, ahead + dice.around(0, 0.02))
        arm.reach = Reach(bone, offset, swivel + dice.around(0, 4))
        arm.pronation, arm.wrist = dice.around(0, 25, -60, 60), dice.around(5, 15)
        arm.curl = dice.within(0, 50)
    sway(dice, pose, 0.4)
    return pose


def bend(dice: Dice) -> Pose:
    """Bend forwards, arms hanging, stretched back or anywhere."""
    pose = standing(dice, "bend")
    pose.pitch, pose.bend = dice.within(10, 90), dice.within(5, 55)
    pose.lean, pose.turn = dice.around(0, 9), dice.around(0, 16, -40, 40)
    pose.nod = dice.around(-10, 14, -35, 20)
    for leg in pose.legs:  # upright while the pelvis pitches
        leg.flexion, leg.knee = pose.pitch + dice.around(0, 5), abs(dice.around(8, 12))
    if dice.chance(0.65):
        for arm in pose.arms:
            hanging = pose.pitch + pose.bend + dice.around(0, 18)
            arm.elevation, arm.azimuth = min(max(hanging, 15), 150), dice.within(70, 95)
    elif dice.chance(0.3):  # arms stretched out behind
        for arm in pose.arms:
            arm.elevation, arm.azimuth = dice.within(20, 60), dice.within(-80, -30)
    else:
        gesture(dice, *pose.arms)
    return pose


def balance(dice: Dice) -> Pose:
    """Stand on one leg, with the foot of the other on its shin, knee or thigh."""
    pose = standing(dice, "balance")
    _, _, lead, trail = dice.order(pose)
    height, ahead = dice.within(-0.4, 0.85), dice.within(-0.15, 0.4)
    # A foot that is not ahead of the leg stays on its own side of it.
    beside = dice.within(0.15, 0.4) if ahead < 0.2 else dice.within(-0.15, 0.35)
    lead.reach = Reach("lowerleg01.other", (beside, height, ahead), dice.within(5, 85))
    lead.ankle, trail.knee = dice.around(-20, 15, -45, 15), dice.within(0, 12)
    sometimes_gesture(dice, pose, 0.8)
    return pose


def lunge(dice: Dice) -> Pose:
    """Lunge forwards or to the side."""
    pose = standing(dice, "lunge")
    _, _, lead, trail = dice.order(pose)
    if dice.chance(0.7):
        lead.flexion, lead.knee = dice.within(40, 90), dice.within(45, 95)
        trail.flexion, trail.knee = dice.within(-28, -5), dice.within(5, 65)
        trail.ankle, trail.toes = dice.within(0, 20), dice.within(0, 30)
        pose.pitch = dice.within(-3, 14)
    else:  # to the side
        lead.flexion, lead.knee = dice.within(40, 75), dice.within(50, 95)
        lead.abduction, lead.twist = dice.within(20, 40), dice.within(15, 35)
        trail.abduction, trail.flexion = dice.within(25, 45), dice.within(0, 20)
        pose.pitch = dice.within(5, 25)
    if dice.chance(0.5):  # the trunk turns to one side
        pose.turn, pose.look = dice.within(-45, 45), dice.within(-60, 60)
    sometimes_gesture(dice, pose, 0.7)
    return pose


def stance(dice: Dice) -> Pose:
    """Get ready to fight: legs apart, elbows bent, mostly fists."""
    pose = standing(dice, "stance")
    _, _, lead, trail = dice.order(pose)
    crouch, step = dice.within(0, 1), dice.around(0, 12)
    for leg, along in ((lead, step), (trail, -step)):
        leg.flexion, leg.knee = (
            8 + 38 * crouch + along,
            10 + 55 * crouch + dice.around(0, 5, -5, 15),
        )
        leg.abduction, leg.twist = dice.within(10, 34), dice.within(5, 30)
        leg.ankle = 12 * crouch
    pose.pitch, pose.bend = 20 * crouch * dice.within(0, 1), dice.around(8, 8)
    pose.turn, pose.lean = dice.around(0, 16, -40, 40), dice.around(0, 8)
    for arm in pose.arms:
        arm.elevation, arm.azimuth = dice.within(15, 100), dice.within(-20, 85)
        arm.elbow, arm.twist = dice.within(40, 125), dice.around(0, 30, -60, 60)
        if dice.chance(0.7):
            arm.curl, arm.spread = dice.within(60, 80), -6.0
    return pose


def twisted(dice: Dice) -> Pose:
    """Turn trunk and head to one side."""
    pose = standing(dice, "twist")
    direction = dice.sign()
    pose.turn, pose.look = direction * dice.within(20, 45), direction * dice.within(0, 60)
    pose.lean, pose.bend = dice.around(0, 10, -25, 25), dice.around(6, 10)
    sometimes_gesture(dice, pose, 0.7)
    return pose


def jump(dice: Dice) -> Pose:
    """Jump, spread like a star or tucked."""
    pose = standing(dice, "jump")
    star = dice.chance(0.55)
    spread, elevation = dice.within(15, 42), dice.within(70, 160)
    for leg in pose.legs:
        leg.abduction = spread + dice.around(0, 4) if star else dice.within(0, 15)
        leg.flexion = dice.around(0, 8) if star else dice.within(25, 95)
        leg.knee = abs(dice.around(5, 10)) if star else dice.within(40, 115)
        leg.ankle = dice.around(-20, 10)
    for arm in pose.arms:
        arm.elevation = elevation + dice.around(0, 6)
        arm.azimuth = dice.around(0, 8) if star else dice.within(10, 70)
        arm.elbow = abs(dice.around(5, 10)) if star else dice.within(5, 80)
    return pose


def dance(dice: Dice) -> Pose:
    """Move everything, one leg lifted and turned out."""
    pose = standing(dice, "dance")
    _, _, lead, trail = dice.order(pose)
    gesture(dice, *pose.arms)
    sway(dice, pose, 1.0)
    lead.flexion, lead.abduction = dice.within(-20, 80), dice.within(5, 45)
    lead.twist, lead.knee, lead.ankle = (
        dice.within(5, 40),
        dice.within(0, 110),
        dice.around(-18, 12),
    )
    trail.twist, trail.abduction = dice.within(0, 25), dice.within(0, 12)
    trail.knee = dice.within(0, 35)
    trail.flexion = 0.5 * trail.knee
    pose.tilt, pose.look = dice.around(0, 10, -20, 20), dice.around(0, 30, -60, 60)
    return pose


def free(dice: Dice) -> Pose:
    """Do anything within the ranges of the joints."""
    pose = standing(dice, "free")
    gesture(dice, *pose.arms)
    sway(dice, pose, 1.0)
    pose.pitch = dice.around(0, 15, -30, 45)
    for leg in pose.legs:
        leg.flexion, leg.knee = dice.within(-25, 90), dice.within(0, 100)
        leg.abduction, leg.twist = dice.within(0, 40), dice.around(6, 12)
        leg.ankle = dice.around(-5, 12)
    pose.look, pose.nod = dice.around(0, 30, -60, 60), dice.around(0, 15, -30, 30)
    return pose
