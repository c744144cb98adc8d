"""What training pairs look like: one frozen dataclass, importable without a generator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ltenet.bodies.body_pairs import What
from ltenet.data.augmentation import Augmentation
from ltenet.data.readers import READERS
from ltenet.errors import InputError
from ltenet.shape import CANONICAL_RADIUS

#: Values of `what` that stand for generated bodies.
GENERATORS: dict[str, What] = {"human": "human", "animal": "animal", "thing": "thing"}


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
    placed_share
        Share of the incomplete shapes that keep place, size and spacing of points of their whole,
        as they have once it is known what they are a part of; the others are normalised like whole
        shapes, as they come.
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
    placed_share: float = 0.0
    augmentation: Augmentation = field(default_factory=Augmentation)

    def __post_init__(self) -> None:
        low, high = self.points
        names = (*GENERATORS, *READERS)
        self._check("what", self.what in names, f"one of {', '.join(names)}")
        samplings = ("shared", "independent", "mixed")
        self._check("sampling", self.sampling in samplings, "shared, independent or mixed")
        self._check("surface_share", 0.0 <= self.surface_share <= 1.0, "a share from 0 to 1")
        self._check("placed_share", 0.0 <= self.placed_share <= 1.0, "a share from 0 to 1")
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
