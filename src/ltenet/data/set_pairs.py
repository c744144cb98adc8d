"""Training pairs of a shape set on disk: registered ones with truth, others without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ltenet.data.augmentation import add_noise, draw_similarity
from ltenet.data.loading import Drawable
from ltenet.data.pair_config import GENERATORS, PairConfig
from ltenet.data.readers import open_set, set_folder
from ltenet.data.sampling import positions_of, sample_surface, sample_vertices
from ltenet.data.shapeset import GroundTruth, ShapeSet
from ltenet.data.training_pairs import (
    Split,
    TrainingPair,
    TrainingPairs,
    check_stream,
)
from ltenet.errors import InputError, MissingError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.lazy import lazy
from ltenet.shape import Shape, normalizing_matrix

#: Least number of points in a shape, and of known correspondences in a registered pair.
_FEWEST = 64


def open_pairs(config: PairConfig, seed: int = 0, split: Split = "train") -> Drawable[TrainingPair]:
    """Return the training pairs of a configuration: generated bodies, or a set on disk."""
    if config.what in GENERATORS:
        return TrainingPairs(config, seed, split)
    return SetPairs(config, seed, split)


class _Drawn(NamedTuple):
    """Points of both shapes (N, 3), (M, 3), and their true positions on the other shape."""

    source: FloatArray
    target: FloatArray
    source_truth: FloatArray
    target_truth: FloatArray


class SetPairs:
    """Pairs of the shapes of a set; pair `index` depends on config, seed, split and index alone.

    Two shapes are of one category, or any two with `same_category=False`. Where the set knows their
    correspondence, samples are shared or independent, and their truth is exact; elsewhere each
    shape is sampled alone and nothing is known. Of the augmentation, rotation, scale and noise
    apply: the rest needs a template, as `frame="body"` does.

    Parameters
    ----------
    config
        `what` is the name of the set, `data` its folder, or one with a folder or archive of that
        name. `pool` takes the first so many shapes. The last tenth of them is kept for validation;
        of fewer than 20 shapes, validation draws other samples of all.
    seed, split
        As in `TrainingPairs`.
    shapes
        The set, if it is open already.
    """

    def __init__(
        self,
        config: PairConfig,
        seed: int = 0,
        split: Split = "train",
        *,
        shapes: ShapeSet | None = None,
    ) -> None:
        check_stream(seed, split)
        self.config = config
        self.seed = seed
        self.split = split
        if shapes is not None:
            self.__dict__["shapes"] = shapes

    @lazy
    def shapes(self) -> ShapeSet:
        """The set, opened when it is first needed and once per process."""
        what, data = self.config.what, self.config.data
        if data is None:
            raise MissingError(
                f"got no folder for the set '{what}', expected the place of its files; try "
                "--data DIR"
            )
        if what == "folder":
            return open_set(data)
        return open_set(what, set_folder(what, Path(data)))

    @lazy
    def members(self) -> IntArray:
        """(n,) shapes of this split."""
        count = len(self.shapes)
        if self.config.pool is not None:
            count = min(count, self.config.pool)
        if count == 0:
            raise InputError(
                f"{self.shapes.name}: got no shapes, expected some; try another folder"
            )
        own = np.arange(count)
        held_back = count // 10 if count >= 20 else 0
        if held_back == 0:
            return own
        return own[-held_back:] if self.split == "validation" else own[:-held_back]

    def draw(self, index: int) -> TrainingPair:
        """Make pair number `index`, from 0 without an end."""
        if index < 0:
            raise InputError(
                f"got a request for training pair {index}, expected 0 or more; try 0, the first"
            )
        rng = np.random.default_rng([self.seed, int(self.split == "validation"), index])
        first, second = self._choose(rng)
        source, target = self.shapes.shape(first), self.shapes.shape(second)
        truth = self.shapes.truth(first, second)
        known = truth is not None and len(truth.source) >= _FEWEST
        share = {"independent": 0.0, "shared": 1.0, "mixed": self.config.shared_share}
        shared = known and bool(rng.random() < share[self.config.sampling])
        if truth is not None and known:
            drawn = self._registered(source, target, truth, rng, shared=shared)
        else:
            clouds = [self._alone(shape, rng) for shape in (source, target)]
            drawn = _Drawn(*clouds, *(np.zeros_like(cloud) for cloud in clouds))
        return self._pair(drawn, rng, first, second, known=known, shared=shared)

    def _choose(self, rng: np.random.Generator) -> tuple[int, int]:
        """Draw two shapes, different ones where there are two."""
        first = int(rng.choice(self.members))
        others = self.members[self.members != first]
        if self.config.same_category:
            own = self.shapes.categories[first]
            others = np.array([n for n in others if self.shapes.categories[n] == own], dtype=int)
        return first, int(rng.choice(others)) if len(others) else first

    def _registered(
        self,
        source: Shape,
        target: Shape,
        truth: GroundTruth,
        rng: np.random.Generator,
        *,
        shared: bool,
    ) -> _Drawn:
        """Draw points whose partners are known; shared ones come shuffled."""
        count = self._count(rng)
        if self._by_area(rng) and _same_mesh(source, target, truth):
            assert source.faces is not None
            here = sample_surface(source.points, source.faces, count, rng)
            there = here if shared else sample_surface(target.points, source.faces, count, rng)
            order = rng.permutation(count)  # (M,)
            return _Drawn(
                positions_of(here, source.points, source.faces),
                positions_of(there, target.points, source.faces)[order],
                positions_of(here, target.points, source.faces),
                positions_of(there, source.points, source.faces)[order],
            )
        count = min(count, len(truth.source))
        rows = sample_vertices(count, len(truth.source), rng)  # (N,)
        others = rng.permutation(rows) if shared else sample_vertices(count, len(truth.source), rng)
        return _Drawn(
            source.points[truth.source[rows]],
            target.points[truth.target[others]],
            target.points[truth.target[rows]],
            source.points[truth.source[others]],
        )

    def _alone(self, shape: Shape, rng: np.random.Generator) -> FloatArray:
        """(N, 3) points of one shape."""
        if len(shape) < _FEWEST and shape.faces is None:
            raise InputError(
                f"{shape.name}: got {len(shape)} points, expected at least {_FEWEST}; try shapes "
                "of the kind that you want to match"
            )
        count = self._count(rng)
        if self._by_area(rng) and shape.faces is not None:
            return positions_of(
                sample_surface(shape.points, shape.faces, count, rng), shape.points, shape.faces
            )
        return shape.points[sample_vertices(min(count, len(shape)), len(shape), rng)]

    def _pair(
        self,
        drawn: _Drawn,
        rng: np.random.Generator,
        first: int,
        second: int,
        *,
        known: bool,
        shared: bool,
    ) -> TrainingPair:
        """Normalise each shape by its drawn points, and augment."""
        config = self.config
        moves = [
            draw_similarity(config.augmentation, rng).matrix
            @ normalizing_matrix(points, radius=config.radius, center=config.center)
            for points in (drawn.source, drawn.target)
        ]  # (4, 4) each

        def moved(points: FloatArray, matrix: FloatArray) -> FloatArray:
            turned: FloatArray = points @ matrix[:3, :3].T + matrix[:3, 3]  # (N, 3)
            return turned

        noise = config.augmentation.noise
        source = add_noise(moved(drawn.source, moves[0]), noise, rng).astype(np.float32)
        target = add_noise(moved(drawn.target, moves[1]), noise, rng).astype(np.float32)
        truth = moved(drawn.source_truth, moves[1]).astype(np.float32)  # (N, 3)
        return TrainingPair(
            source=source,
            target=target,
            source_truth=truth,
            target_truth=moved(drawn.target_truth, moves[0]).astype(np.float32),
            source_known=np.full(len(source), known),
            target_known=np.full(len(target), known),
            source_mirrored=truth,  # unknown: a point that is its own alias is never flipped
            source_opposite=truth,
            shared=shared,
            category=self.shapes.categories[first],
            target_category=self.shapes.categories[second],
            template=self.shapes.name,
        )

    def _count(self, rng: np.random.Generator) -> int:
        low, high = self.config.points
        return int(rng.integers(low, high, endpoint=True))

    def _by_area(self, rng: np.random.Generator) -> bool:
        share = {"vertex": 0.0, "area": 1.0, "mixed": 0.5}[self.config.by]
        return bool(rng.random() < share)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the open set behind: each process opens its own, if it knows where."""
        state = dict(self.__dict__)
        if self.config.data is not None:
            state.pop("shapes", None)
        return state


def _same_mesh(source: Shape, target: Shape, truth: GroundTruth) -> bool:
    """Whether vertices and faces of one number correspond, all of them."""
    if source.faces is None or target.faces is None or len(truth.source) != len(source):
        return False
    return np.array_equal(truth.source, truth.target) and np.array_equal(source.faces, target.faces)
