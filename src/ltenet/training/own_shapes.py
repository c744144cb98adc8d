"""Training pairs of the user's own shapes, for which nothing is known but the shapes themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ltenet.data.augmentation import augment
from ltenet.data.pair_config import PairConfig
from ltenet.data.sampling import positions_of, sample_surface, sample_vertices
from ltenet.data.training_pairs import TrainingPair
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.shape import Shape

_SPLITS = {"train": 0, "validation": 1}
_FEWEST = 64  # points of a shape: a neighbourhood must be a small part of it


class OwnPairs:
    """Pairs of given shapes; pair `index` depends on the arguments and the index alone.

    Parameters
    ----------
    shapes
        At least one; a single shape is paired with another sample of itself.
    config
        How points are drawn, normalised and augmented. Shapes with faces are drawn by area or by
        vertex as it says, clouds by point; those with too few points come whole.
    seed
        Not negative.
    split
        "train" or "validation": other samples of the same shapes.
    """

    def __init__(
        self, shapes: Sequence[Shape], config: PairConfig, seed: int = 0, split: str = "train"
    ) -> None:
        small = [shape for shape in shapes if len(shape) < _FEWEST and shape.faces is None]
        if not shapes or small:
            what = f"{small[0].name} with {len(small[0])} points" if small else "no shape"
            raise InputError(
                f"got {what}, expected at least one shape and {_FEWEST} points in each cloud; try "
                "shapes of the kind you want to match"
            )
        self.shapes = [_bare(shape) for shape in shapes]
        self.config = config
        self.seed = seed
        self.split = split

    def draw(self, index: int) -> TrainingPair:
        """Make pair number `index`; its truth is not known anywhere."""
        rng = np.random.default_rng([self.seed, _SPLITS[self.split], index])
        first = int(rng.integers(len(self.shapes)))
        others = [number for number in range(len(self.shapes)) if number != first] or [first]
        second = others[int(rng.integers(len(others)))]
        source, target = (self._sampled(self.shapes[n], rng) for n in (first, second))
        nowhere = np.zeros_like(source)  # (N, 3)
        return TrainingPair(
            source=source,
            target=target,
            source_truth=nowhere,
            target_truth=np.zeros_like(target),
            source_known=np.zeros(len(source), dtype=bool),
            target_known=np.zeros(len(target), dtype=bool),
            source_mirrored=nowhere,
            source_opposite=nowhere,
            shared=False,
            category=self.shapes[first].name,
            target_category=self.shapes[second].name,
            template="own",
        )

    def _sampled(self, shape: Shape, rng: np.random.Generator) -> np.ndarray:
        """(N, 3) float32 points of one shape, normalised and augmented."""
        low, high = self.config.points
        count = int(rng.integers(low, high, endpoint=True))
        area_share = {"vertex": 0.0, "area": 1.0, "mixed": 0.5}[self.config.by]
        by_area = rng.random() < area_share or len(shape) < min(count, _FEWEST)
        points: FloatArray
        if shape.faces is not None and by_area:
            sample = sample_surface(shape.points, shape.faces, count, rng)
            points = positions_of(sample, shape.points, shape.faces)  # (N, 3)
        else:
            points = shape.points[sample_vertices(min(count, len(shape)), len(shape), rng)]
        drawn = Shape(points, name=shape.name).normalized(
            radius=self.config.radius, center=self.config.center
        )
        return augment(drawn.points, self.config.augmentation, rng).astype(np.float32)


def _bare(shape: Shape) -> Shape:
    """Leave behind what training does not look at."""
    return Shape(shape.points, faces=shape.faces, name=shape.name)
