"""Random human poses: the families, their shares, and the draw.

A pose is a set of joint angles (`ltenet.data.human_angles`), drawn without looking at the person
who will take it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ltenet.data import human_floor_poses as low
from ltenet.data import human_upright_poses as upright
from ltenet.data.human_angles import Pose
from ltenet.data.human_moves import Dice

_Family = Callable[[Dice], Pose]

FAMILIES: Mapping[str, tuple[_Family, float]] = {
    "stand": (upright.stand, 0.12),
    "walk": (upright.walk, 0.06),
    "run": (upright.run, 0.04),
    "arms": (upright.arms, 0.09),
    "overhead": (upright.overhead, 0.03),
    "crossed": (upright.crossed, 0.04),
    "hips": (upright.hips, 0.03),
    "touch": (upright.touch, 0.04),
    "sit": (low.sit, 0.05),
    "floor": (low.floor_sit, 0.04),
    "squat": (low.squat, 0.04),
    "bend": (upright.bend, 0.06),
    "kick": (upright.kick, 0.04),
    "lunge": (upright.lunge, 0.04),
    "stance": (upright.stance, 0.05),
    "twist": (upright.twisted, 0.03),
    "jump": (upright.jump, 0.03),
    "dance": (upright.dance, 0.04),
    "kneel": (low.kneel, 0.03),
    "crawl": (low.crawl, 0.02),
    "lie": (low.lie, 0.03),
    "free": (upright.free, 0.05),
}
_NAMES = list(FAMILIES)
_CUMULATIVE = np.cumsum([share for _, share in FAMILIES.values()])


def draw_pose(rng: np.random.Generator, kind: str | None = None) -> Pose:
    """Draw a pose of the given family, or of a random one by the shares in `FAMILIES`."""
    if kind is None:
        drawn = np.searchsorted(_CUMULATIVE, rng.random() * _CUMULATIVE[-1], side="right")
        kind = _NAMES[int(drawn)]
    return FAMILIES[kind][0](Dice(rng))
