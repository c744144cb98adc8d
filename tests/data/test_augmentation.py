import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.data.augmentation import (
    Augmentation,
    add_noise,
    augment,
    draw_crop,
    draw_similarity,
    draw_uneven,
    random_rotation,
)
from ltenet.errors import InputError

POINTS = np.random.default_rng(0).standard_normal((200, 3))
SEEDS = st.integers(0, 2**32)


def test_everything_off_is_the_identity():
    off = Augmentation()
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(augment(POINTS, off, rng), POINTS)
    similarity = draw_similarity(off, rng)
    np.testing.assert_array_equal(similarity.matrix, np.eye(4))
    np.testing.assert_array_equal(similarity.apply(POINTS), POINTS)
    assert draw_crop(off, POINTS, rng) is None
    assert draw_uneven(off, POINTS, rng) is None


def test_the_input_is_left_alone():
    before = POINTS.copy()
    augment(POINTS, Augmentation(yaw=90, scale=0.5, noise=0.1), np.random.default_rng(0))
    np.testing.assert_array_equal(POINTS, before)


@given(st.floats(0, 180), st.floats(0, 45), st.floats(0, 0.9), SEEDS)
@settings(max_examples=50, deadline=None)
def test_a_similarity_keeps_to_its_limits(yaw, tilt, scale, seed):
    augmentation = Augmentation(yaw=yaw, tilt=tilt, scale=scale)
    rotation, factor = draw_similarity(augmentation, np.random.default_rng(seed))
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) > 0
    assert 1 - scale <= factor <= 1 + scale
    lean = np.degrees(np.arccos(np.clip(rotation[1, 1], -1, 1)))  # the y axis leans by the tilt
    assert lean <= tilt + 1e-5


def test_yaw_alone_keeps_heights_and_turns_up_to_its_limit():
    rng = np.random.default_rng(0)
    rotations = [draw_similarity(Augmentation(yaw=30), rng).rotation for _ in range(300)]
    np.testing.assert_allclose([r[1] for r in rotations], [[0, 1, 0]] * 300, atol=1e-15)
    angles = np.degrees([np.arctan2(r[0, 2], r[0, 0]) for r in rotations])
    assert -30 <= angles.min() < -28
    assert 28 < angles.max() <= 30


def test_switching_one_effect_leaves_the_other_alone():
    one = draw_similarity(Augmentation(scale=0.2), np.random.default_rng(5))
    two = draw_similarity(Augmentation(scale=0.2, yaw=180, tilt=10), np.random.default_rng(5))
    assert one.scale == two.scale


def test_noise_has_its_deviation():
    noisy = add_noise(np.zeros((20000, 3)), 0.02, np.random.default_rng(0))
    np.testing.assert_allclose(noisy.std(axis=0), 0.02, rtol=0.03)
    np.testing.assert_allclose(noisy.mean(axis=0), 0, atol=1e-3)
    with pytest.raises(InputError, match=r"deviation of -1.0, expected at least 0; try 0"):
        add_noise(POINTS, -1.0, np.random.default_rng(0))


@given(st.floats(0.01, 0.99), SEEDS)
@settings(max_examples=50, deadline=None)
def test_a_crop_removes_at_most_its_share(crop, seed):
    region = draw_crop(Augmentation(crop=crop), POINTS, np.random.default_rng(seed))
    assert region is None or region.keeps(POINTS).sum() >= (1 - crop) * len(POINTS)


def test_crops_are_half_spaces_and_balls():
    rng = np.random.default_rng(0)
    regions = [draw_crop(Augmentation(crop=0.6), POINTS, rng) for _ in range(60)]
    assert {region.kind for region in regions} == {"plane", "ball"}
    for region in regions:
        kept = region.keeps(POINTS)
        if region.kind == "plane":
            reach = POINTS @ region.anchor
        else:
            reach = np.linalg.norm(POINTS - region.anchor, axis=1)
        assert reach[kept].max() < reach[~kept].min(initial=np.inf)
    removed = np.array([1 - region.keeps(POINTS).mean() for region in regions])
    assert removed.max() > 0.5
    assert removed.min() < 0.1


def test_the_chance_of_a_crop():
    rng = np.random.default_rng(0)
    augmentation = Augmentation(crop=0.5, crop_chance=0.25)
    cropped = [draw_crop(augmentation, POINTS, rng) is not None for _ in range(1000)]
    assert np.mean(cropped) == pytest.approx(0.25, abs=0.04)


def test_uneven_density_stays_below_its_contrast():
    rng = np.random.default_rng(0)
    contrasts = [
        np.ptp(np.log(draw_uneven(Augmentation(density=8), POINTS, rng))) for _ in "x" * 80
    ]
    assert 0 < min(contrasts) < 0.3
    assert 1.8 < max(contrasts) <= np.log(8) + 1e-5


def test_detail_prefers_small_parts():
    size = np.geomspace(0.2, 5, 200)
    rng = np.random.default_rng(0)
    exponents = []
    for _ in range(80):
        density = draw_uneven(Augmentation(detail=2), POINTS, rng, size=size)
        slopes = np.diff(np.log(density)) / np.diff(np.log(size))
        np.testing.assert_allclose(slopes, slopes[0], rtol=1e-9)
        exponents.append(-slopes[0])
    assert 0 <= min(exponents) < 0.1
    assert 1.9 < max(exponents) <= 2


def test_detail_and_density_multiply():
    size = np.geomspace(0.2, 5, 200)
    smooth = draw_uneven(Augmentation(density=8), POINTS, np.random.default_rng(1))
    both = draw_uneven(
        Augmentation(density=8, detail=2), POINTS, np.random.default_rng(1), size=size
    )
    ratio = np.log(both / smooth) / np.log(size)
    np.testing.assert_allclose(ratio, ratio[0])
    assert -2 <= ratio[0] < 0


def test_detail_needs_sizes():
    with pytest.raises(
        InputError, match=r"got detail = 1.* without sizes .*, expected .*; try set"
    ):
        draw_uneven(Augmentation(detail=1), POINTS, np.random.default_rng(0))


def test_random_rotations():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(random_rotation("none", rng), np.eye(3))
    np.testing.assert_allclose(random_rotation("yaw", rng)[1], [0, 1, 0], atol=1e-15)
    rotations = np.stack([random_rotation("any", rng) for _ in range(4000)])
    np.testing.assert_allclose(
        rotations @ rotations.transpose(0, 2, 1), [np.eye(3)] * 4000, atol=1e-9
    )
    # Uniform over all rotations: every entry has mean 0 and mean square 1/3.
    np.testing.assert_allclose(rotations.mean(axis=0), 0, atol=0.04)
    np.testing.assert_allclose((rotations**2).mean(axis=0), 1 / 3, atol=0.02)


@pytest.mark.parametrize(
    "options",
    [
        {"yaw": -1},
        {"yaw": 181},
        {"tilt": -1},
        {"scale": 1.0},
        {"noise": -0.1},
        {"noise": float("nan")},
        {"crop": 1.0},
        {"crop_chance": 1.5},
        {"density": 0.5},
        {"detail": -1},
        {"detail": 11},
        {"curvature": -1},
        {"wobble": -0.1},
        {"warp_chance": -0.1},
        {"warp": 0.0},
        {"cut_chance": 1.1},
        {"cut": (0.5, 0.2)},
        {"view_chance": -0.1},
        {"limb_chance": 1.5},
        {"holes_chance": 2},
        {"holes": 0},
        {"hole_area": (0.0, 0.1)},
        {"even_chance": 1.5},
    ],
)
def test_values_out_of_range(options):
    (name,) = options
    with pytest.raises(
        InputError, match=rf"augmentation: got {name} = .*, expected .*; try leaving it out"
    ):
        Augmentation(**options)
