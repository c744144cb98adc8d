"""One shape of a pair: what is left of it, and how points are drawn on that."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import KDTree

from ltenet.bodies.body_pairs import own_generator
from ltenet.data.augmentation import Augmentation, cut_region
from ltenet.data.drawn_side import SideDrawer, with_common_part
from ltenet.data.pair_config import PairConfig
from ltenet.data.scans import curvatures, visible_vertices
from ltenet.data.training_pairs import TrainingPairs
from ltenet.geometry.normals import face_areas

PARTS = {
    "cut": {"cut_chance": 1.0},
    "view": {"view_chance": 1.0},
    "limb": {"limb_chance": 1.0},
    "holes": {"holes_chance": 1.0},
}


def side(seed=0, **options):
    generator = own_generator("human")
    body = generator.draw(0, seed)
    template = generator.templates["human"]
    drawer = SideDrawer(Augmentation(**options))
    return drawer.draw(body.vertices, template, True, np.random.default_rng(seed)), template


def area_left(drawn):
    areas = face_areas(drawn.vertices, drawn.faces)
    return areas[drawn.kept[drawn.faces].all(axis=1)].sum() / areas.sum()


def test_a_plane_cut_leaves_exactly_one_side():
    points = np.random.default_rng(0).normal(size=(1000, 3))
    direction = np.array([1.0, 2.0, -0.5])
    region = cut_region(direction, points, 0.3)
    along = points @ direction
    kept = region.keeps(points)
    assert kept.sum() == 700
    assert along[kept].max() < along[~kept].min()


@pytest.mark.parametrize("seed", range(4))
def test_cuts_take_the_share_asked_for(seed):
    drawn, _ = side(seed, cut_chance=1.0, cut=(0.2, 0.6))
    assert 0.3 < area_left(drawn) < 0.88
    # One plane parts what is left from what is gone.
    normal = np.linalg.lstsq(
        np.c_[drawn.vertices, np.ones(len(drawn.kept))], 2.0 * drawn.kept - 1, rcond=None
    )[0]
    assert (
        (np.c_[drawn.vertices, np.ones(len(drawn.kept))] @ normal > 0) == drawn.kept
    ).mean() > 0.8


def test_a_view_shows_less_than_half():
    for seed in range(4):
        drawn, _ = side(seed, view_chance=1.0)
        assert 0.15 < area_left(drawn) < 0.5


def test_a_limb_is_a_region_of_the_template():
    seen = set()
    for seed in range(12):
        drawn, template = side(seed, limb_chance=1.0)
        names = [
            name for name, mask in template.regions.items() if np.array_equal(mask, drawn.kept)
        ]
        assert len(names) == 1
        seen.add(names[0])
    assert len(seen) > 3


def test_holes_are_small_and_many():
    drawn, _ = side(3, holes_chance=1.0, holes=4, hole_area=(0.01, 0.02))
    assert 0.85 < area_left(drawn) < 0.999


@pytest.mark.parametrize("what", ["human", "animal"])
def test_regions_are_parts_of_every_template(what):
    for template in own_generator(what).templates.values():
        assert len(template.regions) >= 4
        for name, mask in template.regions.items():
            assert mask.shape == template.mirror.shape, name
            assert 0.01 < mask.mean() < 0.9, (template.name, name)
            if name.endswith(".L"):
                other = template.regions[name[:-1] + "R"]
                assert (mask[template.mirror] == other).mean() > 0.98
                assert template.side[mask].mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("sampling", ["shared", "independent"])
@pytest.mark.parametrize("part", PARTS)
def test_truth_stays_exact_and_known_where_the_partner_is_left(part, sampling):
    config = PairConfig(
        sampling=sampling, by="area", points=(200, 200), radius=None,
        augmentation=Augmentation(**PARTS[part]),
    )  # fmt: skip
    whole = PairConfig(sampling=sampling, by="area", points=(4000, 4000), radius=None)
    known = []
    for index in range(4):
        pair = TrainingPairs(config, seed=1).draw(index)
        assert pair.source.shape == pair.target_truth.shape == (200, 3)
        bodies = TrainingPairs(whole, seed=1)._draw_bodies(index, np.random.default_rng(0))
        # Up to the shift of the centre, the truth lies on the surface of the other body.
        dense = bodies[1].vertices
        shift = pair.source_truth[0] - _on_surface(pair, dense)
        distance = KDTree(dense + shift).query(pair.source_truth)[0]
        assert distance.max() < 0.12
        if sampling == "shared":
            met = KDTree(pair.target).query(pair.source_truth)[0] < 1e-6
            assert pair.source_known[met].all()
        known.append(min(pair.source_known.mean(), pair.target_known.mean()))
        assert pair.target_known.any()
        assert len(pair.families) == 2
        assert all(pair.families)
    assert min(known) < 1.0


def _on_surface(pair, dense):
    """Where the first truth lies on the uncentred body: matched by the distances to the others."""
    gaps = np.linalg.norm(pair.source_truth - pair.source_truth[0], axis=1)
    far = pair.source_truth[gaps.argsort()[::20]] - pair.source_truth[0]  # (10, 3)
    tree = KDTree(dense)
    cost = sum(tree.query(dense + step)[0] for step in far)
    return dense[int(np.argmin(cost))]


def test_pairs_without_a_common_part_get_a_whole_target():
    left, template = side(0, limb_chance=1.0)
    arm = left._replace(kept=template.regions["arm.L"])
    leg = left._replace(kept=template.regions["leg.R"])
    assert with_common_part(arm, leg).kept.all()
    assert with_common_part(arm, arm).kept is arm.kept


def test_even_points_are_even_and_on_the_surface():
    rng = np.random.default_rng(0)
    spreads = []
    for chance in (0.0, 1.0):
        drawn, _ = side(2, even_chance=chance)
        taken = np.zeros(len(drawn.kept), bool)
        points = drawn.draw(800, rng, taken=taken).on(drawn.vertices)
        gaps = KDTree(points).query(points, k=2)[0][:, 1]
        spreads.append(gaps.std() / gaps.mean())
    assert spreads[1] < 0.8 * spreads[0]


def test_adaptive_density_prefers_bent_surfaces():
    drawn, _ = side(1, curvature=4.0)
    bent = curvatures(drawn.vertices, drawn.faces)
    assert drawn.density is not None
    assert np.corrcoef(np.log(drawn.density), np.log(bent))[0, 1] > 0.99


def test_options_that_are_off_leave_the_body_whole():
    drawn, _ = side(0)
    assert drawn.kept.all()
    assert drawn.density is None
    assert not drawn.even


def test_a_view_of_a_person_from_the_front_shows_the_face():
    generator = own_generator("human")
    template = generator.templates["human"]
    seen = visible_vertices(template.rest, template.faces, np.array([0.0, 0.0, 1.0]))
    trunk = template.regions["trunk"]
    assert seen[trunk & (template.front == 1)].mean() > 0.7
    assert seen[trunk & (template.front == -1)].mean() < 0.1
