"""Random human poses: the families, their shares, and the draw.

A pose is a set of joint angles (`ltenet.bodies.human_angles`), drawn without looking at the person
who will take it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ltenet.bodies import human_action_poses as action
from ltenet.bodies import human_floor_poses as low
from ltenet.bodies import human_upright_poses as upright
from ltenet.bodies.human_angles import Pose
from ltenet.bodies.human_moves import Dice

_Family = Callable[[Dice], Pose]

#: Half of all people stand, walk or gesture on their feet, as in most scans.
FAMILIES: Mapping[str, tuple[_Family, float]] = {
    "scan": (upright.scan, 0.10),
    "stand": (upright.stand, 0.07),
    "walk": (upright.walk, 0.07),
    "arms": (upright.arms, 0.06),
    "hips": (upright.hips, 0.03),
    "crossed": (upright.crossed, 0.03),
    "touch": (upright.touch, 0.03),
    "hands": (upright.hands, 0.03),
    "run": (upright.run, 0.03),
    "overhead": (upright.overhead, 0.03),
    "bend": (upright.bend, 0.03),
    "balance": (upright.balance, 0.03),
    "kick": (action.kick, 0.04),
    "lunge": (upright.lunge, 0.03),
    "stance": (upright.stance, 0.03),
    "twist": (upright.twisted, 0.02),
    "jump": (upright.jump, 0.02),
    "dance": (upright.dance, 0.02),
    "free": (upright.free, 0.02),
    "sport": (action.sport, 0.03),
    "stretch": (action.stretch, 0.02),
    "climb": (action.climb, 0.02),
    "inverted": (action.inverted, 0.02),
    "airborne": (action.airborne, 0.02),
    "fours": (action.all_fours, 0.02),
    "crawl": (low.crawl, 0.02),
    "sit": (low.sit, 0.03),
    "floor": (low.floor_sit, 0.02),
    "squat": (low.squat, 0.03),
    "kneel": (low.kneel, 0.02),
    "lie": (low.lie, 0.03),
}
#: Families that some builds prefer, and how often they do.
PREFERRED: Mapping[str, tuple[str, ...]] = {
    "ape": ("floor", "sit", "squat", "touch", "fours", "climb"),
}
_PREFERENCE = 0.5
_NAMES = list(FAMILIES)
_CUMULATIVE = np.cumsum([share for _, share in FAMILIES.values()])


def draw_pose(rng: np.random.Generator, family: str | None = None) -> Pose:
    """Draw a pose of the given family, or of a random one by the shares in `FAMILIES`."""
    if family is None:
        drawn = np.searchsorted(_CUMULATIVE, rng.random() * _CUMULATIVE[-1], side="right")
        family = _NAMES[int(drawn)]
    return FAMILIES[family][0](Dice(rng))


def draw_preferred(rng: np.random.Generator, build: str) -> str | None:
    """Draw one of the families that a build prefers; None where any will do."""
    names = PREFERRED.get(build, ())
    if not names or rng.random() >= _PREFERENCE:
        return None
    return names[int(rng.integers(len(names)))]
