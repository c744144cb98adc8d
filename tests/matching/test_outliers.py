"""Outliers are left out and stay unmatched; clean shapes keep every point."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from scipy.spatial import KDTree

from ltenet.bodies.body_pairs import own_generator
from ltenet.errors import InputError
from ltenet.geometry.winding import signed_volume
from ltenet.matching.candidates import REVERSED
from ltenet.matching.cleaning import reflected
from ltenet.matching.matcher import match
from ltenet.matching.outliers import inliers, part_of
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.judge import map_scores
from ltenet.refinement.pair import Pair
from ltenet.shape import Shape


def body(what: str = "human", index: int = 0) -> Shape:
    generator = own_generator(what)
    drawn = generator.draw(77, index)
    faces = generator.templates["human"].faces.astype(np.int64) if what == "human" else None
    return Shape(drawn.vertices.astype(np.float64), faces, name=what)


def some(shape: Shape, count: int, seed: int = 0, shares: np.ndarray | None = None) -> Shape:
    rng = np.random.default_rng(seed)
    return shape.subset(rng.choice(len(shape), count, replace=False, p=shares))


def cluttered(shape: Shape, share: float = 0.2, seed: int = 0) -> Shape:
    low, high = shape.points.min(axis=0), shape.points.max(axis=0)
    clutter = np.random.default_rng(seed).uniform(low, high, (int(share * len(shape)), 3))
    return Shape(np.concatenate([shape.points, clutter]), shape.faces, name=shape.name)


def strewn(shape: Shape, far: float, seed: int = 0) -> Shape:
    strays = np.random.default_rng(seed).normal(size=(10, 3)) * far + far
    return Shape(np.concatenate([shape.points, strays]), shape.faces, name=shape.name)


@pytest.mark.parametrize("what", ["human", "animal"])
@pytest.mark.parametrize("count", [300, 1024, 4096])
def test_clean_shapes_keep_every_point(what: str, count: int) -> None:
    for index in range(3):
        whole = body(what, index)
        heights = whole.points[:, 1]
        dense = np.exp(1.5 * (heights - heights.mean()) / heights.std())
        front = whole.subset(np.flatnonzero(whole.points[:, 2] > np.median(whole.points[:, 2])))
        for shape in (
            whole,
            Shape(whole.points),
            some(whole, count),
            some(whole, count, shares=dense / dense.sum()),
            some(front, min(count, len(front))),
            Shape(some(whole, count).points * 1e6 + 1e7),
        ):
            np.testing.assert_array_equal(inliers(shape), np.arange(len(shape)))


@pytest.mark.parametrize("mesh", [True, False])
def test_clutter_is_found(mesh: bool) -> None:
    whole = body() if mesh else some(body(), 4096)
    shape = cluttered(whole)
    kept = np.zeros(len(shape), bool)
    kept[inliers(shape)] = True
    assert kept[: len(whole)].mean() > 0.98
    nearest = np.linalg.norm(
        shape.points[len(whole) :, None] - whole.points[None, ::4], axis=2
    ).min(axis=1)
    far = nearest > 0.1 * whole.diameter
    assert far.sum() > 50
    assert kept[len(whole) :][far].mean() < 0.05


@pytest.mark.parametrize("what", ["human", "animal"])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_little_clutter_is_found_and_surfaces_stay(what: str, share: float) -> None:
    lost, left = [], []
    for index in range(4):
        whole = some(body(what, index), 1024, seed=index)
        shape = cluttered(whole, share, seed=index)
        kept = np.zeros(len(shape), bool)
        kept[inliers(shape)] = True
        nearest = KDTree(body(what, index).points).query(shape.points[1024:])[0]
        far = nearest > 0.05 * whole.diameter
        lost.append(1 - kept[:1024].mean())
        left.append(kept[1024:][far].mean())
    assert np.mean(lost) < 0.01
    assert np.mean(left) < 0.2


def test_uneven_scans_keep_nearly_every_point() -> None:
    for what in ("human", "animal"):
        for index in range(4):
            whole = body(what, index)
            away = np.linalg.norm(whole.points - whole.points[17], axis=1)
            dense = np.where(away < np.quantile(away, 0.1), 9.0, 1.0)  # half of the points there
            shape = some(whole, 1024, shares=dense / dense.sum())
            assert len(inliers(shape)) > 0.997 * len(shape)


@pytest.mark.parametrize("far", [10.0, 1000.0])
@pytest.mark.parametrize("mesh", [True, False])
def test_strays_are_found(mesh: bool, far: float) -> None:
    whole = body() if mesh else some(body(), 500)
    np.testing.assert_array_equal(inliers(strewn(whole, far)), np.arange(len(whole)))
    one = Shape(np.concatenate([whole.points, [[far, 0.0, 0.0]]]), whole.faces)
    np.testing.assert_array_equal(inliers(one), np.arange(len(whole)))


def test_part_of_a_mesh_keeps_faces_between_its_points() -> None:
    points = np.random.default_rng(0).normal(size=(5, 3))
    part = part_of(Shape(points, np.array([[0, 1, 2], [1, 3, 4]])), np.array([1, 3, 4]))
    np.testing.assert_array_equal(part.points, points[[1, 3, 4]])
    np.testing.assert_array_equal(part.faces, [[0, 1, 2]])


def test_strays_change_nothing_else_in_a_map(caplog: pytest.LogCaptureFixture) -> None:
    source, target = some(body(index=0), 300), some(body(index=1), 320, seed=1)
    options = {"model": "human", "points": 200, "threshold": 0.0}
    clean = match(source, target, **options)
    assert clean.details["outliers"] == [0, 0]
    with caplog.at_level(logging.WARNING):
        found = match(strewn(source, 50.0), strewn(target, 400.0), **options)
    assert found.details["outliers"] == [10, 10]
    assert "10 of 310 points are outliers" in caplog.text
    np.testing.assert_array_equal(found.indices[:300], clean.indices)
    np.testing.assert_array_equal(found.scores[:300], clean.scores)
    assert (found.indices[300:] == -1).all()
    assert not found.thresholded(0.0).matched[300:].any()
    assert found.target_size == 330


@pytest.mark.slow
def test_clutter_costs_little_accuracy() -> None:
    shares = {True: [], False: []}
    for index in (2, 4, 6):
        source, target = body(index=index), body(index=index + 1)
        rows = np.random.default_rng(0).choice(len(source), 1024, replace=False)
        for dirty in (False, True):
            shapes = [source.subset(rows), some(target, 1024, seed=1)]
            if dirty:
                shapes = [cluttered(shape, seed=index) for shape in shapes]
            places = match(*shapes, model="human", threshold=0.0).positions()[:1024]
            errors = np.linalg.norm(places - target.points[rows], axis=1) / target.diameter
            shares[dirty].append(np.mean(np.nan_to_num(errors, nan=1.0) <= 0.05))
    assert np.mean(shares[True]) > np.mean(shares[False]) - 0.03


@pytest.mark.parametrize(
    ("columns", "words"), [([0], "on a line"), ([0, 1], "on a plane"), ([], "1 places")]
)
def test_shapes_without_volume_are_refused(columns: list[int], words: str) -> None:
    points = np.zeros((200, 3))
    points[:, columns] = np.random.default_rng(0).normal(size=(200, len(columns)))
    with pytest.raises(InputError, match=words):
        match(Shape(points), some(body(), 100), model="human")


def test_points_in_two_places_are_refused() -> None:
    points = np.repeat([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], 60, axis=0)
    with pytest.raises(InputError, match="in 2 places"):
        match(points, some(body(), 100), model="human")


@pytest.mark.slow
def test_a_mirrored_source_is_matched_through_the_mirror() -> None:
    source, target = some(body(index=0), 300), some(body(index=1), 300, seed=1)
    options = {"model": "human", "points": 200, "threshold": 0.0}
    straight = match(source, target, **options)
    through = match(reflected(source), target, mirror=True, **options)
    np.testing.assert_array_equal(through.indices, straight.indices)
    assert through.details["mirror"] is True
    np.testing.assert_array_equal(through.source.points, reflected(source).points)


def test_reflected_faces_look_outwards() -> None:
    whole = body()
    mirrored = reflected(whole)
    before = signed_volume(whole.points, whole.faces)
    assert signed_volume(mirrored.points, mirrored.faces) == pytest.approx(before)


def test_a_map_onto_the_mirror_image_reverses_orientation() -> None:
    points = torch.tensor(some(body(), 500).normalized().points).float()
    features = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    for flip, expected in ((1.0, False), (-1.0, True)):
        target = EmbeddedShape(points * torch.tensor([flip, 1.0, 1.0]), features)
        scores = map_scores(Pair(EmbeddedShape(points, features), target), torch.arange(500))
        assert (scores.mirrored > REVERSED) is expected


def test_a_mesh_turned_inside_out_is_told(caplog: pytest.LogCaptureFixture) -> None:
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    rings = [
        np.c_[r * np.cos(angles), np.full(16, y), 0.5 * r * np.sin(angles)]
        for y, r in ((0.2, 0.5), (0.4, 0.8), (0.6, 1.0), (0.8, 0.6))
    ]
    points = np.concatenate([*rings, [[0, 0, 0], [0, 1, 0]]])
    faces = []
    for i in range(16):
        j = (i + 1) % 16
        faces += [[64, i, j], [65, 48 + j, 48 + i]]
        for ring in range(3):
            a, b = 16 * ring, 16 * (ring + 1)
            faces += [[a + i, b + i, b + j], [a + i, b + j, a + j]]
    outwards = Shape(points, np.array(faces), name="pot")
    inwards = Shape(points, np.array(faces)[:, ::-1], name="pot")
    with caplog.at_level(logging.WARNING):
        found = match(inwards, outwards, model="human", orient="none", refine="none")
        assert found.details["inside_out"] == [True, False]
        assert "the faces look inwards" in caplog.text
        caplog.clear()
        match(inwards, outwards, model="human", orient="none", refine="none", mirror=True)
    assert "the faces look inwards" not in caplog.text
