"""What the orientation networks are trained on: generated shapes in their true frames."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from ltenet.data.augmentation import Augmentation
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.geometry.arrays import FloatArray
from ltenet.matching.frame_networks import KINDS
from ltenet.matching.orientation import evened
from ltenet.method.invariants import invariants

#: Kinds of the bodies, in turns: most have a frame to learn.
TURNS = ("human", "animal", "human", "animal", "any")
#: What generates each kind, how uneven its meshes are, and how often their form is changed.
GENERATORS = {
    "human": ("human", 1.0, 0.25),
    "animal": ("animal", 4.0, 0.4),
    "any": ("thing", 2.0, 0.0),
}
#: Shares of frames that are nearly right, half turned about up, half turned about another axis;
#: the rest is arbitrary. All but the arbitrary ones are off besides: one half by a few degrees,
#: which teaches the last correction, the other by up to a quarter turn, which teaches the first.
SHARES, OFF, FAR_OFF = (0.5, 0.3, 0.1), 20.0, 90.0


class Example(NamedTuple):
    """Shapes as the networks see them; B of them.

    Attributes
    ----------
    points
        (B, N, 3) in their true frames.
    measures
        (B, N, C) rotation-invariant measures.
    rotations
        (B, 3, 3) from the true frame to the one that the critic is shown.
    kinds
        (B,) which of `KINDS`.
    """

    points: Tensor
    measures: Tensor
    rotations: Tensor
    kinds: Tensor


class Framed(NamedTuple):
    """Two shapes of one kind.

    Attributes
    ----------
    points
        (N, 3) of each, in its true frame.
    kind
        Which of `KINDS`; those of the last have no frame.
    names
        What each is, for tables.
    """

    points: tuple[FloatArray, FloatArray]
    kind: int
    names: tuple[str, str]


class Source(Protocol):
    """Endless shapes with known frames."""

    def draw(self, index: int) -> Framed:
        """Make shapes 2 index and 2 index + 1."""


class Bodies:
    """Both shapes of training pairs as scans are; people, animals and things take turns.

    Parameters
    ----------
    split
        "train" or "validation".
    only
        One of `KINDS` alone.
    """

    def __init__(self, split: str, only: str | None = None) -> None:
        self.turns = TURNS if only is None else (only,)
        self.pairs = {what: _shape_pairs(what, split) for what in KINDS}

    def draw(self, index: int) -> Framed:
        """Make shapes 2 index and 2 index + 1."""
        what = self.turns[index % len(self.turns)]
        pair = self.pairs[what].draw(index)
        return Framed((pair.source, pair.target), KINDS.index(what), pair.families)


class Examples:
    """Shapes of a source as the networks see them."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def draw(self, index: int) -> Example:
        """Make shapes 2 index and 2 index + 1."""
        torch.set_num_threads(1)
        drawn = self.source.draw(index)
        points = torch.from_numpy(np.stack([evened(one) for one in drawn.points]))
        rng = np.random.default_rng([7, index])
        rotations = np.stack([_random_frame(rng) for _ in points]).astype(np.float32)
        measures = torch.stack([invariants(shape) for shape in points])
        kinds = torch.full((len(points),), drawn.kind)
        return Example(points, measures, torch.from_numpy(rotations), kinds)


def _shape_pairs(what: str, split: str) -> TrainingPairs:
    """Shapes as scans are: of any density, uneven, noisy, and sometimes with parts missing."""
    generator, detail, warp_chance = GENERATORS[what]  # as uneven as real meshes
    augmentation = Augmentation(
        noise=0.004,
        wobble=0.01,
        density=3.0,
        detail=detail,
        curvature=1.0,
        even_chance=0.08,
        warp_chance=warp_chance,
        cut_chance=0.15,
        view_chance=0.1,
        limb_chance=0.05,
        holes_chance=0.15,
    )
    config = PairConfig(
        what=generator,
        points=(640, 2048),
        frame="world" if what == "any" else "body",
        augmentation=augmentation,
    )
    return TrainingPairs(config, 3, split)  # type: ignore[arg-type]


def _random_frame(rng: np.random.Generator) -> FloatArray:
    """(3, 3) how far the frame shown to the critic is from the true one; see `SHARES`."""
    choice = int(np.searchsorted(np.cumsum(SHARES), rng.random()))
    if choice == len(SHARES):
        return np.asarray(Rotation.random(random_state=rng).as_matrix())
    axis = rng.normal(size=3)
    most = OFF if rng.random() < 0.5 else FAR_OFF
    off = Rotation.from_rotvec(math.radians(rng.uniform(0, most)) * axis / np.linalg.norm(axis))
    sides = [1.0, 1, 1], [-1, 1, -1], [[1, -1, -1], [-1, -1, 1]][rng.integers(2)]
    return np.asarray(off.as_matrix() @ np.diag(sides[choice]))
