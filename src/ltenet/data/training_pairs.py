"""Endless training pairs of generated shapes, each with exact truth, each found by its index alone.

A pair goes through five steps: draw two bodies of one template, draw points on each of them, look
up where each point lies on the other body (by vertex, or by face and barycentrics), normalise each
shape by its own drawn points, augment. Truth positions always move with the shape they lie on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ltenet.bodies.body_frame import common_matrices, upright_matrix
from ltenet.bodies.body_pairs import BodyGenerator, What, draw_two_bodies, own_generator
from ltenet.bodies.generated import GeneratedBody
from ltenet.bodies.warps import formed
from ltenet.data.augmentation import Augmentation, add_noise, draw_similarity, random_rotation
from ltenet.data.drawn_side import Side, SideDrawer, shared_anchors, with_common_part
from ltenet.data.readers import READERS
from ltenet.data.sampling import Anchors
from ltenet.data.scans import add_wobble
from ltenet.data.template_surfaces import TemplateSurfaces
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.shape import CANONICAL_RADIUS, normalizing_matrix

Split = Literal["train", "validation"]
BoolArray = NDArray[np.bool_]
Float32Array = NDArray[np.float32]

#: Values of `what` that stand for generated bodies.
GENERATORS: dict[str, What] = {"human": "human", "animal": "animal", "thing": "thing"}
_SPLITS: dict[str, int] = {"train": 0, "validation": 1}
# Each decision has its own random stream, so that changing one option leaves the others alone.
# From 1: numpy pads short seeds with zeros, and the generators seed with two numbers.
_CHOICES, _COUNTS, _SOURCE_POINTS, _TARGET_POINTS, _SOURCE_CHANGE, _TARGET_CHANGE = range(1, 7)
_SURFACES, _COMMON_TURN, _SOURCE_FORM, _TARGET_FORM = 7, 8, 9, 10


@dataclass(frozen=True, kw_only=True)
class PairConfig:
    """What training pairs look like.

    Attributes
    ----------
    what
        "human", "animal" or "thing" for generated bodies, or the name of a set in `READERS`
        ("folder" for shapes of your own), which `data` holds; see `ltenet.data.set_pairs`.
    data
        Folder of that set.
    sampling
        "shared": both shapes get the same surface points, shuffled, as in the paper;
        "independent": each is drawn by itself; "mixed": a share of the pairs is shared.
    shared_share
        That share.
    by
        "vertex", "area", or "mixed": a coin for each shape (for the pair if it is shared).
    points
        Least and largest number of points, drawn evenly from the whole range.
    equal_counts
        Whether both shapes of a pair get the same number.
    count_block
        This many consecutive pairs get the same numbers; set it to the batch size to stack them.
    same_category
        Whether both shapes are of one species; else of any two that share their numbering.
    pool
        None for new shapes in every pair, or the number of distinct shapes, of which a tenth is
        kept for validation: 2000 as in the paper are 1800 and 200. Of a set on disk, the first
        so many.
    radius
        Root-mean-square radius after normalisation; None keeps the unit.
    center
        Whether the mean of the drawn points becomes the origin; False keeps the generator's, as
        DPC's loader keeps that of the file.
    frame
        "world": bodies stand, sit and lie as they were drawn; "body": each is turned until its
        trunk is upright and faces +z, as the orientation step of matching does; "common": the
        source is turned onto the target as well as a rotation can, then both alike at random, as
        shapes without a class are once it is known how they lie against each other.
    surface_share
        Share of the shapes that come as meshes do: with coordinates of their points along the
        surface, see `surface_coordinates`. The others are clouds.
    augmentation
        See `Augmentation`; none by default.
    """

    what: str = "human"
    data: str | None = None
    sampling: Literal["shared", "independent", "mixed"] = "independent"
    shared_share: float = 0.5
    by: Literal["vertex", "area", "mixed"] = "mixed"
    points: tuple[int, int] = (1024, 1024)
    equal_counts: bool = True
    count_block: int = 1
    same_category: bool = True
    pool: int | None = None
    radius: float | None = CANONICAL_RADIUS
    center: bool = True
    frame: Literal["world", "body", "common"] = "world"
    surface_share: float = 0.0
    augmentation: Augmentation = field(default_factory=Augmentation)

    def __post_init__(self) -> None:
        low, high = self.points
        names = (*GENERATORS, *READERS)
        self._check("what", self.what in names, f"one of {', '.join(names)}")
        samplings = ("shared", "independent", "mixed")
        self._check("sampling", self.sampling in samplings, "shared, independent or mixed")
        self._check("surface_share", 0.0 <= self.surface_share <= 1.0, "a share from 0 to 1")
        self._check("shared_share", 0.0 <= self.shared_share <= 1.0, "a share from 0 to 1")
        self._check("by", self.by in ("vertex", "area", "mixed"), "vertex, area or mixed")
        frames = ("world", "body", "common")
        self._check("frame", self.frame in frames, "world, body or common")
        self._check("points", 2 <= low <= high, "(least, largest) with 2 <= least <= largest")
        self._check("count_block", self.count_block >= 1, "a whole number of at least 1")
        self._check("pool", self.pool is None or self.pool >= 20, "None or at least 20 shapes")
        self._check("radius", self.radius is None or self.radius > 0.0, "None or a length above 0")

    def _check(self, name: str, fine: bool, needed: str) -> None:
        if not fine:
            raise InputError(
                f"training pairs: got {name} = {getattr(self, name)!r}, expected {needed}; "
                "try leaving it out for the default"
            )


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
        source, target = self._draw_points(index, source_side, target_side, shared)
        source_points = source.on(body.vertices)  # (N, 3)
        target_points = target.on(other.vertices)  # (M, 3)
        if self.config.frame == "body":
            source_turn = source_turn @ upright_matrix(body.vertices, template)  # (4, 4)
            target_turn = target_turn @ upright_matrix(other.vertices, template)  # (4, 4)
        elif self.config.frame == "common":
            turn = random_rotation("any", self._rng(_COMMON_TURN, index))  # (3, 3)
            here, there = common_matrices(body.vertices, other.vertices, turn)  # (4, 4)
            source_turn, target_turn = source_turn @ here, target_turn @ there
        to_source = source_turn @ self._normalizing(source_points)  # (4, 4)
        to_target = target_turn @ self._normalizing(target_points)  # (4, 4)
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
        """(4, 4) matrix that normalises one shape by its own drawn points."""
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
        self, index: int, source: Side, target: Side, shared: bool
    ) -> tuple[Anchors, Anchors]:
        low, high = self.config.points
        count_rng = self._rng(_COUNTS, index // self.config.count_block)
        count, target_count = count_rng.integers(low, high, size=2, endpoint=True).tolist()
        if self.config.equal_counts:
            target_count = count
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
