"""Pose families of four-legged animals: random postures of one kind each.

``animal_kinematics`` turns a posture into rotations for a given skeleton.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ltenet.bodies.animal_postures import Leg, Posture

Generator = np.random.Generator


def _stand(rng: Generator) -> Posture:
    swings = rng.normal(0, 6, 4)
    splays = rng.normal(0.02, 0.025, 4)
    legs = [Leg(s, None, 0.0, p, 0.3 * s) for s, p in zip(swings, splays, strict=True)]
    hips, shoulders = rng.uniform(0.95, 1.0, 2)
    return Posture(
        hips, shoulders, arch=rng.normal(0, 4), legs=(legs[0], legs[1], legs[2], legs[3])
    )


def _gait(rng: Generator, offsets: tuple[float, ...], stride: float, lift: float) -> Posture:
    """Four legs on one clock: swing by a sine, lifted while they come forwards."""
    clock = rng.uniform(0, 2 * np.pi)
    legs = []
    for k, offset in enumerate(offsets):
        phase = clock + offset + rng.normal(0, 0.15)
        swing, raised = stride * np.sin(phase), max(0.0, float(np.cos(phase)))
        # Behind the body the heel comes up; in the air the hind cannon folds forwards, the fore
        # cannon backwards.
        fold = raised * lift * (150.0 if k < 2 else -330.0)
        legs.append(
            Leg(swing, None, lift * raised, rng.normal(0.01, 0.02), 0.6 * swing + fold, 0.6 * fold)
        )
    low = rng.uniform(0.91, 0.97)
    return Posture(
        low, low + rng.uniform(-0.03, 0.02), arch=rng.normal(0, 5), bend=rng.normal(0, 6),
        legs=(legs[0], legs[1], legs[2], legs[3]),
    )  # fmt: skip


def _walk(rng: Generator) -> Posture:
    offsets = (0.0, np.pi, 0.5 * np.pi, 1.5 * np.pi)
    return _gait(rng, offsets, rng.uniform(14, 28), rng.uniform(0.05, 0.2))


def _trot(rng: Generator) -> Posture:
    return _gait(rng, (0.0, np.pi, np.pi, 0.0), rng.uniform(20, 36), rng.uniform(0.15, 0.35))


def _gallop(rng: Generator) -> Posture:
    phase = rng.uniform(0, 2 * np.pi)
    # +1: hind legs forwards, fore legs back, back arched; -1: stretched out. The root brings the
    # two ends of the movement more often than what lies between.
    gather = np.copysign(np.sqrt(abs(np.cos(phase))), np.cos(phase))
    legs = []
    for k in range(4):
        lead = rng.normal(0, 12)
        if k < 2:
            swing, reach = 44 * gather + lead, 0.86 - 0.14 * gather + rng.normal(0, 0.05)
            cannon = 20 * gather + 0.5 * lead + rng.uniform(-15, 25)
        else:
            swing, reach = -48 * gather + lead + 6, 0.88 - 0.12 * gather + rng.normal(0, 0.06)
            cannon = -35 * max(gather, 0.0) + 0.6 * lead - rng.uniform(0, 30)
        legs.append(Leg(swing, float(np.clip(reach, 0.5, 1.04)), 0.0, -0.02, cannon, 0.8 * cannon))
    return Posture(
        pitch=14 * np.sin(phase) + rng.normal(0, 4), arch=20 * gather + rng.normal(0, 5),
        bend=rng.normal(0, 6), legs=(legs[0], legs[1], legs[2], legs[3]),
        neck=(rng.normal(-8, 10), 0.0, 0.0), tail=(rng.uniform(0, 50), 0.0),
    )  # fmt: skip


def _graze(rng: Generator) -> Posture:
    base = _stand(rng) if rng.random() < 0.6 else _walk(rng)
    down = rng.uniform(55, 118)
    return replace(base, neck=(-down, rng.normal(0, 14), 0.0), head=(rng.uniform(-5, 40), 0.0, 0.0))


def _sit(rng: Generator) -> Posture:
    hips = rng.uniform(0.2, 0.36)
    hind = []
    for _ in range(2):
        swing = rng.uniform(14, 38)
        hind.append(Leg(swing, None, 0.02, rng.uniform(0.07, 0.2), rng.uniform(62, 85), 0.0))
    lift = rng.random() < 0.25
    fore = [Leg(rng.normal(2, 7), None, 0.0, rng.normal(-0.02, 0.02)) for _ in range(2)]
    if lift:
        fore[int(rng.integers(2))] = _raised_paw(rng)
    return Posture(
        hips, rng.uniform(0.95, 1.24), arch=rng.uniform(-6, 36), bend=rng.normal(0, 8),
        legs=(hind[0], hind[1], fore[0], fore[1]),
        tail=(rng.uniform(10, 55), rng.normal(0, 30)),
        curl=(rng.uniform(-5, 50), rng.normal(0, 60)),
    )  # fmt: skip


def _raised_paw(rng: Generator) -> Leg:
    reach = rng.uniform(0.45, 0.85)
    fold = -rng.uniform(0, 90)
    return Leg(rng.uniform(5, 75), reach, 0.0, rng.normal(0.0, 0.04), fold + 40, fold)


def _paw(rng: Generator) -> Posture:
    base = _stand(rng) if rng.random() < 0.5 else _walk(rng)
    legs = list(base.legs)
    if rng.random() < 0.75:
        legs[2 + int(rng.integers(2))] = _raised_paw(rng)
    else:
        legs[int(rng.integers(2))] = Leg(
            rng.uniform(-45, 20), rng.uniform(0.6, 0.95), 0.0, rng.uniform(0, 0.4),
            rng.uniform(-10, 40),
        )  # fmt: skip
    return replace(base, legs=(legs[0], legs[1], legs[2], legs[3]))


def _sphinx(rng: Generator) -> Posture:
    hips, shoulders = rng.uniform(0.26, 0.36), rng.uniform(0.34, 0.5)
    hind = [
        Leg(rng.uniform(16, 42), None, 0.02, rng.uniform(0.08, 0.24), rng.uniform(65, 88))
        for _ in range(2)
    ]
    fore = [
        Leg(rng.uniform(38, 60), None, 0.02, rng.normal(0.0, 0.04), rng.uniform(55, 85), 0.0)
        for _ in range(2)
    ]
    return Posture(
        hips, shoulders, arch=rng.uniform(-4, 18), bend=rng.normal(0, 22), twist=rng.normal(0, 6),
        legs=(hind[0], hind[1], fore[0], fore[1]), neck=(rng.uniform(-20, 40), 0.0, 0.0),
        tail=(rng.uniform(-10, 30), rng.normal(0, 35)), curl=(rng.normal(0, 30), rng.normal(0, 80)),
    )  # fmt: skip


def _side(rng: Generator) -> Posture:
    legs = []
    for k in range(4):
        fold = rng.uniform(0, 1)
        cannon = (40 if k < 2 else -30) * fold + rng.normal(0, 10)
        legs.append(
            Leg(rng.normal(10 if k < 2 else 0, 22), 1.0 - 0.4 * fold, 0.0, 0.0, cannon, cannon)
        )
    return Posture(
        pitch=0.0, roll=rng.choice((-1.0, 1.0)) * rng.uniform(60, 100), arch=rng.normal(6, 10),
        twist=rng.normal(0, 15), legs=(legs[0], legs[1], legs[2], legs[3]),
        neck=(rng.normal(-15, 20), 0.0, 0.0), curl=(rng.normal(0, 30), rng.normal(0, 30)),
    )  # fmt: skip


def _rear(rng: Generator) -> Posture:
    pitch = rng.uniform(30, 98)
    hind = [
        Leg(rng.normal(4, 9), None, 0.0, rng.normal(0.02, 0.03), rng.normal(5, 8)) for _ in range(2)
    ]
    fold, side = rng.uniform(0, 1), rng.normal(0, 0.2)
    fore = []
    for _ in range(2):
        own = float(np.clip(fold + rng.normal(0, 0.2), 0, 1))
        cannon = -90 * own * rng.uniform(0.3, 1) + rng.uniform(-10, 40)
        swing = rng.uniform(-15, 75) + side * 40
        fore.append(
            Leg(swing, 0.98 - 0.5 * own, 0.0, rng.normal(-0.01, 0.04), swing * 0.5 + cannon, cannon)
        )
    return Posture(
        rng.uniform(0.8, 1.02), pitch=pitch, arch=rng.normal(4, 12), bend=rng.normal(0, 10),
        twist=rng.normal(0, 8), legs=(hind[0], hind[1], fore[0], fore[1]),
        neck=(rng.uniform(-0.35, 0.35) * pitch, 0.0, 0.0),
        tail=(rng.uniform(-20, 40), rng.normal(0, 20)),
        curl=(rng.normal(20, 40), rng.normal(0, 20)),
    )  # fmt: skip


def _buck(rng: Generator) -> Posture:
    pitch = -rng.uniform(20, 65)
    fore = [Leg(rng.normal(0, 8), None, 0.0, 0.0, rng.normal(0, 6)) for _ in range(2)]
    hind = []
    for _ in range(2):
        fold = rng.uniform(0, 1)
        swing = -rng.uniform(0, 60) * (1 - fold)
        hind.append(
            Leg(swing, 1.0 - 0.45 * fold, 0.0, rng.normal(0, 0.03), 0.8 * swing + 50 * fold, -20.0)
        )
    return Posture(
        1.0, pitch=pitch, arch=rng.normal(6, 10), legs=(hind[0], hind[1], fore[0], fore[1]),
        neck=(rng.uniform(-20, 40), 0.0, 0.0), tail=(rng.uniform(-10, 60), rng.normal(0, 15)),
    )  # fmt: skip


def _bow(rng: Generator) -> Posture:
    fore = [
        Leg(rng.uniform(40, 62), None, 0.0, rng.normal(0.03, 0.03), rng.uniform(50, 80))
        for _ in range(2)
    ]
    hind = [Leg(rng.normal(-4, 6), None, 0.0, rng.normal(0.03, 0.03)) for _ in range(2)]
    return Posture(
        rng.uniform(0.85, 1.0), rng.uniform(0.38, 0.6), arch=-rng.uniform(0, 22),
        legs=(hind[0], hind[1], fore[0], fore[1]), neck=(rng.uniform(0, 55), 0.0, 0.0),
        tail=(rng.uniform(0, 70), rng.normal(0, 20)), curl=(rng.uniform(-10, 60), 0.0),
    )  # fmt: skip


def _hump(rng: Generator) -> Posture:
    close = rng.uniform(0, 10)
    legs = [Leg((close if k < 2 else -close) + rng.normal(0, 3)) for k in range(4)]
    return Posture(
        rng.uniform(0.9, 1.0), rng.uniform(0.9, 1.0), arch=rng.uniform(18, 42),
        legs=(legs[0], legs[1], legs[2], legs[3]), neck=(-rng.uniform(0, 40), 0.0, 0.0),
        tail=(rng.uniform(0, 90), 0.0), curl=(rng.normal(20, 40), 0.0),
    )  # fmt: skip


def _crouch(rng: Generator) -> Posture:
    low = rng.uniform(0.5, 0.85)
    fore_low = low + rng.uniform(-0.1, 0.1)
    stalk = rng.uniform(0, 22)
    clock = rng.uniform(0, 2 * np.pi)
    legs = []
    for k, offset in enumerate((0.0, np.pi, np.pi, 0.0)):
        swing = stalk * np.sin(clock + offset)
        cannon = 60 * (1 - low) + 0.5 * swing if k < 2 else 0.6 * swing + 20 * (1 - fore_low)
        legs.append(Leg(swing + (5 if k < 2 else 0), None, 0.0, rng.normal(0.02, 0.02), cannon))
    return Posture(
        low, fore_low, arch=rng.uniform(-4, 20), bend=rng.normal(0, 8),
        legs=(legs[0], legs[1], legs[2], legs[3]), neck=(rng.uniform(-45, 10), 0.0, 0.0),
        head=(rng.uniform(0, 25), 0.0, 0.0),
    )  # fmt: skip


def _jump(rng: Generator) -> Posture:
    pitch = rng.uniform(-25, 50)
    fold = rng.uniform(0, 1)
    hind, fore = [], []
    for _ in range(2):
        swing = -rng.uniform(5, 60) if rng.random() < 0.7 else rng.uniform(0, 35)
        hind.append(
            Leg(swing, rng.uniform(0.75, 1.05), 0.0, 0.0, 0.8 * swing + rng.uniform(0, 30), -15.0)
        )
        own = float(np.clip(fold + rng.normal(0, 0.15), 0, 1))
        swing = rng.uniform(15, 75)
        fore.append(Leg(swing, 1.02 - 0.5 * own, 0.0, 0.0, 0.7 * swing - 110 * own, -60 * own))
    return Posture(
        pitch=pitch, arch=rng.normal(0, 10), bend=rng.normal(0, 8),
        legs=(hind[0], hind[1], fore[0], fore[1]), neck=(rng.normal(0, 12), 0.0, 0.0),
        tail=(rng.uniform(-10, 60), rng.normal(0, 20)),
    )  # fmt: skip


def _free(rng: Generator) -> Posture:
    legs = []
    for k in range(4):
        # Short and far back or forward at once would fold a leg into the trunk.
        swing = rng.uniform(-50, 55)
        reach = rng.uniform(0.68 + 0.003 * abs(swing), 1.03)
        fold = (1.03 - reach) * (90 if k < 2 else -120)
        legs.append(Leg(swing, reach, 0.0, rng.normal(0.03, 0.08), 0.6 * swing + fold, 0.5 * fold))
    return Posture(
        pitch=rng.normal(0, 22), arch=rng.normal(2, 14), bend=rng.normal(0, 18),
        twist=rng.normal(0, 12),
        legs=(legs[0], legs[1], legs[2], legs[3]), neck=(rng.normal(-5, 25), 0.0, 0.0),
    )  # fmt: skip


FAMILIES: dict[str, Callable[[Generator], Posture]] = {
    "stand": _stand, "walk": _walk, "trot": _trot, "gallop": _gallop, "graze": _graze, "sit": _sit,
    "paw": _paw, "sphinx": _sphinx, "side": _side, "rear": _rear, "buck": _buck, "bow": _bow,
    "hump": _hump, "crouch": _crouch, "jump": _jump, "free": _free,
}  # fmt: skip

STIFF = ("hippo", "elephant", "rhino")  # short of neck, or heavy
_CATTLE = ("cow", "pig", *STIFF)
HOOFED = ("horse", "foal", "giraffe", "camel", "deer", "goat", *_CATTLE)
_LIGHT = {
    "stand": 0.07, "walk": 0.08, "trot": 0.06, "gallop": 0.13, "graze": 0.04, "sit": 0.15,
    "paw": 0.04, "sphinx": 0.06, "side": 0.02, "rear": 0.10, "buck": 0.01, "bow": 0.04,
    "hump": 0.03, "crouch": 0.05, "jump": 0.08, "free": 0.04,
}  # fmt: skip
_RUNNERS = {
    "stand": 0.12, "walk": 0.14, "trot": 0.11, "gallop": 0.14, "graze": 0.11, "paw": 0.06,
    "side": 0.02, "rear": 0.12, "buck": 0.04, "jump": 0.08, "sphinx": 0.03, "free": 0.04,
}  # fmt: skip
_HEAVY = {
    "stand": 0.21, "walk": 0.26, "trot": 0.15, "gallop": 0.09, "graze": 0.18, "side": 0.02,
    "paw": 0.05, "sphinx": 0.05,
}  # fmt: skip


def family_odds(species: str) -> dict[str, float]:
    """How often a species takes each family; hoofed animals do not sit, heavy ones do not jump."""
    if species in ("elephant", "pig"):
        return _HEAVY | {"rear": 0.05, "sit": 0.04}
    if species in _CATTLE:
        return _HEAVY
    if species.startswith("centaur"):
        return {family: odds for family, odds in _RUNNERS.items() if family != "graze"}
    return _RUNNERS if species in HOOFED else _LIGHT


def draw_posture(
    family: str, rng: Generator, *, limber: float = 1.0, hanging: bool = False
) -> Posture:
    """Draw a posture of a family, with head, neck and tail looking anywhere.

    Parameters
    ----------
    limber
        Scales the freedom of the tail and neck (a hippo has little).
    hanging
        The tail hangs straight down at rest.
    """
    posture = FAMILIES[family](rng)
    neck, head, tail, curl = posture.neck, posture.head, posture.tail, posture.curl
    look = rng.random()
    yaw = rng.normal(0, 14) if look < 0.7 else rng.choice((-1.0, 1.0)) * rng.uniform(30, 120)
    yaw *= 1.0 - min(0.6, abs(neck[0]) / 180.0)  # a lowered neck cannot turn as far
    bend = 0.25 * limber * yaw if look >= 0.7 else 0.0  # the back follows a far turn of the head
    if rng.random() < 0.15:
        bend += limber * rng.choice((-1.0, 1.0)) * rng.uniform(8, 36)
    lift = rng.normal(0, 9) if rng.random() < 0.8 else rng.uniform(-35, 45)
    nod = rng.normal(0, 8) - 0.35 * lift if rng.random() < 0.85 else rng.uniform(-30, 45)
    wag = rng.random()
    up = rng.normal(0, 14) if wag < 0.6 else rng.uniform(-30, 90)
    # A tail that hangs at rest can only rise: below it are the thighs.
    raised = abs(tail[0] + limber * up) if hanging else tail[0] + limber * up
    return replace(
        posture,
        bend=posture.bend + bend,
        neck=(neck[0] + limber * lift, neck[1] + limber * 0.7 * yaw, neck[2] + rng.normal(0, 4)),
        head=(head[0] + limber * nod, head[1] + 0.3 * limber * yaw, head[2] + rng.normal(0, 7)),
        tail=(raised, tail[1] + rng.normal(0, 16)),
        curl=(curl[0] + limber * rng.normal(0, 35), curl[1] + limber * rng.normal(0, 30)),
        ears=(rng.normal(0, 14), rng.normal(0, 14)),
        jaw=abs(rng.normal(0, 4)) if rng.random() < 0.8 else rng.uniform(5, 22),
    )
