"""Generated things: their skeletons, surfaces, templates, and the stream of shapes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csgraph

from ltenet.bodies import things
from ltenet.bodies.body_pairs import draw_two_bodies, own_generator
from ltenet.bodies.pieces import cut_piece
from ltenet.bodies.thing_fields import bone_distances, field
from ltenet.bodies.thing_growth import draw_skeleton
from ltenet.bodies.thing_skeletons import (
    SYMMETRIES,
    Bore,
    Ring,
    Skeleton,
    keeps_clear,
)
from ltenet.bodies.thing_templates import make_thing, thing_symmetry
from ltenet.bodies.things import ThingGenerator
from ltenet.data.augmentation import Augmentation
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError
from ltenet.geometry.surface_graph import mesh_graph

MIRROR = np.array([-1.0, 1.0, 1.0])


def rod(**changes: object) -> Skeleton:
    """One bone from the origin to (0, 0, 1)."""
    values: dict[str, object] = {
        "symmetry": "free",
        "heads": np.zeros((1, 3)),
        "tails": np.array([[0.0, 0.0, 1.0]]),
        "parents": np.array([-1]),
        "radii": np.array([[0.2, 0.2]]),
        "normals": np.array([[0.0, 1.0, 0.0]]),
        "flatness": np.ones(1),
        "limbs": np.zeros(1, dtype=np.int64),
        "partners": np.zeros(1, dtype=np.int64),
    }
    return Skeleton(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def generator() -> ThingGenerator:
    return ThingGenerator()


def test_a_round_bone_has_exact_distances():
    points = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 1.5], [0.0, 0.1, 0.5], [0.3, 0.4, -1.2]])
    expected = [0.3, 0.3, -0.1, np.linalg.norm([0.3, 0.4, 1.2]) - 0.2]
    np.testing.assert_allclose(bone_distances(rod(), points)[0], expected, atol=1e-12)


def test_a_plate_is_as_thin_as_its_flatness_says():
    plate = rod(flatness=np.array([4.0]))
    surface = np.array([[0.2, 0.0, 0.5], [0.0, 0.05, 0.5], [0.0, -0.05, 0.3]])
    np.testing.assert_allclose(bone_distances(plate, surface)[0], 0.0, atol=1e-12)
    near = bone_distances(plate, np.array([[0.0, 0.051, 0.5]]))[0, 0]
    assert near == pytest.approx(0.001, rel=0.05)


def test_rings_are_added_and_bores_are_cut_out():
    ring = Ring(0, np.array([0.0, 0.6, 0.5]), np.array([1.0, 0.0, 0.0]), 0.3, 0.05)
    bore = Bore(np.array([-1.0, 0.0, 0.5]), np.array([1.0, 0.0, 0.5]), 0.1)
    thing = rod(rings=(ring,), bores=(bore,))
    places = np.array([[0.0, 0.9, 0.5], [0.0, 0.6, 0.5], [0.0, 0.0, 0.5], [0.0, 0.0, 0.8]])
    values = field(thing, places, softness=0.01)
    assert (np.sign(values) == [-1, 1, 1, -1]).all()


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_skeletons_are_trees_with_exact_symmetry(symmetry):
    for seed in range(25):
        skeleton = draw_skeleton(np.random.default_rng(seed), symmetry)
        count = len(skeleton.heads)
        assert skeleton.parents[0] == -1
        assert (skeleton.parents[1:] < np.arange(1, count)).all()
        assert skeleton.limbs.max() <= 12
        assert keeps_clear(skeleton, skeleton.heads, skeleton.tails)
        partners = skeleton.partners
        np.testing.assert_array_equal(partners[partners], np.arange(count))
        np.testing.assert_allclose(np.linalg.norm(skeleton.normals, axis=1), 1.0, atol=1e-9)
        if symmetry == "free":
            np.testing.assert_array_equal(partners, np.arange(count))
            continue
        for ends in (skeleton.heads, skeleton.tails):
            np.testing.assert_allclose(ends[partners] * MIRROR, ends, atol=1e-9)
        np.testing.assert_allclose(skeleton.radii[partners], skeleton.radii, atol=1e-12)
        points = np.random.default_rng(seed).normal(0.0, 0.5, (50, 3))
        there = field(skeleton, points, softness=0.02)
        np.testing.assert_allclose(
            field(skeleton, points * MIRROR, softness=0.02), there, atol=1e-9
        )


def test_limbs_that_meet_do_not_keep_clear():
    crossed = rod(
        heads=np.array([[0.0, 0, 0], [0, 0.8, 0.0], [0.8, 0.0, 0.0]]),
        tails=np.array([[0.0, 0, 1], [0, 0.8, 1.0], [-0.8, 1.6, 1.0]]),
        parents=np.array([-1, 0, 0]),
        radii=np.full((3, 2), 0.1),
        normals=np.tile([1.0, 0, 0], (3, 1)),
        flatness=np.ones(3),
        limbs=np.array([0, 1, 2]),
        partners=np.arange(3),
    )
    assert not keeps_clear(crossed, crossed.heads, crossed.tails)
    apart = crossed.tails.copy()
    apart[2] = [1.6, 0.0, 1.0]
    assert keeps_clear(crossed, crossed.heads, apart)


@pytest.mark.parametrize("number", [0, 1, 13, 41, 300])
def test_templates_are_sound(number):
    thing = make_thing(number, "it")
    template = thing.rig.template
    count = len(template.mirror)
    assert 600 <= count <= 6000
    assert thing.skeleton.symmetry == thing_symmetry(number)
    assert template.rest is not None
    assert template.size is not None
    rest = template.rest.astype(np.float64)
    radius = np.sqrt(np.square(rest - rest.mean(axis=0)).sum(axis=1).mean())
    assert radius == pytest.approx(0.5, rel=0.02)
    everyone = np.arange(count)
    np.testing.assert_array_equal(template.mirror[template.mirror], everyone)
    np.testing.assert_array_equal(template.side == 0, template.mirror == everyone)
    if thing.skeleton.symmetry != "free":
        np.testing.assert_allclose(rest[template.mirror] * MIRROR, rest, atol=1e-5)
        assert (template.side != 0).mean() > 0.8
    np.testing.assert_allclose(thing.rig.weights.sum(axis=0), 1.0, atol=1e-5)
    graph = mesh_graph(template.faces.astype(np.int64), count)
    assert csgraph.connected_components(graph, directed=False)[0] == 1
    edges = np.sort(template.faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    # Where two sheets pass through one cell of the grid, four faces may share an edge.
    assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).mean() > 0.99
    a, b, c = rest[template.faces].transpose(1, 0, 2)
    assert np.einsum("fa,fa->", a, np.cross(b, c)) > 0.0
    again = make_thing(number, "it").rig.template.rest
    assert again is not None
    assert again.tobytes() == template.rest.tobytes()


def test_any_index_by_itself(generator):
    fresh = ThingGenerator()
    for index in (2, 0):
        first = generator.draw(5, index, template="thing001")
        again = fresh.draw(5, index, template="thing001")
        assert first.vertices.tobytes() == again.vertices.tobytes()
        assert first.family == again.family
    other = generator.draw(6, 2, template="thing001")
    assert other.vertices.tobytes() != generator.draw(5, 2, template="thing001").vertices.tobytes()


def test_things_vary_without_folding(generator):
    template = generator.templates["thing002"]
    assert template.rest is not None
    bodies = [generator.draw(1, index, template="thing002") for index in range(40)]
    for body in bodies:
        assert body.vertices.shape == template.rest.shape
        assert body.vertices.dtype == np.float32
        a, b, c = body.vertices.astype(np.float64)[template.faces].transpose(1, 0, 2)
        assert np.einsum("fa,fa->", a, np.cross(b, c)) > 0.0
    families = set(itertools.chain(*(body.family.split() for body in bodies)))
    assert families >= {"posed", "bumps", "stretch", "bend", "twist", "wave"}
    sizes = [np.ptp(body.vertices, axis=0).max() for body in bodies]
    assert np.std(sizes) > 0.02


def test_training_and_validation_have_no_template_in_common(generator):
    held_back = own_generator("thing", held_back=True)
    assert not set(generator.templates) & set(held_back.templates)
    assert own_generator("thing", held_back=True) is held_back
    assert own_generator("animal", held_back=True) is own_generator("animal")
    names = set(held_back.templates)
    config = PairConfig(what="thing", points=(64, 64))
    for index in range(2):
        assert TrainingPairs(config, 0, "validation").draw(index).template in names


def test_bodies_of_the_other_generators_are_warped(generator):
    body = generator.draw(3, 1, template="dog", category="wolf")
    plain = own_generator("animal").draw(3, 1, template="dog", category="wolf")
    assert (body.template, body.category) == ("dog", "wolf")
    assert body.vertices.shape == plain.vertices.shape
    assert not np.allclose(body.vertices, plain.vertices)
    assert generator.draw(3, 1, template="human").category == "human"
    assert generator.draw(3, 1, category="radial").category == "radial"


def test_pairs_are_of_one_template_and_their_truth_is_exact(generator):
    first, second = draw_two_bodies(
        generator, 3, np.random.default_rng(1), stream=0, same_category=True
    )
    assert first.template == second.template
    pairs = TrainingPairs(
        PairConfig(
            what="thing",
            points=(200, 200),
            augmentation=Augmentation(
                yaw=180, tilt=180, density=3, detail=2, curvature=1, limb_chance=0.5, crop=0.3
            ),
        ),
        0,
        "validation",
    )
    for index in range(3):
        pair = pairs.draw(index)
        assert pair.source_known.any()
        # A true position lies on the target's surface: near some point drawn there.
        near = np.linalg.norm(pair.source_truth[:, None] - pair.target, axis=2).min(axis=1)
        assert np.median(near[pair.source_known]) < 0.15


def test_pieces_of_bodies_are_closed_and_look_outwards(generator: ThingGenerator):
    pieces = [name for name in generator.names() if "-" in name]
    assert {"human-head", "human-hand.L", "dog-leg.R"} <= set(pieces)
    for name in pieces:
        template = generator.templates[name]
        faces, mirror = template.faces, template.mirror
        edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])  # (E, 2)
        assert set(map(tuple, edges)) == set(map(tuple, edges[:, ::-1])), name
        first, second = (generator.draw(seed, 0, template=name).vertices for seed in (1, 2))
        assert first.shape == second.shape == (len(mirror), 3)
        np.testing.assert_array_equal(mirror[mirror], np.arange(len(mirror)))
        for vertices in (first, second):
            a, b, c = vertices[faces].astype(np.float64).transpose(1, 0, 2)  # (F, 3) each
            assert np.einsum("ij,ij->", a, np.cross(b, c)) > 0, name


def test_a_piece_is_a_part_of_its_body():
    whole = own_generator("human").draw(3, 5).vertices
    template = own_generator("human").templates["human"]
    piece = cut_piece(template, "head", template.regions["head"])
    cut = piece.of(whole)
    np.testing.assert_array_equal(cut[: len(piece.rows)], whole[piece.rows])
    (rim,) = piece.rims
    np.testing.assert_allclose(cut[-1], cut[rim].mean(axis=0), rtol=1e-6)
    assert (piece.template.mirror[rim] != rim).sum() > len(rim) / 2  # the neck has two sides


def test_bodies_and_their_pieces_have_their_share(generator: ThingGenerator):
    drawn = [generator.draw(8, k).template for k in range(60)]
    bodies = [name for name in drawn if not name.startswith("thing")]
    assert 12 <= len(bodies) <= 36
    assert any("-" in name for name in bodies)


def test_templates_are_forgotten_and_built_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(things, "_KEPT", 2)
    generator = ThingGenerator(held_back=True)
    first = generator.draw(0, 0, template="thing401").vertices
    for name in ("thing402", "thing403"):
        generator.draw(0, 0, template=name)
    assert "thing401" not in generator._rigs
    np.testing.assert_array_equal(generator.draw(0, 0, template="thing401").vertices, first)


def test_errors_say_what_to_try(generator):
    with pytest.raises(
        InputError, match=r"'bird', expected thing000 to thing2399, human.*, or a piece such.*; try"
    ):
        generator.draw(0, 0, template="bird")
    with pytest.raises(InputError, match=r"'bird', expected one of .*bilateral.*; try leaving"):
        generator.draw(0, 0, category="bird")
    with pytest.raises(InputError, match=r"'wolf' of the template human, expected one of human"):
        generator.draw(0, 0, template="human", category="wolf")
    with pytest.raises(KeyError):
        generator.templates["bird"]
