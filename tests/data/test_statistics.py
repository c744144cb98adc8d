from __future__ import annotations

import numpy as np
import pytest

from ltenet.data.generated_set import GeneratedSet
from ltenet.data.set_statistics import (
    choose_shapes,
    describe_set,
    measure_set,
    spread,
    summarize,
)
from ltenet.data.statistics import (
    measure,
    pair_distances,
    principal_axes,
    rms_radius,
    spacing,
)
from ltenet.data.surface_distances import LEVELS, even_sample, geodesics, systematic, thickness
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.shape import Shape


def sphere(subdivisions: int = 4, radius: float = 1.0) -> tuple[FloatArray, IntArray]:
    """An icosahedron, refined: 10 * 4**n + 2 vertices."""
    phi = (1 + 5**0.5) / 2
    corners = [(0, a, b * phi) for a in (-1, 1) for b in (-1, 1)]
    vertices = [corner[k:] + corner[:k] for k in range(3) for corner in corners]
    points = np.array(vertices, float)
    near = np.linalg.norm(points[:, None] - points[None], axis=2) < 2.1  # edges have length 2
    triples = [
        (i, j, k)
        for i in range(12)
        for j in range(i + 1, 12)
        for k in range(j + 1, 12)
        if near[i, j] and near[j, k] and near[i, k]
    ]
    faces = np.array(triples)
    for _ in range(subdivisions):
        edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), 1)
        unique, place = np.unique(edges, axis=0, return_inverse=True)
        middle = place.reshape(3, -1).T + len(points)  # (F, 3)
        a, b, c = faces.T
        ab, bc, ca = middle.T
        points = np.concatenate([points, points[unique].mean(axis=1)])
        rows = [(a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca)]
        faces = np.concatenate([np.stack(row, axis=1) for row in rows])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return radius * points, oriented(points, faces)


def oriented(points: FloatArray, faces: IntArray) -> IntArray:
    """Faces of a star-shaped body around the origin, all outwards."""
    a, b, c = (points[faces[:, k]] for k in range(3))
    inwards = np.einsum("fd,fd->f", np.cross(b - a, c - a), a + b + c) < 0
    return np.where(inwards[:, None], faces[:, ::-1], faces)


def box(x: float, y: float, z: float) -> tuple[FloatArray, IntArray]:
    """A box around the origin; twelve triangles."""
    signs = np.array([(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], float)
    quads = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    faces = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    points = signs * (x / 2, y / 2, z / 2)
    return points, oriented(points, faces)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_radius_and_axes_of_known_points() -> None:
    cross = np.array([[3.0, 0, 0], [-3, 0, 0], [0, 2, 0], [0, -2, 0], [0, 0, 1], [0, 0, -1]]) + 7
    assert rms_radius(cross) == pytest.approx(np.sqrt(28 / 6))
    assert principal_axes(cross) == pytest.approx(np.sqrt([18 / 6, 8 / 6, 2 / 6]))


def test_distances_on_a_sphere(rng: np.random.Generator) -> None:
    """Two random points of the unit sphere: P(distance < d) = d² / 4."""
    points = rng.normal(size=(1500, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    assert pair_distances(points) == pytest.approx(2 * np.sqrt(LEVELS), abs=0.02)


def test_even_samples_give_every_region_its_share(rng: np.random.Generator) -> None:
    vertices, faces = box(1, 2, 3)
    sample = even_sample(vertices, faces, 1100, rng)
    areas = {1: 6 / 22, 2: 3 / 22, 3: 2 / 22}  # of one of the two sides across each axis
    for axis, side in enumerate((1, 2, 3)):
        on_side = [bool(np.isclose(vertices[face, axis], side / 2).all()) for face in faces]
        assert abs(np.sum(np.array(on_side)[sample.faces]) - 1100 * areas[side]) <= 4
    assert sample.barycentric.sum(axis=1) == pytest.approx(1)


def test_systematic_choice_follows_the_masses(rng: np.random.Generator) -> None:
    places = rng.normal(size=(100, 3))
    masses = np.zeros(100)
    masses[[3, 50]] = 1.0, 3.0
    chosen = systematic(places, masses, 8, rng)
    assert sorted(chosen.tolist()) == [3] * 2 + [50] * 6


def test_spacing_of_a_grid() -> None:
    axis = np.arange(12.0)
    grid = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    found = spacing(grid)
    assert found.mean == pytest.approx(1 / rms_radius(grid))
    assert found.variation == pytest.approx(0, abs=1e-12)


def test_spacing_of_random_points(rng: np.random.Generator) -> None:
    """N random points of a plane of area A: mean ½ √(A / N), variation √(4 / π - 1)."""
    points = np.zeros((20000, 3))
    points[:, :2] = rng.random((20000, 2))
    found = spacing(points)
    expected = 0.5 / np.sqrt(20000) / np.sqrt(2 / 12)
    assert found.mean == pytest.approx(expected, rel=0.02)
    assert found.variation == pytest.approx(np.sqrt(4 / np.pi - 1), rel=0.02)


def test_geodesics_on_a_sphere(rng: np.random.Generator) -> None:
    """From one point of the unit sphere: P(angle < a) = (1 - cos a) / 2."""
    expected = np.arccos(1 - 2 * LEVELS)
    found = geodesics(*sphere(4), rng)
    assert found == pytest.approx(expected, rel=0.06, abs=0.02)
    assert (found > expected - 0.02).all()


def test_geodesics_stay_inside_a_part(rng: np.random.Generator) -> None:
    vertices, faces = sphere(2)
    two = np.concatenate([vertices, vertices + 50])
    found = geodesics(two, np.concatenate([faces, faces + len(vertices)]), rng)
    assert found.max() < 3.6


@pytest.mark.parametrize("turned", [False, True])
def test_thickness_of_a_sphere(rng: np.random.Generator, turned: bool) -> None:
    vertices, faces = sphere(3, radius=0.7)
    found = thickness(vertices + 3, faces[:, ::-1] if turned else faces, rng)
    assert found == pytest.approx(1.4, rel=0.02)


def test_thickness_of_a_box(rng: np.random.Generator) -> None:
    """Each side counts with its area: 2, 3 and 6 of 11."""
    found = thickness(*box(1, 2, 3), rng, rays=4000)
    assert np.isin(np.round(found, 9), (1.0, 2.0, 3.0)).all()
    shares = [np.isclose(found, side).mean() for side in (1, 2, 3)]
    assert shares == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.03)


def test_thickness_without_a_far_side(rng: np.random.Generator) -> None:
    flat = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    assert not thickness(flat, np.array([[0, 1, 2]]), rng).any()


def test_measures_of_a_sphere_do_not_depend_on_size_or_place(rng: np.random.Generator) -> None:
    vertices, faces = sphere(4)
    found = measure(Shape(5 * vertices + 9, faces), rng)
    assert found.radius == pytest.approx(5, rel=0.01)
    assert found.area == pytest.approx(4 * np.pi, rel=0.02)
    assert found.axes == pytest.approx([3**-0.5] * 3, rel=0.05)
    assert np.square(found.axes).sum() == pytest.approx(1)
    assert found.distances == pytest.approx(2 * np.sqrt(LEVELS), abs=0.08)
    assert found.thickness == pytest.approx(2 / np.sqrt(4 * np.pi), rel=0.02)
    assert found.geodesics is not None
    median = np.interp(0.5, LEVELS, found.geodesics)
    assert median == pytest.approx(np.pi / 2 / np.sqrt(4 * np.pi), rel=0.05)
    assert found.area_spacing is not None
    assert found.area_spacing.mean == pytest.approx(0.5 * np.sqrt(4 * np.pi / 1024), rel=0.05)
    # Vertices of the refined icosahedron repel each other more than random points do.
    assert found.vertex_spacing is not None
    assert found.vertex_spacing.variation < found.area_spacing.variation


def test_clouds_have_no_thickness(rng: np.random.Generator) -> None:
    points = rng.normal(size=(1100, 3))
    found = measure(Shape(points), rng)
    assert found.area is found.thickness is found.geodesics is found.area_spacing is None
    assert found.vertex_spacing is not None
    assert measure(Shape(points), rng, surface=2 * points).area_spacing is not None
    assert measure(Shape(points[:50]), rng).vertex_spacing is None


@pytest.mark.slow
def test_a_set_is_described_the_same_each_time() -> None:
    shapes = GeneratedSet("animal", 3, seed=2, template="dog")
    indices = choose_shapes(range(3), 2, seed=1)
    assert indices == sorted(set(indices))
    first, again = (measure_set(shapes, indices, seed=4) for _ in range(2))
    described = describe_set(shapes, indices, first)
    assert described == describe_set(shapes, indices, again)
    assert described["shapes"] == 3
    assert described["measured"] == 2
    assert sum(described["poses"].values()) == 2
    assert described["measures"]["area"]["mean"] == pytest.approx(
        np.mean([one.area for one in first if one.area is not None]), rel=1e-4
    )
    alone = measure_set(shapes, indices[1:], seed=4)
    assert np.array_equal(alone[0].distances, first[1].distances)
    assert summarize(first).keys() == described["measures"].keys()


def test_spread_of_known_sets() -> None:
    quantiles = [np.full(64, value) for value in (0.0, 1.0, 3.0)]
    assert spread(quantiles) == pytest.approx((1 + 3 + 2) / 3)
    assert spread(quantiles[:1]) is None


def test_generated_sets_know_their_truth() -> None:
    shapes = GeneratedSet("animal", 8)
    templates = [body.template for body in shapes.bodies]
    other = next(k for k, name in enumerate(templates) if name != templates[0])
    assert shapes.truth(0, other) is None
    assert shapes.truth(0, 0) is not None
    assert shapes.shape(0).name == shapes.names[0] == "animal_s0_000000"
    with pytest.raises(InputError, match="expected 0 to 7"):
        shapes.shape(8)
