import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from ltenet.geometry.rotations import rotation_degrees
from ltenet.matching.alignment import _cover, alignments
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Pair


def lopsided(count: int = 300) -> np.ndarray:
    """A bent rod with a disc at one end: no rotation but the identity maps it onto itself."""
    rng = np.random.default_rng(0)
    along = rng.uniform(-1, 1, count)
    points = np.stack([along, 0.4 * along**2, 0.15 * along**3], axis=1)
    points += 0.05 * rng.normal(size=points.shape)
    disc = rng.normal(size=(count // 3, 3)) * [0.05, 0.3, 0.15] + [1.0, 0.4, 0.15]
    joined = np.concatenate([points, disc])
    joined -= joined.mean(axis=0)
    return joined * 0.5 / np.sqrt(np.square(joined).sum(axis=1).mean())


def turned_pair(rotation: np.ndarray, *, told: bool) -> Pair:
    """A shape and its rotated copy; with features that tell its points apart, or say nothing."""
    points = lopsided()
    features = points - points.min() + 0.1 if told else np.ones_like(points)
    source = EmbeddedShape(torch.from_numpy(points).float(), torch.from_numpy(features).float())
    order = np.random.default_rng(1).permutation(len(points))
    target = EmbeddedShape(
        torch.from_numpy(points[order] @ rotation.T).float(),
        torch.from_numpy(features[order]).float(),
    )
    return Pair(source, target)


@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 10_000), told=st.booleans())
def test_the_rotation_of_a_copy_is_found(seed, told):
    rotation = Rotation.random(random_state=seed).as_matrix()
    best = alignments(turned_pair(rotation, told=told), 1)[0]
    assert rotation_degrees(best.rotation @ rotation.T) < 5


def test_alignments_differ_and_the_best_comes_first():
    found = alignments(turned_pair(np.eye(3), told=False), 4)
    assert 2 <= len(found) <= 4
    costs = [one.cost for one in found]
    assert costs == sorted(costs)
    for number, one in enumerate(found):
        np.testing.assert_allclose(one.rotation @ one.rotation.T, np.eye(3), atol=1e-5)
        assert np.linalg.det(one.rotation) == pytest.approx(1.0, abs=1e-5)
        for other in found[:number]:
            assert rotation_degrees(one.rotation @ other.rotation.T) > 40


def test_features_decide_between_the_ends_of_a_symmetric_shape():
    rng = np.random.default_rng(2)
    half = rng.uniform(0, 1, (200, 3)) * [1.0, 0.2, 0.1]
    points = np.concatenate([half, -half])
    points *= 0.5 / np.sqrt(np.square(points).sum(axis=1).mean())
    end = np.repeat([[1.0, 0.0], [0.0, 1.0]], 200, axis=0)
    source = EmbeddedShape(torch.from_numpy(points).float(), torch.from_numpy(end).float())
    swapped = EmbeddedShape(source.points, torch.from_numpy(end[:, ::-1].copy()).float())
    assert rotation_degrees(alignments(Pair(source, source), 1)[0].rotation) < 10
    turn = alignments(Pair(source, swapped), 1)[0].rotation
    assert turn[0, 0] < -0.9  # the long axis is reversed


def test_no_rotation_is_far_from_all_that_are_tried():
    cover = _cover()
    for rotation in Rotation.random(500, random_state=3).as_matrix():
        cosines = (np.einsum("hij,ij->h", cover, rotation) - 1) / 2
        assert np.degrees(np.arccos(np.clip(cosines.max(), -1, 1))) < 45
