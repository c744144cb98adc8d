"""Generated bodies as the remeshed benchmarks have theirs: each with a triangulation of its own.

The points of a mesh are spread evenly over the surface of the body, and triangles join points whose
Voronoi regions meet. The vertices of the template are the listed points: each names the vertex in
whose region it lies.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from ltenet.bodies.body_pairs import body_kinds, individual_generator
from ltenet.bodies.generated import Template
from ltenet.data.mesh_set import ListedSet
from ltenet.data.readers.common import checked_index
from ltenet.data.shapeset import GroundTruth
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.geometry.farthest_points import farthest_point_sample
from ltenet.geometry.subdivision import Subdivision, subdivide
from ltenet.geometry.surface_graph import mesh_graph, region_faces, voronoi_regions
from ltenet.shape import Shape

Body = Literal["human", "animal"]

#: Vertices of a mesh, individuals of each generator, and halvings of the template's edges, among
#: whose ends the vertices are chosen.
VERTICES, INDIVIDUALS, _LEVELS = 5000, 20, 2


class _Remesh(NamedTuple):
    """A body with a triangulation of its own: vertices, faces, and (V,) vertices of the template's.

    Attributes
    ----------
    points, faces
        (n, 3) and (F, 3).
    listed
        (V,) the vertex in whose region each vertex of the template lies.
    """

    points: FloatArray
    faces: IntArray
    listed: IntArray


class GeneratedMeshes(ListedSet):
    """Held-back people and animals, each in two poses, remeshed one by one.

    Shapes 2 i and 2 i + 1 are individual i. Individuals 2 j and 2 j + 1 are of one species. Tested
    are the poses of each individual, and each pose of one with one of the other of its species.

    Parameters
    ----------
    name
        Of the benchmark.
    what
        The generators.
    stream
        Seed of the generators.
    vertices
        Of each mesh.
    """

    def __init__(
        self, name: str, what: tuple[Body, ...], stream: int, *, vertices: int = VERTICES
    ) -> None:
        self.name, self._stream, self._vertices = name, stream, vertices
        self._kinds: list[tuple[Body, str, str]] = []  # one for each individual
        for one in what:
            kinds = body_kinds(individual_generator(one))
            self._kinds += [(one, *kinds[i // 2 % len(kinds)]) for i in range(INDIVIDUALS)]
        count = 2 * len(self._kinds)
        self.categories = tuple(self._kinds[i // 2][2] for i in range(count))
        self.names = tuple(f"{self.categories[i]}_{i:03d}" for i in range(count))
        fours = np.arange(count, dtype=np.int64).reshape(-1, 4)  # two individuals, two poses each
        self.pairs = fours[:, [[0, 1], [2, 3], [0, 2], [3, 1]]].reshape(-1, 2)

    def shape(self, index: int) -> Shape:
        """Mesh of one body."""
        mesh = self._mesh(index)
        return Shape(points=mesh.points, faces=mesh.faces, name=self.names[index])

    def listed(self, source: int, target: int) -> GroundTruth:
        """Every vertex of the template."""
        return GroundTruth(self._mesh(source).listed, self._mesh(target).listed)

    def mirrored(self, source: int, target: int) -> IntArray | None:
        """Every vertex of the template on the other side."""
        mirrored: IntArray = self._mesh(target).listed[self._template(target).mirror]
        return mirrored

    def _template(self, index: int) -> Template:
        what, template, _ = self._kinds[index // 2]
        return individual_generator(what).templates[template]

    def _mesh(self, index: int) -> _Remesh:
        what, template, category = self._kinds[checked_index(self, index) // 2]
        return _remeshed(self._stream, index, what, template, category, self._vertices)


@lru_cache(maxsize=8)
def _remeshed(
    stream: int, index: int, what: Body, template: str, category: str, vertices: int
) -> _Remesh:
    generator = individual_generator(what)
    body = generator.draw(
        stream, index, template=template, category=category, individual=index // 2
    )
    fine = _subdivided(what, template)
    points = fine.positions(body.vertices.astype(np.float64))  # (N, 3)
    start = int(np.random.default_rng([stream, index]).integers(len(points)))
    rows = farthest_point_sample(points, vertices, start=start)  # (n,)
    regions = voronoi_regions(mesh_graph(fine.faces, len(points)), points, rows)  # (N,)
    listed = regions[: len(body.vertices)]  # (V,), because these come first
    return _Remesh(points[rows], region_faces(fine.faces, regions), listed)


@lru_cache(maxsize=8)
def _subdivided(what: Body, template: str) -> Subdivision:
    """Halve the edges of a template, whose faces all its bodies share."""
    found = individual_generator(what).templates[template]
    return subdivide(found.faces.astype(np.int64), len(found.mirror), levels=_LEVELS)
