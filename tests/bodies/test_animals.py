from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ltenet.bodies.animal_kinematics import euler_rotations, roll_rotation
from ltenet.bodies.animal_poses import FAMILIES, family_odds
from ltenet.bodies.animal_proportions import DERIVED, IndividualScales, group_members
from ltenet.bodies.animal_rigs import load_rig
from ltenet.bodies.animals import TEMPLATES, AnimalGenerator
from ltenet.bodies.ape_poses import APE_FAMILIES
from ltenet.bodies.bones import (
    pitch_rotation,
    place_bones,
    scaled_skeleton,
    segment_distances,
    skin,
)
from ltenet.bodies.generated import GeneratedBody, part_sizes
from ltenet.errors import InputError


@pytest.fixture(scope="module")
def generator() -> AnimalGenerator:
    return AnimalGenerator()


@pytest.fixture(scope="module")
def bodies(generator: AnimalGenerator) -> list[GeneratedBody]:
    return [generator.draw(5, index) for index in range(600)]


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = vertices.astype(np.float64)[faces].transpose(1, 0, 2)
    return float(np.einsum("fa,fa->", a, np.cross(b, c)) / 6)


def test_any_index_by_itself(generator, bodies):
    fresh = AnimalGenerator()
    for index in (17, 3, 41):
        again = fresh.draw(5, index)
        assert again.vertices.tobytes() == bodies[index].vertices.tobytes()
        assert (again.family, again.category) == (bodies[index].family, bodies[index].category)
    assert generator.draw(6, 3).vertices.tobytes() != bodies[3].vertices.tobytes()


def test_shapes_and_types(generator, bodies):
    for body in bodies[:50]:
        template = generator.templates[body.template]
        count = len(template.mirror)
        assert body.vertices.shape == (count, 3)
        assert body.vertices.dtype == np.float32
        assert 4000 < count < 6000
        assert template.faces.dtype == template.mirror.dtype == template.opposite.dtype == np.int32
        assert template.side.dtype == template.front.dtype == np.int8
        assert template.faces.max() == count - 1


def test_bodies_are_sound(generator, bodies):
    for body in bodies[:200]:
        assert np.isfinite(body.vertices).all()
        faces = generator.templates[body.template].faces
        size = np.prod(np.ptp(body.vertices, axis=0))
        assert 0.01 * size < volume(body.vertices, faces) < size


@pytest.mark.parametrize("name", TEMPLATES)
def test_mirror_is_exact(name):
    rig = load_rig(name)
    template = rig.template
    everyone = np.arange(len(template.mirror))
    np.testing.assert_array_equal(template.mirror[template.mirror], everyone)
    np.testing.assert_array_equal(template.side[template.mirror], -template.side)
    np.testing.assert_array_equal(template.side == 0, template.mirror == everyone)
    known = {tuple(np.roll(f, -int(np.argmin(f)))) for f in template.faces}
    flipped = template.mirror[template.faces][:, ::-1]
    assert all(tuple(np.roll(f, -int(np.argmin(f)))) in known for f in flipped)
    for build in rig.builds.values():
        rest = build.vertices.T
        np.testing.assert_allclose(rest[template.mirror] * (-1, 1, 1), rest, atol=2e-4)
        assert np.all(np.sign(rest[:, 0]) * template.side >= 0)


@pytest.mark.parametrize("name", TEMPLATES)
def test_mesh_is_closed(name):
    faces = load_rig(name).template.faces
    edges = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()


@pytest.mark.parametrize("name", TEMPLATES)
def test_opposite_crosses_the_body_part(name):
    template = load_rig(name).template
    front = template.front == 1
    assert 0.2 < front.mean() < 0.6
    assert 0.2 < (template.front == -1).mean() < 0.6
    across = template.front[template.opposite[template.front != 0]]
    assert (across * template.front[template.front != 0] < 0).mean() > 0.85


def test_front_of_trunk_is_the_belly():
    rig = load_rig("capsule")
    trunk = np.argmax(rig.weights, axis=0) == rig.index("spine0")
    height = rig.builds["horse"].vertices[1]
    front = rig.template.front
    assert height[trunk & (front == 1)].mean() < height[trunk & (front == -1)].mean()
    leg = np.argmax(rig.weights, axis=0) == rig.index("forearm_l")
    ahead = rig.builds["horse"].vertices[2]
    assert ahead[leg & (front == 1)].mean() > ahead[leg & (front == -1)].mean()


def test_every_species_and_family_appears(generator, bodies):
    for name in TEMPLATES:
        drawn = {body.category for body in bodies if body.template == name}
        assert drawn == set(generator.species(name))
    wanted = {"cat", "dog", "wolf", "fox", "lion", "horse", "cow", "hippo", "gorilla", "centaur"}
    assert wanted <= {body.category for body in bodies}
    assert {body.family for body in bodies} == set(FAMILIES) | set(APE_FAMILIES)


def test_restricted_draws(generator):
    for index in range(5):
        body = generator.draw(0, index, template="capsule", category="horse")
        assert (body.template, body.category) == ("capsule", "horse")
        assert generator.draw(0, index, category="gorilla").template == "gorilla"
        assert generator.draw(0, index, template="dog").category in generator.species("dog")


def test_errors_say_what_to_try(generator):
    with pytest.raises(InputError, match=r"template 'bird', expected one of dog, .*; try leav"):
        generator.draw(0, 0, template="bird")
    with pytest.raises(InputError, match=r"species 'bird', expected one of bear, .*; try leav"):
        generator.draw(0, 0, category="bird")
    with pytest.raises(InputError, match=r"'hippo' of .* gorilla, expected one of .*; try with"):
        generator.draw(0, 0, template="gorilla", category="hippo")


@pytest.mark.parametrize("name", ["dog", "capsule", "centaur"])
def test_standing_feet_share_a_plane(generator, name):
    rig = load_rig(name)
    owner = np.array([b.rsplit("_", 1)[0] for b in rig.bones])[np.argmax(rig.weights, axis=0)]
    side = rig.template.side
    seen = 0
    for index in range(120):
        body = generator.draw(9, index, template=name)
        if body.family != "stand":
            continue
        height = body.vertices[:, 1]
        soles = [
            height[(owner == paw) & (side == s)].min() for paw in ("hpaw", "fpaw") for s in (1, -1)
        ]
        assert np.ptp(soles) < 0.06 * np.ptp(height)
        seen += 1
    assert seen >= 5


def test_facing_forwards(generator):
    rig = load_rig("capsule")
    head = np.argmax(rig.weights, axis=0) == rig.index("head")
    tail = np.argmax(rig.weights, axis=0) == rig.index("tail0")
    for build in rig.builds.values():
        assert build.vertices[2, head].mean() > build.vertices[2, tail].mean()


def test_rest_pose_is_reproduced():
    rig = load_rig("dog")
    build = rig.builds["wolf"]
    joints = len(rig.bones)
    ones, still = np.ones((joints, 3)), np.tile(np.eye(3), (joints, 1, 1))
    offsets, axes = scaled_skeleton(rig, build, np.ones(joints), ones)
    placement = place_bones(rig, offsets, axes, still)
    np.testing.assert_allclose(placement.heads, build.heads, atol=1e-9)
    posed = skin(rig, build, ones, axes, placement)
    np.testing.assert_allclose(posed, build.vertices.T, atol=1e-5)


def test_scaled_bones_keep_length_and_thickness_apart():
    rig = load_rig("dog")
    build = rig.builds["wolf"]
    joints = len(rig.bones)
    still = np.tile(np.eye(3), (joints, 1, 1))
    lengths = np.full(joints, 2.0)
    offsets, axes = scaled_skeleton(rig, build, lengths, np.full((joints, 3), 2.0))
    placement = place_bones(rig, offsets, axes, still)
    posed = skin(rig, build, np.full((joints, 3), 2.0), axes, placement)
    # Twice as long and twice as thick is twice the size about the root.
    expected = 2 * (build.vertices.T - build.heads[0]) + build.heads[0]
    np.testing.assert_allclose(posed, expected, atol=1e-4)


def test_rotations_have_their_documented_signs():
    np.testing.assert_allclose(pitch_rotation(90) @ (0, 0, 1), (0, 1, 0), atol=1e-12)
    np.testing.assert_allclose(pitch_rotation(90) @ (0, -1, 0), (0, 0, 1), atol=1e-12)
    np.testing.assert_allclose(roll_rotation(np.pi / 2) @ (0, -1, 0), (1, 0, 0), atol=1e-12)
    angles = np.array([[25.0, 0, 0], [0, 0, 40.0], [10, 20, 30]])
    pitched, rolled, mixed = euler_rotations(angles)
    np.testing.assert_allclose(pitched, pitch_rotation(25), atol=1e-12)
    np.testing.assert_allclose(rolled, roll_rotation(np.radians(40)), atol=1e-12)
    np.testing.assert_allclose(mixed @ mixed.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(
        euler_rotations(np.array([[0, 90.0, 0]]))[0] @ (0, 0, 1), (1, 0, 0), atol=1e-12
    )


def test_segment_distances():
    start = np.array([[0.0, 0, 0], [0, 0, 0]])
    axis = np.array([[1.0, 0, 0], [1, 0, 0]])
    other = np.array([[0.5, 1, -1], [2, 0, 0]])
    other_axis = np.array([[0.0, 0, 2], [1, 0, 0]])
    np.testing.assert_allclose(segment_distances(start, axis, other, other_axis), (1.0, 1.0))


@pytest.mark.parametrize("name", TEMPLATES)
def test_derived_species_scale_their_bones(name):
    rig = load_rig(name)
    for species, derived in DERIVED[name].items():
        build, base = rig.builds[species], rig.builds[derived.base]
        for bone in ("neck0", "tail0", "thigh_l", "humerus_l"):
            if bone not in rig.bones:
                continue
            j, ratio = rig.index(bone), derived.size
            for group, scale in derived.scales.items():
                ratio *= scale[0] if j in group_members(rig, group) else 1.0
            length, before = (np.linalg.norm(b.tails[j] - b.heads[j]) for b in (build, base))
            assert length == pytest.approx(ratio * before, rel=1e-6)


def test_a_lifted_neck_is_steeper():
    rig = load_rig("capsule")
    neck = [rig.builds[s].tails - rig.builds[s].heads for s in ("giraffe", "horse")]
    slope = [np.arctan2(*axes[rig.index("neck0"), 1:]) for axes in neck]
    assert np.degrees(slope[0] - slope[1]) == pytest.approx(24, abs=0.1)


def test_wide_individuals_vary_more_than_others():
    scales = IndividualScales(load_rig("capsule"))
    rng = np.random.default_rng(0)
    spread = [
        np.std([np.log(scales.draw(rng, wide=wide)[0]) for _ in range(200)], axis=0).mean()
        for wide in (True, False)
    ]
    assert spread[0] > 1.5 * spread[1]
    lengths, thickness = scales.draw(rng, wide=True)
    rig = load_rig("capsule")
    left, right = rig.index("thigh_l"), rig.index("thigh_r")
    assert lengths[left] == lengths[right]
    np.testing.assert_array_equal(thickness[left], thickness[right])


def test_bodies_say_how_wide_their_proportions_are(bodies):
    share = np.mean([body.build == "wide" for body in bodies])
    assert {body.build for body in bodies} == {"wide", "species"}
    assert 0.25 < share < 0.45


def test_hoofed_animals_do_not_sit():
    assert "sit" not in family_odds("horse")
    assert "sit" in family_odds("cat")
    assert "rear" not in family_odds("hippo")
    assert "graze" in family_odds("horse")
    assert "graze" not in family_odds("centaur")


def test_size_of_a_part_is_its_thickness_whatever_its_length():
    angle = np.tile(np.linspace(0, 2 * np.pi, 40, endpoint=False), 30)
    along = np.repeat(np.linspace(0, 1, 30), 40)
    ring = np.stack([np.cos(angle), np.sin(angle), 0 * along], axis=1)
    thick, thin = ring + (0, 0, 9) * along[:, None], ring / 4 + (0, 0, -6) * along[:, None]
    weights = np.repeat(np.eye(2), len(ring), axis=1)
    sizes = part_sizes(np.concatenate([thick, thin]), weights)
    np.testing.assert_allclose(sizes, np.repeat([2.0, 0.5], len(ring)), rtol=1e-6)


def test_paws_and_ears_are_smaller_than_the_trunk():
    rig = load_rig("capsule")
    owner = np.argmax(rig.weights, axis=0)
    size = {bone: rig.template.size[owner == rig.index(bone)].mean() for bone in rig.bones}
    for bone in ("fpaw_l", "hpaw_r", "ear_l", "nose", "tail4"):
        assert size[bone] < 0.7 * size["thigh_l"] < size["chest"]


def test_feet_do_not_cross_when_walking(generator):
    rig = load_rig("dog")
    owner = np.argmax(rig.weights, axis=0)

    def apart(vertices, bone):
        left, right = (vertices[owner == rig.index(f"{bone}_{side}")].mean(axis=0) for side in "lr")
        return left - right

    for index in range(150):
        body = generator.draw(4, index, template="dog")
        if body.family in ("walk", "trot"):
            assert apart(body.vertices, "fpaw") @ apart(body.vertices, "scapula") > 0


def test_import_needs_numpy_alone():
    code = (
        "import sys, ltenet.bodies.animals as a; g = a.AnimalGenerator(); g.draw(0, 0); "
        "sys.exit(any(m in sys.modules for m in ('torch', 'scipy', 'skimage')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
