"""What a four-legged animal does, before any skeleton is known.

A posture says how high the hips and shoulders are, how the back bends, where the feet go and what
neck and tail do. Angles are in degrees: pitch lifts the head or swings a leg forwards, yaw turns to
the body's left.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Leg:
    """Goal of one leg.

    Attributes
    ----------
    swing
        Direction of the foot from the hip or shoulder; 0 is below, as at rest.
    reach
        Distance of the foot as a share of the rest distance, or None: the foot is on the ground.
    lift
        Height of a grounded foot above the ground, as a share of the rest distance.
    splay
        Outward shift of the foot as a share of the rest distance.
    cannon
        Pitch of the metapodial bone, relative to rest.
    paw
        Pitch of the paw, relative to rest.
    """

    swing: float = 0.0
    reach: float | None = None
    lift: float = 0.0
    splay: float = 0.0
    cannon: float = 0.0
    paw: float = 0.0


@dataclass(frozen=True)
class Posture:
    """One pose, independent of the skeleton.

    Attributes
    ----------
    hips, shoulders
        Heights as shares of their rest heights.
    pitch
        Pitch of the trunk; None follows from the two heights.
    arch
        Bend of the back: positive is a cat's hump, negative a hollow back.
    bend, twist
        Sideways bend (yaw) and roll of the chest against the hips.
    roll
        Roll of the whole body (lying on the side).
    legs
        Hind left, hind right, fore left, fore right.
    neck
        (pitch, yaw, roll) of the neck, spread over its bones. When the chest pitches, the neck
        makes up for a part of it by itself.
    head
        (pitch, yaw, roll) of the head against the neck.
    tail
        (pitch, yaw) at the root; positive pitch lifts the tail.
    curl
        (pitch, yaw) summed over the rest of the tail.
    jaw
        Opening of the mouth.
    ears
        Pitch of the left and right ear.
    """

    hips: float = 1.0
    shoulders: float = 1.0
    pitch: float | None = None
    arch: float = 0.0
    bend: float = 0.0
    twist: float = 0.0
    roll: float = 0.0
    legs: tuple[Leg, Leg, Leg, Leg] = field(default_factory=lambda: (Leg(), Leg(), Leg(), Leg()))
    neck: tuple[float, float, float] = (0.0, 0.0, 0.0)
    head: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tail: tuple[float, float] = (0.0, 0.0)
    curl: tuple[float, float] = (0.0, 0.0)
    jaw: float = 0.0
    ears: tuple[float, float] = (0.0, 0.0)
