"""Joint angles of a human: what a pose is, before anybody takes it.

Angles are degrees, chosen so that zero is a soldier at attention: arms hanging, legs straight,
facing +z.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Reach(NamedTuple):
    """Where the end of a limb, wrist or ankle, should be, relative to the person at rest.

    Attributes
    ----------
    bone
        Its joint is the origin; ``.same`` and ``.other`` end the name of a paired bone.
    offset
        (outwards, up, forwards) from there, in lengths of the forearm or the lower leg.
    swivel
        Turns the limb about the line from its root to its end: the elbow from 0, down, to 90,
        outwards; the knee from 0, forwards, to 90, outwards.
    """

    bone: str
    offset: tuple[float, float, float]
    swivel: float


@dataclass
class Arm:
    """One arm.

    Attributes
    ----------
    elevation, azimuth
        Direction of the upper arm in the frame of the chest: 0 hanging, 90 horizontal, 180 up;
        azimuth 0 sideways, 90 forwards, below 0 backwards.
    twist
        About the upper arm; positive turns the forearm of a hanging arm outwards.
    elbow, pronation, wrist
        Flexion of the elbow, turn of the forearm, flexion of the wrist.
    curl, spread
        Flexion of the fingers per joint, and how far they fan out more than at rest, each from
        the next; -8 puts them side by side.
    reach
        If given, replaces elevation, azimuth, twist and elbow.
    """

    elevation: float
    azimuth: float
    twist: float
    elbow: float
    pronation: float
    wrist: float
    curl: float
    spread: float
    reach: Reach | None = None


@dataclass
class Leg:
    """One leg: hip flexion (forwards), abduction (outwards), outward twist, knee, ankle, toes.

    Positive ankles lift the foot towards the shin, positive toes point up. A `reach`, if given,
    replaces flexion, abduction, twist and knee.
    """

    flexion: float
    abduction: float
    twist: float
    knee: float
    ankle: float
    toes: float = 0.0
    reach: Reach | None = None


@dataclass
class Pose:
    """Angles of a whole body, to be amended while a pose is being made up.

    Attributes
    ----------
    family
        Name of the pose family.
    arms, legs
        Left and right.
    pitch, roll
        Of the pelvis in the world: forwards, and to the body's left.
    bend, lean, turn
        Of the trunk above it: forwards, to the left, towards the left.
    nod, tilt, look
        The same for head and neck.
    """

    family: str
    arms: tuple[Arm, Arm]
    legs: tuple[Leg, Leg]
    pitch: float = 0.0
    roll: float = 0.0
    bend: float = 0.0
    lean: float = 0.0
    turn: float = 0.0
    nod: float = 0.0
    tilt: float = 0.0
    look: float = 0.0
