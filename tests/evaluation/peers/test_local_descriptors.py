"""Local descriptors: known cells, invariance under rotation, permuted copies."""

from __future__ import annotations

import numpy as np
import pytest
from known_shapes import shuffled, turned

from ltenet.evaluation.peers.descriptor_distances import (
    absolute,
    chi_squared,
    image_correlation,
    standardized,
)
from ltenet.evaluation.peers.fpfh import darboux_angles, fast_point_feature_histogram
from ltenet.evaluation.peers.local_descriptors import LOCAL_DESCRIPTORS, LocalDescriptor
from ltenet.evaluation.peers.point_histograms import shape_context, spin_image
from ltenet.evaluation.peers.shot import CHANNELS, _two_bins, shot
from ltenet.evaluation.peers.surface_descriptors import (
    all_geodesics,
    geodesic_histogram,
    surface_variation,
)
from ltenet.geometry.cloud_normals import shape_normals
from ltenet.shape import Shape


@pytest.mark.parametrize("kind", LOCAL_DESCRIPTORS)
@pytest.mark.parametrize("readoff", ["nearest", "assignment"])
def test_a_permuted_copy_gives_the_permutation(lump: Shape, kind: str, readoff: str) -> None:
    target, place = shuffled(lump)
    found = LocalDescriptor(kind=kind, readoff=readoff)(lump, target)
    assert (found.indices == place).mean() > 0.99


@pytest.mark.parametrize("kind", [kind for kind in LOCAL_DESCRIPTORS if kind != "shape-context"])
@pytest.mark.parametrize("cloud", [False, True])
def test_descriptors_do_not_change_under_rotation(lump: Shape, kind: str, cloud: bool) -> None:
    shape = Shape(lump.points) if cloud else lump
    describe = LOCAL_DESCRIPTORS[kind].of
    first, second = describe(shape), describe(turned(shape, 80))
    # A point on a border of two cells may change sides by rounding.
    assert (np.abs(first - second).max(axis=1) < 1e-6).mean() > 0.97


def test_shape_contexts_turn_unless_their_frame_does(lump: Shape) -> None:
    both = [(s.points, shape_normals(s.points, s.faces)) for s in (lump, turned(lump, 80))]
    world = [shape_context(*one) for one in both]
    local = [shape_context(*one, frame="local") for one in both]
    assert np.abs(world[0] - world[1]).sum(axis=1).mean() > 0.5
    assert (np.abs(local[0] - local[1]).max(axis=1) < 0.01).mean() > 0.95


def test_a_shape_context_counts_where_the_others_are() -> None:
    points = np.array([[0.0, 0, 0], [0, 1, 0], [1, 0, 0]])
    histogram = shape_context(points, np.zeros((3, 3)))
    assert histogram.shape == (3, 6 * 6 * 12)
    np.testing.assert_allclose(histogram.sum(axis=1), 1)
    cells = np.unravel_index(np.flatnonzero(histogram[0]), (6, 6, 12))
    assert set(zip(cells[1].tolist(), cells[2].tolist(), strict=True)) == {(5, 6), (3, 6)}


def test_a_spin_image_has_its_points_at_radius_and_height() -> None:
    # Nearest neighbours are at distance 1, so a bin is 2 wide and the middle at 7.5.
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 4, 0], [0, 4, 1.0]])
    normals = np.tile([0.0, 0, 1], (4, 1))
    image = spin_image(points, normals)[0].reshape(15, 15)
    expected = np.zeros((15, 15))
    expected[0, 7:9] += 0.25  # radius 0.5, height 7.5: four quarters
    expected[1, 7:9] += 0.25
    expected[2, 7:9] += 0.5  # radius 2, height 7.5
    expected[2, 8] += 1  # radius 2, height 8
    np.testing.assert_allclose(image, expected)


def test_spin_images_leave_out_what_looks_away() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0]])
    normals = np.array([[0.0, 0, 1], [0, 0, -1]])
    assert spin_image(points, normals).sum() == 0


def test_darboux_angles_of_known_normals() -> None:
    origin, up = np.zeros(3), np.array([0.0, 0, 1])
    same = darboux_angles(origin, up, np.array([1.0, 0, 0]), up)
    np.testing.assert_allclose(same, [0, 0, 0], atol=1e-12)
    side = np.cross([1.0, 0, 0], up)  # v = d x u
    np.testing.assert_allclose(
        darboux_angles(origin, up, np.array([1.0, 0, 0]), side)[:2], [1, 0], atol=1e-12
    )
    assert darboux_angles(origin, up, np.array([0.0, 1, 1]), up)[1] == pytest.approx(0.5**0.5)


def test_feature_histograms_have_three_blocks_that_sum_to_one(lump: Shape) -> None:
    normals = shape_normals(lump.points, lump.faces)
    found = fast_point_feature_histogram(lump.points, normals)
    np.testing.assert_allclose(found.reshape(-1, 3, 11).sum(axis=2), 1)
    larger = fast_point_feature_histogram(9 * lump.points, normals)
    np.testing.assert_allclose(larger, found, atol=1e-9)


def test_shot_has_unit_length_and_zeros_for_loners(lump: Shape) -> None:
    points = np.concatenate([lump.points, [[50.0, 0, 0]]])
    normals = np.concatenate([shape_normals(lump.points, lump.faces), [[1.0, 0, 0]]])
    found = shot(points, normals, radius=0.4)
    assert found.shape == (601, CHANNELS) == (601, 352)
    np.testing.assert_allclose(np.linalg.norm(found[:-1], axis=1), 1)
    assert not found[-1].any()


def test_shares_of_two_bins_sum_to_one_and_do_not_jump() -> None:
    values = np.linspace(0, 8, 321)
    (low, high), (less, more) = _two_bins(values, 8, around=True)
    spread = np.zeros((321, 8))
    np.add.at(spread, (np.arange(321), low), less)
    np.add.at(spread, (np.arange(321), high), more)
    np.testing.assert_allclose(spread.sum(axis=1), 1)
    assert np.abs(np.diff(spread, axis=0)).max() < 0.026
    np.testing.assert_allclose(spread[0], spread[-1], atol=1e-12)


def test_surface_variation_of_a_plane_and_of_a_ball() -> None:
    rng = np.random.default_rng(0)
    flat = np.concatenate([rng.random((400, 2)), np.zeros((400, 1))], axis=1)
    np.testing.assert_allclose(surface_variation(flat), 0, atol=1e-12)
    solid = rng.standard_normal((400, 3))
    whole = surface_variation(solid)[:, -1]
    assert 0.15 < whole.mean() < 1 / 3


def test_geodesics_of_a_line_and_of_two_parts() -> None:
    line = np.stack([np.arange(10.0), np.zeros(10), np.zeros(10)], axis=1)
    np.testing.assert_allclose(all_geodesics(line, None), np.abs(line[:, :1] - line[:, 0]))
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    faces = np.array([[0, 1, 2], [3, 4, 5]])
    apart = all_geodesics(np.concatenate([corners, corners + 9]), faces)
    assert apart[0, 3] == apart.max() == pytest.approx(2**0.5)


def test_a_geodesic_histogram_is_a_density(lump: Shape) -> None:
    histogram = geodesic_histogram(lump.points, lump.faces)
    np.testing.assert_allclose(histogram.sum(axis=1), 1)
    distances = all_geodesics(lump.points, lump.faces)
    mean = histogram @ np.arange(48) / 47 * distances.max()
    np.testing.assert_allclose(mean, distances.mean(axis=1), rtol=1e-9)


def test_distances_by_plain_formulas() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random((5, 8)), rng.random((6, 8))
    first[first < 0.3] = 0
    second[:, 3] = 0
    a, b = first[:, None], second[None]
    with np.errstate(invalid="ignore"):
        chi = np.nan_to_num((a - b) ** 2 / (a + b)).sum(axis=2) / 2
    np.testing.assert_allclose(chi_squared(first, second), chi, atol=1e-12)
    np.testing.assert_allclose(absolute(first, second), np.abs(a - b).sum(axis=2))
    near = np.delete(np.arange(8), 3)  # channels that vary
    scaled = np.linalg.norm((a - b)[..., near] / second.std(axis=0)[near], axis=2)
    np.testing.assert_allclose(standardized(first[:, near], second[:, near]), scaled)


def test_spin_images_are_compared_where_both_have_points() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.random((3, 40)), rng.random((4, 40))
    first[:, :8], second[:, 30:] = 0, 0
    found = image_correlation(first, second)
    both = slice(8, 30)
    for i in range(3):
        for j in range(4):
            r = max(0.0, np.corrcoef(first[i, both], second[j, both])[0, 1])
            assert found[i, j] == pytest.approx(3 / 19 - np.arctanh(r) ** 2, abs=1e-9)
