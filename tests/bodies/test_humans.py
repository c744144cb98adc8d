from __future__ import annotations

import numpy as np
import pytest

from ltenet.bodies.human_angles import Reach
from ltenet.bodies.human_builds import (
    BUILDS,
    SEGMENTS,
    HumanBuild,
    Phenotype,
    draw_build,
    draw_phenotype,
)
from ltenet.bodies.human_poses import FAMILIES, PREFERRED, draw_pose, draw_preferred
from ltenet.bodies.human_skeleton import pose_rotations
from ltenet.bodies.humans import TOLERANCE, TOUCHING, BodyModel, HumanGenerator, body_model


@pytest.fixture(scope="module")
def generator() -> HumanGenerator:
    return HumanGenerator()


@pytest.fixture(scope="module")
def model() -> BodyModel:
    return body_model()


@pytest.fixture(scope="module")
def bodies(generator: HumanGenerator) -> list:
    return [generator.draw(seed=5, index=index) for index in range(100)]


def volume(vertices: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = np.moveaxis(vertices[faces].astype(np.float64), 1, 0)
    return float((a * np.cross(b, c)).sum() / 6)


def test_draws_depend_on_seed_and_index_only(generator: HumanGenerator) -> None:
    first = [generator.draw(3, index).vertices.tobytes() for index in (0, 1, 2)]
    second = [HumanGenerator().draw(3, index).vertices.tobytes() for index in (2, 0, 1)]
    assert first == [second[1], second[2], second[0]]
    assert generator.draw(4, 0).vertices.tobytes() != first[0]
    assert len(set(first)) == 3


def test_bodies_are_plain_float32_in_the_numbering_of_the_template(bodies, generator) -> None:
    for body in bodies:
        assert body.vertices.shape == (len(generator.template.mirror), 3)
        assert body.vertices.dtype == np.float32
        assert body.vertices.flags.c_contiguous
        assert np.isfinite(body.vertices).all()
        assert body.category == body.template == generator.template.name == "human"
        assert body.family in FAMILIES


def test_bodies_are_of_human_size_and_inside_out_nowhere(bodies, generator) -> None:
    faces = generator.template.faces
    for body in bodies:
        size = np.ptp(body.vertices, axis=0)
        assert 0.4 < size.max() < 3.2
        assert 0.006 < volume(body.vertices, faces) < 0.4


def test_heights_of_grown_ups_and_children(model: BodyModel) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        person = draw_phenotype(rng)
        height = np.ptp(model.rest(person).vertices[:, 1])
        low, high = (1.35, 2.25) if person.age > 0.67 else (0.75, 2.15)
        assert low < height < high
    child = model.rest(Phenotype(0.5, 0.16, 0.5, 0.5, 0.45, 0.5)).vertices
    assert 0.85 < np.ptp(child[:, 1]) < 1.15


def test_template_is_a_closed_surface(generator: HumanGenerator) -> None:
    faces = generator.template.faces
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).tolist()
    directed = {(a, b) for a, b in edges}
    assert len(directed) == len(edges)
    assert all((b, a) in directed for a, b in directed)
    count = len(generator.template.mirror)
    assert count - len(edges) // 2 + len(faces) == 2
    np.testing.assert_array_equal(np.unique(faces), np.arange(count))


def test_mirror_is_an_involution_that_keeps_faces(generator: HumanGenerator) -> None:
    template = generator.template
    identity = np.arange(len(template.mirror))
    np.testing.assert_array_equal(template.mirror[template.mirror], identity)
    np.testing.assert_array_equal(template.side[template.mirror], -template.side)
    np.testing.assert_array_equal(template.side == 0, template.mirror == identity)

    def cycles(faces: np.ndarray) -> set[tuple[int, ...]]:
        start = faces.argmin(1)[:, None]
        ordered = np.take_along_axis(faces, (start + np.arange(3)) % 3, 1)
        return set(map(tuple, ordered.tolist()))

    mirrored = template.mirror[template.faces][:, ::-1]
    assert cycles(mirrored) == cycles(template.faces)


def test_rest_pose_is_its_own_mirror_image(model: BodyModel) -> None:
    rng = np.random.default_rng(1)
    for _ in range(10):
        vertices = model.rest(draw_phenotype(rng)).vertices
        np.testing.assert_allclose(vertices[model.mirror] * [-1, 1, 1], vertices, atol=1e-3)


def test_swapping_the_sides_of_a_pose_mirrors_the_body(model: BodyModel) -> None:
    pose = draw_pose(np.random.default_rng(2), "run")
    pose.roll = pose.lean = pose.turn = pose.tilt = pose.look = 0.0
    rest = model.rest(Phenotype(0.2, 0.7, 0.5, 0.5, 0.4, 0.5))
    body = model.pose(rest, pose_rotations(pose, rest.joints, model.bone_index))
    pose.arms, pose.legs = pose.arms[::-1], pose.legs[::-1]
    swapped = model.pose(rest, pose_rotations(pose, rest.joints, model.bone_index))
    np.testing.assert_allclose(swapped[model.mirror] * [-1, 1, 1], body, atol=2e-3)


def test_front_and_opposite(generator: HumanGenerator, model: BodyModel) -> None:
    template = generator.template
    rest = model.rest(Phenotype(0.5, 0.67, 0.5, 0.5, 0.45, 0.5)).vertices
    assert template.opposite.dtype == np.int32
    np.testing.assert_array_equal(template.front[template.opposite], -template.front)
    decided = template.front != 0
    assert 0.6 < decided.mean() < 0.95
    apart = np.linalg.norm(rest - rest[template.opposite], axis=1)[decided]
    assert np.median(apart) > 0.02
    assert apart.max() < 0.45
    nose = np.argmax(np.where(rest[:, 1] > 0.9 * rest[:, 1].max(), rest[:, 2], -1))
    assert template.front[nose] == 1
    assert rest[template.opposite[nose], 2] < rest[nose, 2] - 0.1


def test_every_family_appears(generator: HumanGenerator) -> None:
    rng = np.random.default_rng(0)
    assert {draw_pose(rng).family for _ in range(1000)} == set(FAMILIES)
    assert sum(share for _, share in FAMILIES.values()) == pytest.approx(1.0)


def test_raised_arms_are_where_the_angles_say(model: BodyModel) -> None:
    rest = model.rest(Phenotype(0.5, 0.7, 0.5, 0.5, 0.45, 0.5))
    pose = draw_pose(np.random.default_rng(0), "stand")
    pose.roll = pose.pitch = pose.bend = pose.lean = pose.turn = 0.0
    for arm in pose.arms:
        arm.elevation, arm.azimuth, arm.elbow = 90.0, 0.0, 0.0
    rotations = pose_rotations(pose, rest.joints, model.bone_index)
    transforms = model.bone_transforms(rest.joints, rotations)  # (J, 3, 4)
    head, wrist = model.bone_index["upperarm01.L"], model.bone_index["wrist.L"]
    shoulder, hand = (
        transforms[bone, :, :3] @ rest.joints[bone] + transforms[bone, :, 3]
        for bone in (head, wrist)
    )
    direction = (hand - shoulder) / np.linalg.norm(hand - shoulder)
    np.testing.assert_allclose(direction, [1, 0, 0], atol=0.02)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("swivel", [5.0, 45.0, 85.0])
def test_an_ankle_is_where_its_reach_says(model: BodyModel, side: int, swivel: float) -> None:
    rest = model.rest(draw_phenotype(np.random.default_rng(3)))
    pose = draw_pose(np.random.default_rng(0), "scan")
    pose.pitch = pose.roll = 0.0
    pose.legs[side].reach = Reach("lowerleg01.other", (0.3, 0.4, 0.1), swivel)
    moved = model.bone_transforms(
        rest.joints, pose_rotations(pose, rest.joints, model.bone_index)
    )  # (J, 3, 4)

    def joint(bone: str) -> np.ndarray:
        number = model.bone_index[bone]
        return moved[number, :, :3] @ rest.joints[number] + moved[number, :, 3]

    own, other = "LR"[side], "LR"[1 - side]
    knee = rest.joints[model.bone_index[f"lowerleg01.{other}"]]
    shin = np.linalg.norm(joint(f"foot.{own}") - joint(f"lowerleg01.{own}"))
    wanted = knee + shin * np.array([0.3 * (1 - 2 * side), 0.4, 0.1])
    # The twist is shared between two bones of the thigh, so the ankle misses by a little.
    assert np.linalg.norm(joint(f"foot.{own}") - wanted) < 0.25 * shin
    outwards = (1 - 2 * side) * (joint(f"lowerleg01.{own}") - joint(f"upperleg01.{own}"))[0]
    forwards = (joint(f"lowerleg01.{own}") - joint(f"upperleg01.{own}"))[2]
    assert np.degrees(np.arctan2(outwards, forwards)) == pytest.approx(swivel, abs=25)


def test_accepted_bodies_touch_at_most(bodies, generator: HumanGenerator) -> None:
    depths = [generator._collisions.depth(body.vertices) for body in bodies]
    assert max(depths) < TOUCHING
    assert np.mean(np.array(depths) < TOLERANCE) > 0.8


def test_every_build_appears() -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_build(rng) for _ in range(500)]
    assert {build.name for build in drawn} == set(BUILDS)
    assert sum(share for _, share in BUILDS.values()) == pytest.approx(1.0)
    muscular = [build.phenotype.muscle for build in drawn if build.name == "muscular"]
    assert min(muscular) >= 0.85


def test_scaling_by_one_changes_nothing(model: BodyModel) -> None:
    person = Phenotype(0.5, 0.7, 0.5, 0.5, 0.45, 0.5)
    rest, same = model.rest(person), model.build(HumanBuild("ordinary", person))
    np.testing.assert_allclose(same.vertices, rest.vertices, atol=1e-5)
    np.testing.assert_allclose(same.joints, rest.joints, atol=1e-5)


def test_scaling_everything_alike_is_a_similarity(model: BodyModel) -> None:
    person = Phenotype(0.5, 0.7, 0.5, 0.5, 0.45, 0.5)
    rest = model.rest(person)
    twice = model.build(HumanBuild("any", person, dict.fromkeys(SEGMENTS, (2.0, 2.0, 2.0))))
    root = rest.joints[model.bone_index["root"]]
    np.testing.assert_allclose(twice.vertices, root + 2 * (rest.vertices - root), atol=1e-4)
    np.testing.assert_allclose(twice.joints, root + 2 * (rest.joints - root), atol=1e-4)


def test_longer_legs_have_longer_bones_and_leave_the_arms_alone(model: BodyModel) -> None:
    person = Phenotype(0.5, 0.7, 0.5, 0.5, 0.45, 0.5)
    rest = model.rest(person)
    long = model.build(
        HumanBuild("lanky", person, {"thigh": (1.5, 1.0, 1.0), "hand": (1.3, 1.3, 1.3)})
    )

    def length(joints: np.ndarray, start: str, end: str) -> float:
        return float(
            np.linalg.norm(joints[model.bone_index[end]] - joints[model.bone_index[start]])
        )

    for side in "LR":
        for start, end, ratio in (
            (f"upperleg01.{side}", f"lowerleg01.{side}", 1.5),
            (f"lowerleg01.{side}", f"foot.{side}", 1.0),
            (f"upperarm01.{side}", f"lowerarm01.{side}", 1.0),
            (f"wrist.{side}", f"finger3-2.{side}", 1.3),
        ):
            expected = ratio * length(rest.joints, start, end)
            assert length(long.joints, start, end) == pytest.approx(expected, rel=1e-3)
    crown, sole = (rest.vertices[:, 1].argmax(), rest.vertices[:, 1].argmin())
    assert long.vertices[crown, 1] == pytest.approx(rest.vertices[crown, 1], abs=1e-3)
    assert long.vertices[sole, 1] < rest.vertices[sole, 1] - 0.1


def test_builds_at_rest_are_their_own_mirror_images(model: BodyModel) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        vertices = model.build(draw_build(rng)).vertices
        np.testing.assert_allclose(vertices[model.mirror] * [-1, 1, 1], vertices, atol=3e-3)


def test_apes_have_short_legs_and_long_arms(model: BodyModel) -> None:
    def limbs(name: str) -> float:
        """Length of an arm relative to that of a leg, typical of a build."""
        rng, ratios = np.random.default_rng(1), []
        while len(ratios) < 20:
            build = draw_build(rng)
            if build.name != name:
                continue
            joints = model.build(build).joints
            shoulder, wrist, hip, ankle = (
                joints[model.bone_index[bone]]
                for bone in ("upperarm01.L", "wrist.L", "upperleg01.L", "foot.L")
            )
            ratios.append(np.linalg.norm(wrist - shoulder) / np.linalg.norm(ankle - hip))
        return float(np.median(ratios))

    assert limbs("ape") > 1.4 * limbs("ordinary")


def test_builds_prefer_their_poses_in_half_of_the_draws() -> None:
    rng = np.random.default_rng(0)
    drawn = [draw_preferred(rng, "ape") for _ in range(400)]
    assert 0.4 < sum(name is not None for name in drawn) / 400 < 0.6
    assert {name for name in drawn if name is not None} == set(PREFERRED["ape"])
    assert set(PREFERRED["ape"]) <= set(FAMILIES)
    assert draw_preferred(rng, "ordinary") is None


def test_handstands_have_their_feet_up(generator: HumanGenerator, model: BodyModel) -> None:
    rest = model.rest(Phenotype(0.5, 0.7, 0.5, 0.5, 0.45, 0.5))
    foot, head = (model.weights[:, model.bone_index[bone]].argmax() for bone in ("foot.L", "head"))
    rng = np.random.default_rng(0)
    above = []
    for _ in range(30):
        pose = draw_pose(rng, "inverted")
        body = model.pose(rest, pose_rotations(pose, rest.joints, model.bone_index))
        above.append(body[foot, 1] > body[head, 1])
    assert np.mean(above) > 0.7


def test_a_hand_in_the_belly_is_detected(generator: HumanGenerator, model: BodyModel) -> None:
    rest = model.rest(Phenotype(0.5, 0.7, 0.5, 0.5, 0.45, 0.5))
    pose = draw_pose(np.random.default_rng(0), "stand")
    for arm in pose.arms:
        arm.elevation, arm.azimuth, arm.elbow = 12.0, 0.0, 5.0
    harmless = model.pose(rest, pose_rotations(pose, rest.joints, model.bone_index))
    assert generator._collisions.depth(harmless) < TOLERANCE
    pose.arms[0].azimuth, pose.arms[0].elevation = 170.0, 30.0
    colliding = model.pose(rest, pose_rotations(pose, rest.joints, model.bone_index))
    assert generator._collisions.depth(colliding) > 0.03
