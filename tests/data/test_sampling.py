import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.data.sampling import (
    Anchors,
    SurfaceSample,
    draw_density,
    positions_of,
    sample_surface,
    sample_vertices,
)
from ltenet.errors import InputError

# Two triangles in the plane z = 0 with areas 0.5 and 1.5, and one without area.
VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [4, 0, 0], [4, 1, 0], [1, 0, 0]], float)
FACES = np.array([[0, 1, 5], [0, 1, 2], [1, 3, 4]])


def test_vertices_are_distinct_and_available():
    available = np.array([3, 5, 8, 13, 21])
    drawn = sample_vertices(5, available, np.random.default_rng(0))
    assert sorted(drawn) == list(available)
    assert drawn.dtype == np.int64


@given(st.integers(1, 50), st.integers(0, 10), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_vertices_without_replacement(count, spare, seed):
    drawn = sample_vertices(count, count + spare, np.random.default_rng(seed))
    assert len(np.unique(drawn)) == count
    assert drawn.min() >= 0
    assert drawn.max() < count + spare


def test_every_vertex_is_equally_likely():
    rng = np.random.default_rng(0)
    hits = np.bincount(np.concatenate([sample_vertices(3, 6, rng) for _ in range(4000)]))
    np.testing.assert_allclose(hits, 2000, rtol=0.08)


def test_weights_choose_the_first_vertex_in_proportion_and_skip_zeros():
    rng = np.random.default_rng(0)
    weights = np.array([1.0, 3.0, 0.0, 6.0])
    first = np.bincount([sample_vertices(1, 4, rng, weights=weights)[0] for _ in range(5000)])
    np.testing.assert_allclose(first / 5000, weights / 10, atol=0.025)
    assert sorted(sample_vertices(3, 4, rng, weights=weights)) == [0, 1, 3]


@pytest.mark.parametrize("weights", [None, np.array([1.0, 1.0, 0.0, 1.0])])
def test_too_few_vertices(weights):
    count = 5 if weights is None else 4
    with pytest.raises(
        InputError, match=r"got . vertices for .*, expected at least as many.*; try fewer"
    ):
        sample_vertices(count, 4, np.random.default_rng(0), weights=weights)


@pytest.mark.parametrize("weights", [np.ones(3), np.array([1, 1, 1, -1.0]), np.full(4, np.nan)])
def test_bad_weights(weights):
    with pytest.raises(InputError, match=r"got weights of shape .*, expected one finite.*; try 0"):
        sample_vertices(1, 4, np.random.default_rng(0), weights=weights)


@pytest.mark.parametrize("count", [0, -2])
def test_counts_are_positive(count):
    with pytest.raises(InputError, match=r"got a count of .*, expected at least 1; try a positive"):
        sample_vertices(count, 4, np.random.default_rng(0))
    with pytest.raises(InputError, match="at least 1"):
        sample_surface(VERTICES, FACES, count, np.random.default_rng(0))


def test_surface_points_fall_in_proportion_to_area():
    sample = sample_surface(VERTICES, FACES, 20000, np.random.default_rng(0))
    share = np.bincount(sample.faces, minlength=3) / 20000
    np.testing.assert_allclose(share, [0.0, 0.25, 0.75], atol=0.01)
    assert (sample.barycentric >= 0).all()
    np.testing.assert_allclose(sample.barycentric.sum(axis=1), 1.0)
    # Uniform inside a triangle: its points average to the centroid, the weights have variance 1/18.
    np.testing.assert_allclose(sample.barycentric.mean(axis=0), 1 / 3, atol=0.01)
    np.testing.assert_allclose(sample.barycentric.var(axis=0), 1 / 18, rtol=0.05)


def test_density_multiplies_area():
    density = np.array([3.0, 3.0, 3.0, 0.0, 0.0, 3.0])  # faces: 3 * 0.5 and 1 * 1.5
    sample = sample_surface(VERTICES, FACES, 20000, np.random.default_rng(0), density=density)
    share = np.bincount(sample.faces, minlength=3) / 20000
    np.testing.assert_allclose(share, [0.0, 0.5, 0.5], atol=0.012)


def test_surface_without_area():
    with pytest.raises(
        InputError, match=r"total area .* of 0.0, expected a positive.*; try sampling by vertex"
    ):
        sample_surface(VERTICES, FACES[:1], 5, np.random.default_rng(0))
    with pytest.raises(InputError, match="0 faces"):
        sample_surface(VERTICES, FACES[:0], 5, np.random.default_rng(0))


def test_the_same_points_on_an_affine_copy():
    rng = np.random.default_rng(0)
    sample = sample_surface(VERTICES, FACES, 100, rng)
    matrix, shift = rng.standard_normal((3, 3)), rng.standard_normal(3)
    here = positions_of(sample, VERTICES, FACES)
    there = positions_of(sample, VERTICES @ matrix.T + shift, FACES)
    np.testing.assert_allclose(there, here @ matrix.T + shift, atol=1e-12)


def test_corners_are_reproduced_exactly():
    sample = SurfaceSample(np.array([1, 2, 2]), np.eye(3))
    np.testing.assert_array_equal(positions_of(sample, VERTICES, FACES), VERTICES[[0, 3, 4]])
    np.testing.assert_array_equal(
        Anchors.at_vertices(np.array([4, 2])).on(VERTICES), VERTICES[[4, 2]]
    )


def test_a_sample_of_another_triangulation():
    sample = SurfaceSample(np.array([7]), np.array([[1.0, 0.0, 0.0]]))
    with pytest.raises(
        InputError, match=r"got a sample on face 7 for a shape with 3 .*; try the faces"
    ):
        positions_of(sample, VERTICES, FACES)


def test_anchors_through_a_map_and_inside_a_part():
    anchors = Anchors(FACES[1:], np.full((2, 3), 1 / 3))
    swapped = anchors.through(np.array([3, 4, 1, 0, 2, 5]))
    np.testing.assert_array_equal(swapped.corners, [[3, 4, 1], [4, 0, 2]])
    kept = np.array([True, True, True, True, False, True])
    np.testing.assert_array_equal(anchors.inside(kept), [True, False])
    np.testing.assert_array_equal(anchors.take(np.array([1])).corners, FACES[2:])


@given(st.floats(1.0, 50.0), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_density_runs_from_one_to_the_contrast(contrast, seed):
    rng = np.random.default_rng(seed)
    density = draw_density(rng.standard_normal((60, 3)), rng, contrast=contrast)
    np.testing.assert_allclose([density.min(), density.max()], [1.0, contrast], rtol=1e-5)


def test_density_is_smooth_and_defined_on_one_place():
    rng = np.random.default_rng(1)
    points = rng.standard_normal((500, 3))
    density = np.log(draw_density(np.concatenate([points, points + 1e-3]), rng, contrast=10.0))
    assert np.abs(density[:500] - density[500:]).max() < 0.03
    np.testing.assert_array_equal(draw_density(np.ones((4, 3)), rng, contrast=3.0), 1.0)


def test_density_contrast_below_one():
    with pytest.raises(InputError, match=r"contrast of 0.5, expected .* at least 1; try 1"):
        draw_density(VERTICES, np.random.default_rng(0), contrast=0.5)
