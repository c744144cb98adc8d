"""A mesh bent onto another: near its surface, hardly folded, its own points and faces kept."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.transform import Rotation

from ltenet.bodies.body_pairs import own_generator
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError
from ltenet.shape import Shape
from ltenet.transferring.folds import face_rotations, folded_faces
from ltenet.transferring.surface import Surface
from ltenet.transferring.transfer import transfer
from ltenet.transferring.unfolding import unfolded
from ltenet.transferring.wrapping import wrap


@cache
def body(index: int, seed: int = 0) -> Shape:
    generator = own_generator("human")
    drawn = generator.draw(seed, index)
    return Shape(points=drawn.vertices, faces=generator.templates[drawn.template].faces)


def grid(side: int) -> Shape:
    """Return a flat square sheet in x and y."""
    x, y = np.meshgrid(np.arange(side), np.arange(side), indexing="ij")
    points = np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3).astype(float)
    corner = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).reshape(-1)
    faces = [(c, c + side, c + side + 1) for c in corner] + [
        (c, c + side + 1, c + 1) for c in corner
    ]
    return Shape(points=points, faces=np.array(faces))


# Folds.


def test_turning_and_scaling_folds_nothing() -> None:
    sheet = grid(8)
    turn = Rotation.from_rotvec([1.0, 2.0, -0.5]).as_matrix()
    assert sheet.faces is not None
    after = 2 * sheet.points @ turn.T + 5
    assert not folded_faces(sheet.points, after, sheet.faces).any()
    rotations = face_rotations(sheet.points, after, sheet.faces)
    np.testing.assert_allclose(rotations, np.broadcast_to(turn, rotations.shape), atol=1e-9)


def test_rolling_a_sheet_up_folds_nothing() -> None:
    sheet = grid(20)
    angle = sheet.points[:, 0] / 20 * 2 * np.pi
    rolled = np.stack([np.sin(angle), sheet.points[:, 1] / 3, np.cos(angle)], axis=1)
    assert sheet.faces is not None
    assert not folded_faces(sheet.points, rolled, sheet.faces).any()


def pulled_over() -> tuple[Shape, NDArray[np.float64]]:
    """Return a sheet, and its points with one moved across its neighbours."""
    sheet = grid(9)
    moved = sheet.points.copy()
    moved[4 * 9 + 4] += (1.6, 0.3, 0)
    return sheet, moved


def test_a_point_that_is_pulled_over_its_neighbours_folds_the_triangles_behind_it() -> None:
    sheet, moved = pulled_over()
    assert sheet.faces is not None
    folded = folded_faces(sheet.points, moved, sheet.faces)
    # In a plane there is a second way to tell: the sign of the area.
    corners = moved[sheet.faces, :2]
    first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
    area = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    assert 0 < folded.sum() < 7
    assert np.array_equal(folded, area < 0)


def test_it_springs_back_and_the_rest_stays() -> None:
    sheet, moved = pulled_over()
    assert sheet.faces is not None
    smooth = unfolded(sheet.points, moved, sheet.faces)
    assert not folded_faces(sheet.points, smooth, sheet.faces).any()
    assert np.linalg.norm(smooth - sheet.points, axis=1).max() < 0.3
    far = np.abs(sheet.points - (4, 4, 0)).max(axis=1) > 3
    np.testing.assert_allclose(smooth[far], moved[far], atol=2e-3)


# Wrapping.


def quality(bent: Shape, source: Shape, target: Shape) -> tuple[float, float, float]:
    """Mean and 95 % distance to the surface in diameters, and the share of folded triangles."""
    away = Surface(target).nearest(bent.points).distances / target.diameter
    assert source.faces is not None
    folded = folded_faces(source.points, bent.points, source.faces).mean()
    return float(away.mean()), float(np.quantile(away, 0.95)), float(folded)


def noisy(target: Shape, share: float, wrong: float, seed: int = 0) -> Correspondence:
    """Return the true map with noise of a share of the diameter, and a share of wrong partners."""
    rng = np.random.default_rng(seed)
    moved = target.points + rng.normal(size=target.points.shape) * share * target.diameter / 3**0.5
    indices = KDTree(target.points).query(moved)[1]
    lost = rng.random(len(target)) < wrong
    indices[lost] = rng.integers(0, len(target), lost.sum())
    return Correspondence(indices, len(target))


@pytest.mark.slow
def test_a_body_takes_the_form_of_another_in_spite_of_a_bad_map() -> None:
    source, target = body(0), body(1)
    corr = noisy(target, 0.03, 0.1).attached(source, target)
    bent = transfer(corr, source, onto=target, what="deformation")
    assert isinstance(bent, Shape)
    assert np.array_equal(bent.faces, source.faces)  # type: ignore[arg-type]
    mean, most, folded = quality(bent, source, target)
    assert mean < 0.002
    assert most < 0.01
    assert folded < 0.01
    # Bodies share their numbering: each point should be where its twin is.
    assert np.linalg.norm(bent.points - target.points, axis=1).mean() < 0.01 * target.diameter


@pytest.mark.slow
def test_the_target_can_be_bent_onto_the_source() -> None:
    source, target = body(0), body(1)
    corr = noisy(target, 0.01, 0.0).attached(source, target)
    bent = transfer(corr, target, onto=source, what="deformation")
    assert isinstance(bent, Shape)
    mean, _, folded = quality(bent, target, source)
    assert mean < 0.003
    assert folded < 0.01


@pytest.mark.slow
def test_parts_without_partner_follow_the_others() -> None:
    """The upper body is unmatched; the target is the source turned as a whole."""
    source = body(2)
    turn = Rotation.from_rotvec([0.0, 0.8, 0.3]).as_matrix()
    target = replace(source, points=source.points @ turn.T + (1, 2, 3))
    places = target.points.copy()
    places[source.points[:, 1] > np.median(source.points[:, 1])] = np.nan
    bent = wrap(source, target, places, np.ones(len(source)))
    assert np.linalg.norm(bent.points - target.points, axis=1).mean() < 0.01 * target.diameter
    assert bent.folded < 0.01


@pytest.mark.slow
def test_clouds_bend_too() -> None:
    rng = np.random.default_rng(0)
    ball = rng.normal(size=(600, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    source, egg = Shape(points=ball), Shape(points=ball * (1, 1.6, 1) + 4)
    bent = wrap(source, egg, egg.points, np.ones(600))
    assert np.linalg.norm(bent.points - egg.points, axis=1).mean() < 0.02 * egg.diameter
    assert bent.folded == 0


@pytest.mark.slow
def test_a_true_map_is_followed_and_the_result_is_in_the_frame_of_the_target() -> None:
    # The hands of the first one rest on the thighs, those of the second one are up.
    source, target = body(0, 5).normalized(), body(1, 5).normalized()
    corr = Correspondence(np.arange(len(source)), len(target), source=source, target=target)
    bent = transfer(corr, source, onto=target, what="deformation")
    assert isinstance(bent, Shape)
    away = np.linalg.norm(bent.restored() - body(1, 5).points, axis=1) / body(1, 5).diameter
    assert away.mean() < 0.003
    assert np.quantile(away, 0.98) < 0.015
    mean, _, folded = quality(bent, source, target)
    assert mean < 0.0005
    assert folded < 0.005


def test_too_few_partners() -> None:
    source = body(0)
    places = np.full_like(source.points, np.nan)
    places[:3] = 0
    with pytest.raises(InputError, match="at least 4"):
        wrap(source, body(1), places, np.ones(len(source)))
