"""Parts of shapes: known answers on spheres and on a body with limbs."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from ltenet.bodies.body_pairs import own_generator
from ltenet.data.parts import CUT, HOLES, LIMB, draw_part
from ltenet.data.scans import visible_points
from ltenet.geometry.normals import vertex_areas
from ltenet.shape import Shape


@pytest.fixture(scope="module")
def sphere() -> Shape:
    mesh = trimesh.creation.icosphere(subdivisions=4)
    return Shape(np.asarray(mesh.vertices), faces=np.asarray(mesh.faces), name="sphere")


def share(shape: Shape, kept: np.ndarray) -> float:
    areas = vertex_areas(shape.points, shape.faces)
    return float(areas[kept].sum() / areas.sum())


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_a_cut_is_a_half_space_and_takes_its_share(sphere: Shape, seed: int) -> None:
    kept = draw_part("cut", sphere, np.random.default_rng(seed)).kept
    assert 1 - CUT[1] - 0.03 < share(sphere, kept) < 1 - CUT[0] + 0.03
    # The cap of a sphere: the normal of the plane points from the middle to the rest.
    normal = sphere.points[~kept].mean(axis=0)
    height = sphere.points @ normal
    assert (height[kept].max() - height[~kept].min()) < 0.1 * np.ptp(height)


def test_holes_are_discs(sphere: Shape) -> None:
    kept = draw_part("holes", sphere, np.random.default_rng(0)).kept
    assert 0.6 < share(sphere, kept) < 0.95
    gone = trimesh.Trimesh(sphere.points, sphere.faces, process=False).submesh(
        [np.flatnonzero((~kept)[sphere.faces].all(axis=1))], append=True
    )
    assert 3 <= len(gone.split(only_watertight=False)) <= HOLES


def test_a_view_keeps_the_near_side_and_is_densest_where_it_is_faced(sphere: Shape) -> None:
    part = draw_part("view", sphere, np.random.default_rng(1))
    assert part.towards is not None
    assert part.density is not None
    assert np.linalg.norm(part.towards) == pytest.approx(1)
    height = sphere.points @ part.towards
    assert not part.kept[height < 0].any()
    assert part.kept[height > 0.35].all()
    chance = part.density / vertex_areas(sphere.points, sphere.faces)
    seen = height > 0.1
    assert chance[seen] / height[seen] == pytest.approx(np.ones(seen.sum()), rel=0.06)


@pytest.mark.parametrize("towards", [(0, 0, 1), (1, -2, 0.5)])
def test_a_view_of_a_cloud_keeps_the_near_side(sphere: Shape, towards: tuple[float, ...]) -> None:
    direction = np.array(towards, float)
    kept = visible_points(sphere.points, direction)
    height = sphere.points @ direction / np.linalg.norm(direction)
    assert not kept[height < -0.05].any()
    assert kept[height > 0.25].mean() > 0.95


def test_what_is_behind_another_cloud_is_hidden(sphere: Shape) -> None:
    both = np.concatenate([sphere.points + np.array([0, 0, 3]), sphere.points])
    kept = visible_points(both, np.array([0, 0, 1.0]))
    middle = np.hypot(sphere.points[:, 0], sphere.points[:, 1]) < 0.8
    assert kept[: len(sphere)].mean() > 0.4
    assert not kept[len(sphere) :][middle].any()


def test_a_limb_is_a_named_region_if_there_is_one(sphere: Shape) -> None:
    upper = sphere.points[:, 1] > 0.5
    regions = {"trunk": ~upper, "head": upper}
    for seed in range(3):
        kept = draw_part("limb", sphere, np.random.default_rng(seed), regions=regions).kept
        assert np.array_equal(kept, upper)


def test_a_limb_without_regions_is_one_end_of_the_body() -> None:
    generator = own_generator("human")
    shape = Shape(
        generator.draw(0, 3).vertices.astype(float), faces=generator.templates["human"].faces
    )
    for seed in range(4):
        kept = draw_part("limb", shape, np.random.default_rng(seed)).kept
        assert LIMB[0] - 0.03 < share(shape, kept) < LIMB[1] + 0.01
        faces = shape.faces[kept[shape.faces].all(axis=1)]
        assert len(trimesh.Trimesh(shape.points, faces).split(only_watertight=False)) == 1


@pytest.mark.parametrize("kind", ["cut", "holes", "view", "limb"])
def test_clouds_have_parts_too(sphere: Shape, kind: str) -> None:
    cloud = Shape(sphere.points, name="cloud")
    kept = draw_part(kind, cloud, np.random.default_rng(0)).kept  # type: ignore[arg-type]
    assert 0.05 < kept.mean() < 0.95
    again = draw_part(kind, cloud, np.random.default_rng(0)).kept  # type: ignore[arg-type]
    assert np.array_equal(kept, again)
