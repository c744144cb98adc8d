"""Pairs of parts: the truth of what is left, and what is missing."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import trimesh

from ltenet.data.pairs import benchmark_pair
from ltenet.data.partial_pairs import LEAST_COMMON, partial_pair
from ltenet.data.shapeset import GroundTruth, ShapeSet, identity_truth
from ltenet.errors import InputError, UsageError
from ltenet.shape import Shape

KINDS = ("cut", "holes", "view", "limb")


class Balls(ShapeSet):
    """A ball and an ellipsoid with the same vertices."""

    name = "balls"
    names = ("ball", "egg")
    categories = ("ball", "ball")
    pairs = np.array([[0, 1]])

    def __init__(self, subdivisions: int = 4, known: np.ndarray | None = None) -> None:
        self.mesh = trimesh.creation.icosphere(subdivisions=subdivisions)
        self.known = known

    def shape(self, index: int) -> Shape:
        points = np.asarray(self.mesh.vertices) * ((1, 1, 1), (1, 2, 1))[index]
        return Shape(points, faces=np.asarray(self.mesh.faces), name=self.names[index])

    def truth(self, source: int, target: int) -> GroundTruth:
        if self.known is not None:
            return GroundTruth(self.known, self.known)
        return identity_truth(len(self.mesh.vertices))


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_truth_where_the_partner_is_left(kind, both):
    drawn = partial_pair(Balls(), 0, kind=kind, both=both, points=200)
    known = np.isfinite(drawn.truth).all(axis=1)
    assert np.array_equal(known, ~drawn.missing)
    assert known.all() != both or not both
    egg = Balls().shape(1).points
    assert np.array_equal(drawn.truth[known], egg[drawn.source_vertices[known]])
    has = drawn.partner >= 0
    assert np.array_equal(drawn.target_vertices[drawn.partner[has]], drawn.source_vertices[has])
    assert drawn.diameter == pytest.approx(4, rel=0.01)  # of the whole, not of the part
    if both:
        assert known.mean() > 0.3


@pytest.mark.parametrize("kind", ["cut", "holes"])
def test_both_parts_have_half_of_the_smaller_in_common(kind):
    for seed in range(5):
        drawn = partial_pair(Balls(), 0, kind=kind, both=True, sampling="full", seed=seed)
        common = np.intersect1d(drawn.source_vertices, drawn.target_vertices)
        assert len(common) == (~drawn.missing).sum()
        assert len(common) >= LEAST_COMMON * min(len(drawn.source), len(drawn.target))


def test_whole_meshes_keep_the_faces_between_what_is_left():
    drawn = partial_pair(Balls(), 0, kind="cut", sampling="full")
    ball = Balls().shape(0)
    inside = np.isin(ball.faces, drawn.source_vertices).all(axis=1)
    back = np.sort(drawn.source_vertices[drawn.source_faces], axis=1)
    expected = np.sort(ball.faces[inside], axis=1)
    assert {tuple(row) for row in back} == {tuple(row) for row in expected}
    assert np.array_equal(drawn.source, ball.points[drawn.source_vertices])
    assert len(drawn.target) == len(ball)


def test_a_camera_has_noise_along_its_view_only():
    drawn = partial_pair(Balls(), 0, kind="view", points=300)
    offsets = drawn.source - Balls().shape(0).points[drawn.source_vertices]
    spread = np.linalg.svd(offsets, compute_uv=False)
    assert spread[1] < 1e-9 * spread[0]
    assert 0.003 < spread[0] / np.sqrt(300) < 0.009  # 0.3 % of 2
    assert np.linalg.norm(offsets, axis=1).min() > 0


def test_turning_leaves_the_parts_alone_and_seeds_change_them():
    options = {"kind": "cut", "points": 150}
    plain, turned = (partial_pair(Balls(), 0, rotate=r, **options) for r in ("none", "any"))
    assert np.array_equal(plain.source_vertices, turned.source_vertices)
    whole = benchmark_pair(Balls(), 0, sampling="independent", points=150, rotate="any")
    assert not np.allclose(plain.target, turned.target)
    # Targets lie as those of whole shapes do: figures of both compare.
    axis = turned.target[np.linalg.norm(plain.target, axis=1).argmax()]
    tip = whole.target[np.linalg.norm(whole.target - whole.target.mean(0), axis=1).argmax()]
    assert abs(axis @ tip) > 0.9 * np.linalg.norm(axis) * np.linalg.norm(tip)
    again = partial_pair(Balls(), 0, rotate="any", **options)
    assert all(
        np.array_equal(getattr(turned, field.name), getattr(again, field.name))
        for field in fields(turned)
        if isinstance(getattr(turned, field.name), np.ndarray)
    )
    other = partial_pair(Balls(), 0, seed=1, **options)
    assert not np.array_equal(plain.source_vertices, other.source_vertices)


def test_points_of_unknown_truth_are_neither_known_nor_missing():
    known = np.arange(0, 2562, 2)
    drawn = partial_pair(Balls(known=known), 0, kind="cut", sampling="full", both=True)
    unknown = np.isnan(drawn.truth).any(axis=1) & ~drawn.missing
    assert np.array_equal(unknown, drawn.source_vertices % 2 == 1)
    sampled = partial_pair(Balls(known=known), 0, kind="cut", points=200)
    assert (sampled.source_vertices % 2 == 0).all()


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(UsageError, match="got shared samples of parts, expected"):
        partial_pair(Balls(), 0, kind="cut", sampling="shared")
    with pytest.raises(InputError, match="got no parts of kind limb with enough points"):
        partial_pair(Balls(subdivisions=2), 0, kind="limb")
