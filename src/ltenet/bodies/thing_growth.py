"""How the skeleton of a thing grows, at random: trunk, limbs, rings and bores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ltenet.bodies.bones import Floats
from ltenet.bodies.thing_skeletons import (
    SYMMETRIES,
    Bore,
    Ring,
    Skeleton,
    Symmetry,
    keeps_clear,
)
from ltenet.geometry.normals import unit_vectors
from ltenet.geometry.rotations import axis_rotation

_ODDS = (0.6, 0.15, 0.25)
_MIRROR = np.array([-1.0, 1.0, 1.0])
_X, _Y = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
_MOST_LIMBS, _MOST_TRIES = 12, 200


class _Bone(NamedTuple):
    head: Floats
    tail: Floats
    parent: int
    radii: tuple[float, float]
    normal: Floats
    flatness: float
    limb: int


def draw_symmetry(rng: np.random.Generator) -> Symmetry:
    """Draw what kind of symmetry a thing has."""
    return SYMMETRIES[int(np.searchsorted(np.cumsum(_ODDS), rng.random()))]


def draw_skeleton(rng: np.random.Generator, symmetry: Symmetry) -> Skeleton:
    """Draw a skeleton whose limbs keep clear of each other."""
    for _ in range(_MOST_TRIES):
        growth = _Growth(rng, symmetry)
        skeleton = growth.finished()
        if len(skeleton.heads) > 1 and keeps_clear(skeleton, skeleton.heads, skeleton.tails):
            break
    return skeleton


@dataclass
class _Growth:
    """A skeleton while it grows."""

    rng: np.random.Generator
    symmetry: Symmetry
    bones: list[_Bone] = field(default_factory=list)
    partners: list[int] = field(default_factory=list)
    limbs: int = 0

    def finished(self) -> Skeleton:
        """Grow trunk, limbs, rings and bores."""
        self._trunk()
        trunk = len(self.bones)
        groups = int(self.rng.choice([0, 1, 2, 3, 4, 5], p=[0.05, 0.2, 0.25, 0.25, 0.15, 0.1]))
        for _ in range(groups):
            if self.limbs < _MOST_LIMBS:
                self._group(trunk)
        bones = self.bones
        return Skeleton(
            self.symmetry,
            np.array([bone.head for bone in bones]),
            np.array([bone.tail for bone in bones]),
            np.array([bone.parent for bone in bones]),
            np.array([bone.radii for bone in bones]),
            unit_vectors(np.array([bone.normal for bone in bones])),
            np.array([bone.flatness for bone in bones]),
            np.array([bone.limb for bone in bones]),
            np.array(self.partners),
            self._rings(trunk),
            self._bores(trunk),
        )

    def _trunk(self) -> None:
        rng = self.rng
        style = rng.choice(["tube", "blob", "plate", "spindle"], p=[0.3, 0.25, 0.25, 0.2])
        upright = self.symmetry == "radial" or rng.random() < 0.3
        direction = _Y if upright else np.array([0.0, 0.0, 1.0])
        count = int(rng.integers(1, 4)) if style != "blob" else int(rng.integers(1, 3))
        length = rng.uniform(0.5, 1.1) if style != "blob" else rng.uniform(0.15, 0.4)
        width = {"tube": (0.05, 0.13), "blob": (0.17, 0.32), "plate": (0.12, 0.3)}.get(
            str(style), (0.08, 0.2)
        )
        radius = rng.uniform(*width)
        flatness = rng.uniform(2.5, 5.0) if style == "plate" else 1.0 + rng.exponential(0.25)
        profile = np.exp(rng.normal(0.0, 0.25, count + 1))  # (count + 1,)
        if style == "spindle":
            profile *= np.sin(np.linspace(0.5, math.pi - 0.35, count + 1)) + 0.15
        normal = _Y if not upright else np.array([0.0, 0.0, 1.0])
        if self.symmetry == "radial":  # round about y; a plate becomes a disc
            disc = style == "plate"
            length, normal = (0.08 if disc else length), _Y
            flatness = rng.uniform(1.5, 3.0) if disc else 1.0
        if self.symmetry == "bilateral" and rng.random() < 0.3:
            normal = _X
        bend = 0.0 if self.symmetry == "radial" else rng.normal(0.0, 15.0)
        axis = _X if self.symmetry != "free" else unit_vectors(rng.standard_normal(3))
        at = np.zeros(3)
        for number in range(count):
            turn = axis_rotation(axis, bend * number)  # (3, 3)
            tail = at + turn @ direction * length / count
            radii = (radius * profile[number], radius * profile[number + 1])
            bone = _Bone(at, tail, number - 1, radii, turn @ normal, flatness, 0)
            self._add([bone])
            at = tail

    def _group(self, trunk: int) -> None:
        """Grow one limb, a mirrored pair, a ring of arms, or a fan of fingers."""
        rng = self.rng
        bone = int(rng.integers(trunk))
        share = float(rng.choice([0.0, 1.0, rng.random()], p=[0.25, 0.35, 0.4]))
        parent = self.bones[bone]
        start = parent.head + share * (parent.tail - parent.head)
        thick = (1 - share) * parent.radii[0] + share * parent.radii[1]
        if self.symmetry == "radial":
            self._arms(start, bone, thick)
        elif self.symmetry == "free":
            direction = unit_vectors(rng.standard_normal(3))
            self._add(
                self._limb(start, direction, bone, thick, unit_vectors(rng.standard_normal(3)))
            )
        elif rng.random() < 0.2 and self.limbs <= _MOST_LIMBS - 5:
            self._fan(bone, thick)
        elif rng.random() < 0.35:
            angle = rng.uniform(0.0, math.tau)
            direction = np.array([0.0, math.sin(angle), math.cos(angle)])
            self._add(self._limb(start, direction, bone, thick, _X))
        else:
            direction = unit_vectors(rng.standard_normal(3) * (1.0, 1.0, 0.8))
            direction[0] = max(abs(direction[0]), 0.35)
            off = np.array([0.6 * thick * rng.random(), 0.0, 0.0])
            axis = unit_vectors(rng.standard_normal(3))
            limb = self._limb(start + off, unit_vectors(direction), bone, thick, axis)
            self._add(limb)
            self._add(limb, mirrored=True)

    def _limb(
        self, start: Floats, direction: Floats, parent: int, thick: float, axis: Floats
    ) -> list[_Bone]:
        """Bones of one limb from `start` on; `axis` is what it bends about."""
        rng = self.rng
        count = int(rng.integers(1, 4))
        length = thick + rng.uniform(0.2, 0.8)
        plate = rng.random() < 0.3
        radius = length * (rng.uniform(0.15, 0.35) if plate else rng.uniform(0.05, 0.16))
        radius = min(radius, 1.2 * thick + 0.02) if not plate else radius
        ends = radius * np.geomspace(1.0, rng.uniform(0.35, 1.1), count + 1)  # (count + 1,)
        if rng.random() < 0.2:
            ends[-1] *= rng.uniform(1.3, 2.2)  # a club
        flatness = rng.uniform(2.5, 5.0) if plate else 1.0 + rng.exponential(0.15)
        bend = rng.normal(0.0, 25.0)
        normal = axis if rng.random() < 0.5 else np.cross(direction, axis)
        normal = normal - direction * (normal @ direction)
        if float(np.linalg.norm(normal)) < 1e-3:
            normal = np.cross(direction, _X + _Y)
        bones, at = [], start
        self.limbs += 1
        for number in range(count):
            turn = axis_rotation(axis, bend * number)  # (3, 3)
            tail = at + turn @ direction * length / count
            place = parent if number == 0 else len(self.bones) + number - 1
            radii = (float(ends[number]), float(ends[number + 1]))
            bones.append(_Bone(at, tail, place, radii, turn @ normal, flatness, self.limbs))
            at = tail
        return bones

    def _arms(self, start: Floats, parent: int, thick: float) -> None:
        """Equal arms around the y axis; the first one lies in the mirror plane."""
        rng = self.rng
        count = int(rng.integers(3, 7))
        if self.limbs + count > _MOST_LIMBS:
            return
        slope = rng.uniform(-1.2, 1.2)
        direction = np.array([0.0, math.sin(slope), math.cos(slope)])
        limb = self._limb(start, direction, parent, thick, _X)
        first = len(self.bones)
        for arm in range(count):
            turn = axis_rotation(_Y, 360.0 * arm / count)  # (3, 3)
            offset = arm * len(limb)
            moved = [
                bone._replace(
                    head=turn @ (bone.head - start) + start,
                    tail=turn @ (bone.tail - start) + start,
                    normal=turn @ bone.normal,
                    parent=bone.parent if number == 0 else bone.parent + offset,
                    limb=bone.limb + arm,
                )
                for number, bone in enumerate(limb)
            ]
            self.bones += moved
            other = first + (-arm % count) * len(limb)
            self.partners += range(other, other + len(limb))
        self.limbs += count - 1

    def _fan(self, parent: int, thick: float) -> None:
        """Fingers in a plane from the end of a trunk bone, symmetric or all different."""
        rng = self.rng
        bone = self.bones[parent]
        ahead = unit_vectors(bone.tail - bone.head)
        if abs(float(ahead @ _X)) > 0.1:
            return
        count = int(rng.integers(2, 6))
        spread = rng.uniform(25.0, 70.0)
        axis = unit_vectors(np.cross(ahead, _X))
        shift = 0.8 * bone.radii[1] if abs(float(bone.normal @ _X)) < 0.5 else 0.0
        angles = np.linspace(-spread, spread, count)  # (count,)
        for angle in angles[angles > 1.0]:
            turn = axis_rotation(axis, -angle)  # (3, 3)
            direction = turn @ ahead
            side = np.sign(direction[0]) * _X * shift * angle / spread
            finger = self._limb(bone.tail + side, direction, parent, 0.5 * thick, axis)
            self._add(finger)
            self._add(finger, mirrored=True)
        if count % 2:
            self._add(self._limb(bone.tail, ahead, parent, 0.5 * thick, _X))

    def _add(self, bones: list[_Bone], *, mirrored: bool = False) -> None:
        first, count = len(self.bones), len(bones)
        if not mirrored:
            self.bones += bones
            self.partners += range(first, first + count)
            return
        # The limb just added, reflected: its bones stand right before these.
        self.limbs += 1
        for number, bone in enumerate(bones):
            parent = bone.parent if number == 0 else first + number - 1
            self.bones.append(
                bone._replace(
                    head=bone.head * _MIRROR,
                    tail=bone.tail * _MIRROR,
                    normal=bone.normal * _MIRROR,
                    parent=parent,
                    limb=self.limbs,
                )
            )
            self.partners.append(first - count + number)
            self.partners[first - count + number] = first + number

    def _rings(self, trunk: int) -> tuple[Ring, ...]:
        rng = self.rng
        if self.symmetry == "radial" or rng.random() > 0.18:
            return ()
        number = int(rng.integers(trunk))
        bone = self.bones[number]
        middle, thick = 0.5 * (bone.head + bone.tail), float(np.mean(bone.radii))
        angle = rng.uniform(0.0, math.tau)
        outward = np.array([0.0, math.sin(angle), math.cos(angle)])
        radius = rng.uniform(0.14, 0.24)
        axis = _X if rng.random() < 0.6 else np.cross(_X, outward)
        centre = middle + (thick / bone.flatness**0.5 + 0.6 * radius) * outward
        return (Ring(number, centre, axis, radius, rng.uniform(0.03, 0.07)),)

    def _bores(self, trunk: int) -> tuple[Bore, ...]:
        rng = self.rng
        bone = self.bones[int(rng.integers(trunk))]
        chance, width = rng.random(), rng.uniform(0.35, 0.65)
        if self.symmetry == "radial":  # a bowl, open at the top
            top = self.bones[trunk - 1]
            if chance > 0.25 or self.bones[0].radii[0] < 0.12:
                return ()
            depth = 0.6 * (top.tail - self.bones[0].head)
            return (Bore(top.tail - depth, top.tail + 0.5 * _Y, 0.7 * min(top.radii)),)
        middle = 0.5 * (bone.head + bone.tail)
        if bone.flatness > 2.0 and chance < 0.35:  # a window in a plate
            reach = bone.normal * max(bone.radii)
            return (Bore(middle - reach, middle + reach, width * min(bone.radii)),)
        if chance > 0.92 and min(bone.radii) > 0.12:  # a tunnel
            return (Bore(middle - _X, middle + _X, width * min(bone.radii)),)
        return ()
