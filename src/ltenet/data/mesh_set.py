"""Sets that are tested on whole meshes: by lists of corresponding vertices, or by landmarks."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from ltenet.data.shapeset import GroundTruth, ShapeSet
from ltenet.errors import InputError
from ltenet.geometry.arrays import IntArray


class ListedSet(ShapeSet):
    """Meshes with lists of corresponding vertices, as the remeshed benchmarks have them.

    A list names points, not vertices: on a coarse mesh several of them share a vertex, and each
    counts in the score.
    """

    @abstractmethod
    def listed(self, source: int, target: int) -> GroundTruth:
        """Every listed pair of vertices; unlike those of `truth`, source vertices may repeat."""

    def mirrored(self, source: int, target: int) -> IntArray | None:
        """(R,) target vertex at the mirror image of each point of `listed`; None if unknown."""
        return None

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Return the listed pairs, the first of those that share a source vertex."""
        pairs = self.listed(source, target)
        _, first = np.unique(pairs.source, return_index=True)
        kept = np.sort(first)
        return GroundTruth(pairs.source[kept], pairs.target[kept])


class LandmarkSet(ShapeSet):
    """Meshes with a few landmarks each; landmarks of one number correspond inside a category."""

    @abstractmethod
    def landmarks(self, index: int) -> IntArray:
        """(L,) vertex of each landmark of a shape, -1 where it is missing."""

    @abstractmethod
    def swapped(self, index: int) -> IntArray:
        """(L,) number of the landmark on the other side; its own for those on neither."""

    def truth(self, source: int, target: int) -> GroundTruth | None:
        """Landmarks that both shapes have, each source vertex once; None across categories."""
        if self.categories[source] != self.categories[target]:
            return None
        first, second = self.landmarks(source), self.landmarks(target)  # (L,), (L,)
        if len(first) != len(second):
            raise InputError(
                f"{self.names[source]} and {self.names[target]}: got {len(first)} and "
                f"{len(second)} landmarks, expected equal numbers within a class; try unpacking "
                "the landmark files again"
            )
        known = np.flatnonzero((first >= 0) & (second >= 0))
        _, once = np.unique(first[known], return_index=True)
        kept = known[np.sort(once)]
        return GroundTruth(first[kept], second[kept])


def all_pairs(members: IntArray) -> IntArray:
    """(n n, 2) ordered pairs of (n,) members, each with itself too."""
    first, second = np.meshgrid(members, members, indexing="ij")
    return np.stack([first.ravel(), second.ravel()], axis=1).astype(np.int64)


def random_pairs(categories: tuple[str, ...], count: int, *, seed: int = 0) -> IntArray:
    """(T, 2) ordered pairs of different shapes of one category, `count` of each at random.

    A category with fewer pairs contributes all of them. The choice depends on nothing but the seed
    and the sizes.
    """
    found = []
    for place, name in enumerate(dict.fromkeys(categories)):
        members = np.flatnonzero(np.array(categories) == name)  # (n,)
        pairs = all_pairs(members)
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]  # (n (n - 1), 2)
        rng = np.random.default_rng([seed, place])
        found.append(pairs[np.sort(rng.permutation(len(pairs))[:count])])
    return np.concatenate(found) if found else np.zeros((0, 2), np.int64)
