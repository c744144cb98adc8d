"""Endless training pairs of generated shapes, each with exact truth, each found by its index alone.

A pair goes through five steps: draw two bodies of one template, draw points on each of them, look
up where each point lies on the other body (by vertex, or by face and barycentrics), normalise each
shape by its own drawn points, augment. Truth positions always move with the shape they lie on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.body_frame import common_matrices, upright_matrix
from ltenet.bodies.body_pairs import BodyGenerator, draw_two_bodies, own_generator
from ltenet.bodies.generated import GeneratedBody
from ltenet.bodies.warps import formed
from ltenet.data.augmentation import add_noise, draw_similarity, random_rotation
from ltenet.data.drawn_side import Side, SideDrawer, shared_anchors, with_common_part
from ltenet.data.pair_config import GENERATORS, PairConfig
from ltenet.data.sampling import Anchors
from ltenet.data.scans import add_wobble
from ltenet.data.template_surfaces import TemplateSurfaces
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.shape import normalizing_matrix

Split = Literal["train", "validation"]
BoolArray = NDArray[np.bool_]
Float32Array = NDArray[np.float32]

_SPLITS: dict[str, int] = {"train": 0, "validation": 1}
# Each decision has its own random stream, so that changing one option leaves the others alone.
# From 1: numpy pads short seeds with zeros, and the generators seed with two numbers.
_CHOICES, _COUNTS, _SOURCE_POINTS, _TARGET_POINTS, _SOURCE_CHANGE, _TARGET_CHANGE = range(1, 7)
_SURFACES, _COMMON_TURN, _SOURCE_FORM, _TARGET_FORM, _PLACES = 7, 8, 9, 10, 11
#: Fewest points of a part that lies as in its whole.
_FEWEST = 128


@dataclass(frozen=True, eq=False)
class TrainingPair:
    """Two sampled and normalised shapes with exact truth; float32 throughout.

    Attributes
    ----------
    source, target
        (N, 3) and (M, 3) points.
    source_truth
        (N, 3) true position of each source point on the target, in the target's coordinates.
    target_truth
        (M, 3) true position of each target point on the source.
    source_known, target_known
        (N,) and (M,) False where the place of the truth is missing on the other shape.
    source_mirrored
        (N, 3) position on the target of the left/right mirrored partner of each source point.
    source_opposite
        (N, 3) position on the target of the front/back opposite partner.
    shared
        Whether both shapes were given the same surface points.
    category, target_category
        Species of the source and of the target.
    template
        Name of the template both share.
    families
        Pose families of the source and of the target, for example ``("walk", "sit")``;
        empty if not known.
    source_rest, target_rest
        (N, 3) and (M, 3) where each point lies on the template at rest; None if not known.
    source_along, target_along
        (N, L) and (M, L) coordinates along the surface, in the unit of the points; None for clouds.
    """

    source: Float32Array
    target: Float32Array
    source_truth: Float32Array
    target_truth: Float32Array
    source_known: BoolArray
    target_known: BoolArray
    source_mirrored: Float32Array
    source_opposite: Float32Array
    shared: bool
    category: str
    target_category: str
    template: str
    families: tuple[str, str] = ("", "")
    source_rest: Float32Array | None = None
    target_rest: Float32Array | None = None
    source_along: Float32Array | None = None
    target_along: Float32Array | None = None


class TrainingPairs:
    """A stream of training pairs; pair `index` depends on config, seed, split and index alone.

    Parameters
    ----------
    config
        What the pairs look like.
    seed
        Not negative. The shapes of the two splits never coincide, whatever their seeds.
    split
        "train" or "validation".
    generator
        Where the bodies come from; by default that of `config.what`, made when it is first needed
        and once per process.
    """

    def __init__(
        self,
        config: PairConfig,
        seed: int = 0,
        split: Split = "train",
        *,
        generator: BodyGenerator | None = None,
    ) -> None:
        check_stream(seed, split)
        self.config = config
        self.seed = seed
        self.split = split
        self._given_generator = generator
        self._sides = SideDrawer(config.augmentation)
        self._surfaces = TemplateSurfaces()

    def draw(self, index: int) -> TrainingPair:
        """Make pair number `index`, from 0 without an end."""
        if index < 0:
            raise InputError(
                f"got a request for training pair {index}, expected 0 or more; try 0, the first"
            )
        choices = self._rng(_CHOICES, index)
        body, other = self._draw_bodies(index, choices)
        template, change = self._generator().templates[body.template], self.config.augmentation
        form = {"chance": change.warp_chance, "strength": change.warp}
        body = formed(body, template.faces, self._rng(_SOURCE_FORM, index), **form)
        other = formed(other, template.faces, self._rng(_TARGET_FORM, index), **form)
        shared, by_area = self._draw_modes(choices)
        source_rng, target_rng = self._rng(_SOURCE_CHANGE, index), self._rng(_TARGET_CHANGE, index)
        source_turn = draw_similarity(self.config.augmentation, source_rng).matrix  # (4, 4)
        target_turn = draw_similarity(self.config.augmentation, target_rng).matrix  # (4, 4)
        sides = self._sides
        source_side = sides.draw(body.vertices, template, by_area[0], source_rng)
        target_side = sides.draw(other.vertices, template, by_area[1], target_rng)
        target_side = with_common_part(source_side, target_side)
        places = self._rng(_PLACES, index)
        source_placed, target_placed = (
            side.share < 1.0 and chance < self.config.placed_share
            for side, chance in zip((source_side, target_side), places.random(2), strict=True)
        )
        source, target = self._draw_points(
            index, source_side, target_side, shared, (source_placed, target_placed)
        )
        source_points = source.on(body.vertices)  # (N, 3)
        target_points = target.on(other.vertices)  # (M, 3)
        if self.config.frame == "body":
            source_turn = source_turn @ upright_matrix(body.vertices, template)  # (4, 4)
            target_turn = target_turn @ upright_matrix(other.vertices, template)  # (4, 4)
        elif self.config.frame == "common":
            turn = random_rotation("any", self._rng(_COMMON_TURN, index))  # (3, 3)
            here, there = common_matrices(body.vertices, other.vertices, turn)  # (4, 4)
            source_turn, target_turn = source_turn @ here, target_turn @ there
        seen = source_side.whole(places) if source_placed else source_points  # (S, 3)
        to_source = source_turn @ self._normalizing(seen)  # (4, 4)
        seen = target_side.whole(places) if target_placed else target_points  # (S, 3)
        to_target = target_turn @ self._normalizing(seen)  # (4, 4)
        mirrored, opposite = source.through(template.mirror), source.through(template.opposite)
        known = self._rng(_SURFACES, index).random(2) < self.config.surface_share  # (2,)
        along = self._surfaces.along
        return TrainingPair(
            source=self._scanned(_moved(source_points, to_source), source_rng),
            target=self._scanned(_moved(target_points, to_target), target_rng),
            source_truth=_single(_moved(source.on(other.vertices), to_target)),
            target_truth=_single(_moved(target.on(body.vertices), to_source)),
            source_known=source.inside(target_side.kept),
            target_known=target.inside(source_side.kept),
            source_mirrored=_single(_moved(mirrored.on(other.vertices), to_target)),
            source_opposite=_single(_moved(opposite.on(other.vertices), to_target)),
            shared=shared,
            category=body.category,
            target_category=other.category,
            template=body.template,
            families=(body.family, other.family),
            source_rest=None if template.rest is None else _single(source.on(template.rest)),
            target_rest=None if template.rest is None else _single(target.on(template.rest)),
            source_along=along(source, body, template, to_source) if known[0] else None,
            target_along=along(target, other, template, to_target) if known[1] else None,
        )

    def _normalizing(self, points: FloatArray) -> FloatArray:
        """(4, 4) matrix that normalises one shape by the points of it, or of its whole."""
        return normalizing_matrix(points, radius=self.config.radius, center=self.config.center)

    def _draw_bodies(
        self, index: int, rng: np.random.Generator
    ) -> tuple[GeneratedBody, GeneratedBody]:
        pool = self.config.pool
        if pool is not None:
            pool = pool // 10 if self.split == "validation" else pool - pool // 10
        # Even streams train and odd ones validate, so no two seeds can bring them together.
        stream = 2 * self.seed + _SPLITS[self.split]
        same_category = self.config.same_category
        return draw_two_bodies(
            self._generator(), index, rng, stream=stream, same_category=same_category, pool=pool
        )

    def _draw_modes(self, rng: np.random.Generator) -> tuple[bool, tuple[bool, bool]]:
        """Draw whether the pair is shared, and whether source and target are drawn by area."""
        chance, source_coin, target_coin = rng.random(3)
        config = self.config
        share = {"independent": 0.0, "shared": 1.0, "mixed": config.shared_share}[config.sampling]
        area_share = {"vertex": 0.0, "area": 1.0, "mixed": 0.5}[config.by]
        shared = bool(chance < share)
        coins = (source_coin, source_coin if shared else target_coin)
        return shared, (bool(coins[0] < area_share), bool(coins[1] < area_share))

    def _draw_points(
        self,
        index: int,
        source: Side,
        target: Side,
        shared: bool,
        placed: tuple[bool, bool],
    ) -> tuple[Anchors, Anchors]:
        low, high = self.config.points
        count_rng = self._rng(_COUNTS, index // self.config.count_block)
        count, target_count = count_rng.integers(low, high, size=2, endpoint=True).tolist()
        if self.config.equal_counts:
            target_count = count
        if placed[0]:
            count = max(_FEWEST, round(source.share * count))
        if placed[1]:
            target_count = max(_FEWEST, round(target.share * target_count))
        rng, other_rng = self._rng(_SOURCE_POINTS, index), self._rng(_TARGET_POINTS, index)
        if not shared:
            none = np.zeros(len(source.kept), dtype=bool)  # (V,)
            anchors = source.draw(count, rng, taken=none)
            return anchors, target.draw(target_count, other_rng, taken=none)
        # The more complete shape is drawn first: points that the other one lacks stay in it.
        if source.kept.sum() >= target.kept.sum():
            anchors = source.draw(count, rng, taken=np.zeros(len(source.kept), dtype=bool))
            return anchors, shared_anchors(anchors, target, target_count, other_rng)
        anchors = target.draw(target_count, rng, taken=np.zeros(len(target.kept), dtype=bool))
        return shared_anchors(anchors, source, count, other_rng), anchors

    def _scanned(self, points: FloatArray, rng: np.random.Generator) -> Float32Array:
        """(N, 3) points as a scanner gives them: displaced smoothly, and noisy."""
        augmentation = self.config.augmentation
        if augmentation.wobble > 0.0:
            points = add_wobble(points, augmentation.wobble * rng.random(), rng)
        return _single(add_noise(points, augmentation.noise, rng))

    def _rng(self, stream: int, index: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, _SPLITS[self.split], index, stream])

    def _generator(self) -> BodyGenerator:
        if self._given_generator is not None:
            return self._given_generator
        held_back = self.split == "validation"
        return own_generator(GENERATORS[self.config.what], held_back=held_back)


def check_stream(seed: int, split: str) -> None:
    """Refuse a seed or a split that no stream of pairs has."""
    if seed < 0 or split not in _SPLITS:
        raise InputError(
            f"got seed {seed} and split {split!r}, expected a seed of at least 0 and train or "
            "validation; try seed 0"
        )


def _moved(points: FloatArray, matrix: FloatArray) -> FloatArray:
    """(N, 3) points moved by a (4, 4) matrix."""
    moved: FloatArray = points @ matrix[:3, :3].T + matrix[:3, 3]  # (N, 3)
    return moved


def _single(points: FloatArray) -> Float32Array:
    return points.astype(np.float32)  # (N, 3)
