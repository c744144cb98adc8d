"""Human builds: whom to draw, and proportions beyond the range of the phenotype.

A build is a phenotype and, on top of it, a scale for each segment of the body: length along the
bone, width and depth across it. Scales reach what no phenotype does: toddlers' heads, the shoulders
of a brute, the hands of a cartoon, the legs of an ape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ltenet.bodies.human_moves import Dice

#: Segments of the body, parents first; both sides of a paired segment share their scale.
SEGMENTS = (
    "pelvis", "waist", "chest", "shoulder", "neck", "head", "upperarm", "forearm", "hand", "thigh",
    "shank", "foot",
)  # fmt: skip
_ARM, _LEG = ("upperarm", "forearm"), ("thigh", "shank")
_LIMBS = (*_ARM, *_LEG)


@dataclass(frozen=True)
class Phenotype:
    """What a body looks like at rest; each value in [0, 1], muscle and weight up to 1.3.

    Attributes
    ----------
    gender
        0 male, 1 female.
    age
        0.16 three years, 0.42 eleven, 0.67 grown up, 1 very old; younger is not in the asset.
    muscle, weight, height, proportions
        From least to most (for ``proportions`` from ideal to uncommon).
    """

    gender: float
    age: float
    muscle: float
    weight: float
    height: float
    proportions: float


@dataclass(frozen=True)
class HumanBuild:
    """One person before any pose.

    Attributes
    ----------
    name
        Which of `BUILDS`.
    phenotype
        The person as the body model knows it.
    scales
        (length, width, depth) by segment; those left out are 1.
    """

    name: str
    phenotype: Phenotype
    scales: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


def draw_phenotype(rng: np.random.Generator) -> Phenotype:
    """Draw an ordinary person: mostly adults, some children from three years, some old people."""
    dice = Dice(rng)
    stage = dice.within(0, 1)
    if stage < 0.14:
        age = dice.within(0.16, 0.6)
    else:
        age = dice.within(0.6, 0.85) if stage < 0.82 else dice.within(0.85, 1.0)
    return Phenotype(
        # Mostly one or the other, sometimes in between.
        gender=float(rng.beta(0.35, 0.35)),
        age=age,
        muscle=float(rng.beta(1.6, 1.6)),
        weight=1.3 * float(rng.beta(1.9, 1.3)),
        # anny's scale reaches far beyond real heights on both ends.
        height=float(rng.beta(9, 14)),
        proportions=float(rng.uniform(0.2, 0.9)),
    )


def draw_build(rng: np.random.Generator) -> HumanBuild:
    """Draw a build, by the shares in `BUILDS`."""
    drawn = np.searchsorted(_CUMULATIVE, rng.random() * _CUMULATIVE[-1], side="right")
    name = _NAMES[int(drawn)]
    person, scales, dice = draw_phenotype(rng), _Scales(), Dice(rng)
    changes, jitter = BUILDS[name][0](dice, scales)
    values = person.__dict__ | changes
    scales.jitter(dice, jitter)
    return HumanBuild(name, Phenotype(**values), scales.values)


class _Scales:
    """Scales by segment, multiplied up while a build is being made."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[float, float, float]] = {}

    def times(self, *segments: str, length: float = 1, width: float = 1, depth: float = 0) -> None:
        """Multiply the scales of some segments; without a depth it follows the width."""
        for segment in segments:
            old = self.values.get(segment, (1.0, 1.0, 1.0))
            self.values[segment] = (old[0] * length, old[1] * width, old[2] * (depth or width))

    def jitter(self, dice: Dice, deviation: float) -> None:
        """Vary every segment at random; the deviation is that of the logarithm."""
        for segment in SEGMENTS:
            length, width, depth = (
                float(np.exp(dice.around(0, deviation, -0.6, 0.6))) for _ in range(3)
            )
            # Limbs stay about as deep as they are wide.
            flat = segment in ("pelvis", "waist", "chest", "head", "foot")
            self.times(segment, length=length, width=width, depth=depth if flat else width)


_Changes = tuple[dict[str, float], float]  # to the phenotype, and the jitter of the segments


def _ordinary(dice: Dice, scales: _Scales) -> _Changes:
    return {}, 0.02


def _varied(dice: Dice, scales: _Scales) -> _Changes:
    return {}, 0.09


def _muscular(dice: Dice, scales: _Scales) -> _Changes:
    much = dice.within(0, 1)
    scales.times(*_LIMBS, width=1 + 0.16 * much * dice.within(0, 1))
    scales.times("upperarm", width=1 + 0.15 * much)
    scales.times("shoulder", length=1 + 0.15 * much, width=1 + 0.15 * much)
    scales.times("chest", width=1 + 0.12 * much, depth=1 + 0.12 * much)
    scales.times("neck", width=1 + 0.2 * much * dice.within(0, 1))
    scales.times("waist", width=dice.within(0.88, 1.02))
    gender = dice.within(0, 0.15) if dice.chance(0.8) else dice.within(0.6, 1)
    changes = {"gender": gender, "age": dice.within(0.62, 0.8), "muscle": dice.within(0.85, 1.3)}
    return changes | {"weight": dice.within(0.4, 1.05), "proportions": dice.within(0, 0.6)}, 0.03


def _heavy(dice: Dice, scales: _Scales) -> _Changes:
    belly = dice.within(1, 1.35)
    scales.times("waist", width=0.5 + 0.5 * belly, depth=belly)
    return {"weight": dice.within(1.0, 1.35), "age": dice.within(0.5, 0.95)}, 0.04


def _thin(dice: Dice, scales: _Scales) -> _Changes:
    scales.times(*_LIMBS, width=dice.within(0.78, 1))
    scales.times("waist", "chest", width=dice.within(0.88, 1), depth=dice.within(0.85, 1))
    return {"weight": dice.within(0, 0.25), "muscle": dice.within(0, 0.4)}, 0.03


def _child(dice: Dice, scales: _Scales) -> _Changes:
    return {"age": dice.within(0.16, 0.42)}, 0.04


def _toddler(dice: Dice, scales: _Scales) -> _Changes:
    young = dice.within(0, 1)
    scales.times("head", length=1 + 0.3 * young, width=1 + 0.3 * young)
    scales.times(*_LEG, length=1 - 0.3 * young, width=1 + 0.1 * young)
    scales.times(*_ARM, length=1 - 0.2 * young, width=1 + 0.1 * young)
    scales.times("neck", length=1 - 0.3 * young)
    return {"age": dice.within(0.16, 0.22), "weight": dice.within(0.5, 1.1)}, 0.04


def _cartoon(dice: Dice, scales: _Scales) -> _Changes:
    for segment, low, high in (("head", 1.2, 2.0), ("hand", 0.95, 1.7), ("foot", 0.95, 1.6)):
        size = dice.within(low, high)
        scales.times(segment, length=size, width=size)
    scales.times(*_LEG, length=dice.within(0.55, 1.1), width=dice.within(0.65, 1.15))
    scales.times(*_ARM, length=dice.within(0.7, 1.15), width=dice.within(0.65, 1.15))
    scales.times("waist", "chest", length=dice.within(0.75, 1.1), width=dice.within(0.8, 1.1))
    return {"age": dice.within(0.3, 0.8)}, 0.06


def _lanky(dice: Dice, scales: _Scales) -> _Changes:
    scales.times(*_LEG, length=dice.within(1.1, 1.5), width=dice.within(0.7, 1))
    scales.times(*_ARM, length=dice.within(1.1, 1.5), width=dice.within(0.7, 1))
    scales.times("neck", length=dice.within(1, 1.6))
    size = dice.within(0.8, 1.2)
    scales.times("head", length=size, width=size)
    scales.times("hand", "foot", length=dice.within(1, 1.35), width=dice.within(0.9, 1.1))
    return {"weight": dice.within(0, 0.6)}, 0.05


def _brute(dice: Dice, scales: _Scales) -> _Changes:
    scales.times("shoulder", length=dice.within(1.1, 1.5), width=dice.within(1.1, 1.4))
    scales.times("chest", width=dice.within(1.15, 1.45), depth=dice.within(1.05, 1.35))
    scales.times(*_ARM, length=dice.within(0.95, 1.35), width=dice.within(1.1, 1.6))
    scales.times("forearm", width=dice.within(1, 1.25))
    size = dice.within(1.1, 1.6)
    scales.times("hand", length=size, width=size)
    scales.times(*_LEG, length=dice.within(0.6, 0.95), width=dice.within(0.95, 1.3))
    scales.times("waist", width=dice.within(0.85, 1.2), depth=dice.within(0.9, 1.2))
    size = dice.within(0.65, 1.0)
    scales.times("head", length=size, width=size)
    scales.times("neck", length=dice.within(0.6, 1), width=dice.within(1.1, 1.5))
    size = dice.within(1, 1.4)
    scales.times("foot", length=size, width=size)
    return {"muscle": dice.within(0.5, 1.2), "gender": dice.within(0, 0.4)}, 0.05


def _ape(dice: Dice, scales: _Scales) -> _Changes:
    scales.times(*_LEG, length=dice.within(0.5, 0.85), width=dice.within(0.9, 1.25))
    scales.times(*_ARM, length=dice.within(1.0, 1.4), width=dice.within(1.0, 1.5))
    scales.times("shoulder", length=dice.within(1.0, 1.4), width=dice.within(1.0, 1.4))
    scales.times("chest", width=dice.within(1.05, 1.45), depth=dice.within(1.05, 1.45))
    scales.times("waist", length=dice.within(0.75, 1.05))
    scales.times("waist", width=dice.within(1.0, 1.45), depth=dice.within(1.0, 1.45))
    scales.times("neck", length=dice.within(0.3, 0.8), width=dice.within(1.1, 1.7))
    # A crest on the skull, and a muzzle.
    long, wide = dice.within(0.95, 1.35), dice.within(0.9, 1.2)
    scales.times("head", length=long, width=wide, depth=wide * dice.within(1.0, 1.35))
    scales.times("hand", length=dice.within(1.0, 1.5), width=dice.within(0.95, 1.4))
    scales.times("foot", length=dice.within(0.95, 1.4), width=dice.within(0.95, 1.4))
    return {"muscle": dice.within(0.4, 1.2), "age": dice.within(0.5, 0.85)}, 0.06


def _any(dice: Dice, scales: _Scales) -> _Changes:
    return {}, 0.2


BUILDS: Mapping[str, tuple[Callable[[Dice, _Scales], _Changes], float]] = {
    "ordinary": (_ordinary, 0.34),
    "varied": (_varied, 0.14),
    "muscular": (_muscular, 0.14),
    "heavy": (_heavy, 0.07),
    "thin": (_thin, 0.05),
    "child": (_child, 0.04),
    "toddler": (_toddler, 0.03),
    "cartoon": (_cartoon, 0.04),
    "lanky": (_lanky, 0.03),
    "brute": (_brute, 0.04),
    "ape": (_ape, 0.06),
    "any": (_any, 0.02),
}
_NAMES = list(BUILDS)
_CUMULATIVE = np.cumsum([share for _, share in BUILDS.values()])
