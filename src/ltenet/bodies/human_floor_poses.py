"""Families of poses that are low: sitting, squatting, kneeling, crawling, lying."""

from __future__ import annotations

from ltenet.bodies.human_angles import Pose
from ltenet.bodies.human_moves import Dice, gesture, sometimes_gesture, standing
from ltenet.bodies.human_upright_poses import bring_to_head


def sit(dice: Dice) -> Pose:
    """Sit on a chair, forearms often on the thighs."""
    pose = standing(dice, "sit")
    hip = dice.within(70, 100)
    for leg in pose.legs:
        leg.flexion, leg.knee = (
            hip + dice.around(0, 5),
            min(max(hip + dice.around(-5, 16), 15), 118),
        )
        leg.abduction, leg.twist = dice.within(0, 18), dice.around(5, 6)
    pose.bend, pose.pitch = dice.within(-5, 25), dice.within(-15, 5)
    if dice.chance(0.5):  # forearms on the thighs
        for arm in pose.arms:
            arm.elevation, arm.azimuth = dice.within(20, 50), dice.within(55, 85)
            arm.elbow, arm.twist = dice.within(35, 85), dice.around(0, 10)
    else:
        sometimes_gesture(dice, pose, 0.7)
    return pose


def floor_sit(dice: Dice) -> Pose:
    """Sit on the floor, with the legs forwards, drawn up or crossed."""
    pose = standing(dice, "floor")
    _, _, lead, trail = dice.order(pose)
    pose.pitch, pose.bend = dice.within(-18, 0), dice.within(0, 30)
    style = dice.within(0, 1)
    for leg in pose.legs:
        leg.abduction, leg.twist, leg.ankle = (
            dice.within(0, 22),
            dice.around(8, 8),
            dice.around(-8, 10),
        )
        if style < 0.4:
            leg.flexion, leg.knee = dice.around(82, 6) + pose.pitch, dice.within(0, 25)
        elif style < 0.7:
            leg.flexion, leg.knee = dice.within(95, 115) + pose.pitch, dice.within(60, 110)
    if style >= 0.7:
        for leg, knee, flexion in ((lead, 104, 82), (trail, 118, 76)):
            leg.flexion = flexion + pose.pitch + dice.around(0, 4)
            leg.abduction, leg.twist = dice.within(35, 48), dice.within(58, 76)
            leg.knee, leg.ankle = knee + dice.around(0, 6), dice.around(-15, 8)
    if dice.chance(0.35):  # leaning back on the hands
        pose.pitch -= 10
        for arm in pose.arms:
            arm.elevation, arm.azimuth = dice.within(25, 45), dice.within(-80, -45)
            arm.elbow, arm.wrist = dice.within(2, 20), dice.within(-60, -20)
    else:
        for arm in pose.arms:
            arm.elevation, arm.azimuth = dice.within(20, 55), dice.within(35, 80)
            arm.elbow = dice.within(10, 60)
        sometimes_gesture(dice, pose)
        if dice.chance(0.2):
            for arm in pose.arms if dice.chance(0.4) else dice.order(pose)[:1]:
                bring_to_head(dice, arm)
    return pose


def squat(dice: Dice) -> Pose:
    """Bend the knees, a little or all the way down."""
    pose = standing(dice, "squat")
    depth = dice.within(30, 105)
    for leg in pose.legs:
        leg.flexion, leg.knee = depth + dice.around(0, 3), depth * dice.within(1.02, 1.15)
        leg.abduction, leg.twist = dice.within(6, 24), dice.within(8, 24)
        leg.ankle = 0.2 * depth
    pose.pitch, pose.bend = depth * dice.within(0.15, 0.35), dice.within(5, 28)
    pose.nod = -0.4 * pose.pitch + dice.around(0, 8)
    for arm in pose.arms:
        arm.elevation, arm.azimuth = pose.pitch + dice.within(20, 70), dice.within(45, 90)
    sometimes_gesture(dice, pose)
    return pose


def kneel(dice: Dice) -> Pose:
    """Kneel on both knees or on one."""
    pose = standing(dice, "kneel")
    _, _, lead, trail = dice.order(pose)
    half = dice.chance(0.5)
    for leg in (lead, trail):
        leg.flexion, leg.knee = dice.within(-8, 25), dice.within(85, 110)
        leg.ankle, leg.abduction = dice.within(-45, 0), dice.within(2, 14)
    if half:  # one foot on the floor in front
        lead.flexion, lead.knee, lead.ankle = (
            dice.within(75, 100),
            dice.within(70, 105),
            dice.around(5, 6),
        )
        trail.flexion = dice.within(-12, 5)
    pose.bend = dice.within(0, 25)
    sometimes_gesture(dice, pose, 0.6)
    return pose


def crawl(dice: Dice) -> Pose:
    """Crawl on hands and knees, heading +z."""
    pose = standing(dice, "crawl")
    pose.pitch, pose.bend = dice.within(72, 92), dice.around(2, 10, -15, 25)
    pose.nod, pose.look = dice.within(-35, 5), dice.around(0, 15)
    for leg in pose.legs:
        leg.flexion = pose.pitch + dice.around(0, 14)
        leg.knee, leg.ankle = 90 + dice.around(0, 8), dice.within(-45, -5)
        leg.abduction = dice.within(0, 12)
    for arm in pose.arms:
        arm.elevation = pose.pitch + pose.bend + dice.around(0, 12)
        arm.azimuth, arm.elbow = dice.within(75, 95), dice.within(2, 30)
        arm.twist, arm.wrist, arm.curl = (
            dice.around(0, 10),
            dice.within(-75, -45),
            dice.within(0, 10),
        )
        arm.pronation = dice.around(10, 10)
    return pose


def lie(dice: Dice) -> Pose:
    """Lie on the back, the front or one side."""
    place = dice.within(0, 1)
    if place < 0.4:
        return _lie_back(dice)
    return _lie_front(dice) if place < 0.7 else _lie_side(dice)


def _lie_back(dice: Dice) -> Pose:
    pose = standing(dice, "lie")
    pose.pitch, pose.bend = -90 + dice.around(0, 4), dice.around(2, 5)
    for leg in pose.legs:
        leg.abduction, leg.twist, leg.ankle = (
            dice.within(0, 22),
            dice.within(5, 35),
            dice.within(-35, 0),
        )
        if dice.chance(0.35):
            leg.flexion, leg.twist = dice.within(25, 80), dice.around(3, 8)
            leg.knee = leg.flexion + dice.within(15, 45)
    if dice.chance(0.4):
        gesture(dice, *pose.arms)
    return pose


def _lie_front(dice: Dice) -> Pose:
    pose = standing(dice, "lie")
    pose.pitch, pose.bend = 90 + dice.around(0, 4), dice.around(-3, 6)
    pose.look, pose.nod = dice.sign() * dice.within(20, 65), dice.around(-12, 8)
    for leg in pose.legs:
        leg.flexion, leg.abduction = dice.around(0, 4), dice.within(0, 20)
        leg.ankle, leg.knee = dice.within(-50, -20), abs(dice.around(3, 8))
        if dice.chance(0.15):
            leg.knee = dice.within(30, 100)
    high = dice.chance(0.5)
    for arm in pose.arms:
        arm.elevation = dice.within(95, 165) if high else dice.within(12, 45)
        arm.azimuth, arm.elbow = (
            dice.within(0, 25),
            dice.within(5, 90) if high else dice.within(2, 30),
        )
    return pose


def _lie_side(dice: Dice) -> Pose:
    pose = standing(dice, "lie")
    pose.roll, pose.bend = dice.sign() * (90 + dice.around(0, 5)), dice.within(0, 35)
    hip = dice.within(5, 85)
    for leg in pose.legs:
        leg.flexion, leg.abduction = hip + dice.around(0, 12), dice.within(2, 10)
        leg.knee, leg.ankle = min(hip * dice.within(0.6, 1.4) + 5, 115), dice.within(-30, 0)
    for arm in pose.arms:
        arm.elevation, arm.azimuth = dice.within(30, 120), dice.within(50, 90)
        arm.elbow = dice.within(10, 110)
    pose.nod, pose.tilt = dice.around(8, 8), dice.around(0, 8)
    return pose
