import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from ltenet.bodies.body_pairs import draw_two_bodies, own_generator
from ltenet.bodies.generated import GeneratedBody, Template
from ltenet.data.augmentation import Augmentation
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError
from ltenet.shape import CANONICAL_RADIUS

RINGS, SEGMENTS = 13, 20


def sphere():
    """Vertices and faces of a unit sphere that both x -> -x and z -> -z map to itself."""
    polar = np.pi * np.arange(1, RINGS + 1)[:, None] / (RINGS + 1)
    around = 2 * np.pi * (np.arange(SEGMENTS) + 0.5) / SEGMENTS
    ring = np.stack(
        [
            np.sin(polar) * np.cos(around),
            np.cos(polar) + 0 * around,
            np.sin(polar) * np.sin(around),
        ],
        -1,
    ).reshape(-1, 3)
    vertices = np.concatenate([ring, [[0, 1, 0], [0, -1, 0]]])
    here = np.arange(RINGS * SEGMENTS).reshape(RINGS, SEGMENTS)
    beside = np.roll(here, -1, axis=1)
    top, bottom = RINGS * SEGMENTS, RINGS * SEGMENTS + 1
    triangles = [
        np.stack([here[:-1], beside[:-1], here[1:]], -1),
        np.stack([beside[:-1], beside[1:], here[1:]], -1),
        np.stack([here[0] * 0 + top, beside[0], here[0]], -1),
        np.stack([here[-1], beside[-1], here[-1] * 0 + bottom], -1),
    ]
    return vertices, np.concatenate([t.reshape(-1, 3) for t in triangles]).astype(np.int32)


VERTICES, FACES = sphere()


def reflection(axis):
    flipped = VERTICES.copy()
    flipped[:, axis] *= -1
    return cKDTree(VERTICES).query(flipped)[1].astype(np.int32)


class Ellipsoids:
    """Two templates of stretched spheres; a body is known by its three half axes."""

    def __init__(self):
        side = np.sign(VERTICES[:, 0]).astype(np.int8)
        front = np.sign(VERTICES[:, 2]).astype(np.int8)
        self.templates = {
            name: Template(name, FACES, reflection(0), side, front, reflection(2))
            for name in ("smooth", "rough")
        }

    def species(self, template):
        return {"smooth": ("egg", "ball", "disc"), "rough": ("nut", "stone")}[template]

    def axes(self, seed, index):
        return np.random.default_rng([seed, index]).uniform(0.5, 1.5, 3)

    def draw(self, seed, index, *, template=None, category=None):
        assert category in self.species(template)
        vertices = (VERTICES * self.axes(seed, index)).astype(np.float32)
        return GeneratedBody(vertices, "still", category, template)


class Recorder(Ellipsoids):
    """Remembers what was asked for."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def draw(self, seed, index, *, template=None, category=None):
        self.asked.append((seed, index, template, category))
        return super().draw(seed, index, template=template, category=category)


def stream(seed=3, split="train", generator=None, **options):
    options = {"points": (128, 128), **options}
    return TrainingPairs(PairConfig(**options), seed, split, generator=generator or Ellipsoids())


def same(one, two):
    return all(np.array_equal(getattr(one, k), getattr(two, k)) for k in one.__dataclass_fields__)


def unit(points, axes):
    """Back from an ellipsoid to the unit sphere."""
    return points / axes


def raw(**options):
    """Pairs of which only the centre moved, with the half axes of both bodies."""
    pairs = stream(radius=None, **options)
    generator = Recorder()
    pairs._given_generator = generator
    pair = pairs.draw(4)
    return pair, *(generator.axes(seed, index) for seed, index, *_ in generator.asked)


def test_shared_pairs_hold_the_same_points_shuffled():
    pair, first, second = raw(sampling="shared", by="vertex")
    assert pair.shared
    # The drawn vertices are the same, so the centres differ by the stretch alone.
    distance, nearest = cKDTree(pair.target).query(pair.source_truth)
    assert distance.max() < 1e-6
    np.testing.assert_array_equal(np.sort(nearest), np.arange(128))
    assert (nearest == np.arange(128)).mean() < 0.1
    np.testing.assert_allclose(pair.source_truth / second, pair.source / first, atol=1e-5)
    np.testing.assert_allclose(pair.target_truth[nearest], pair.source, atol=1e-6)


@pytest.mark.parametrize("by", ["vertex", "area", "mixed"])
def test_the_truth_of_independent_samples_is_on_the_other_surface(by):
    pair, first, second = raw(sampling="independent", by=by)
    assert not pair.shared
    # Up to the unknown centres, points and truth are the same place of the unit sphere.
    here, there = unit(pair.source, first), unit(pair.source_truth, second)
    np.testing.assert_allclose(np.ptp(here - there, axis=0), 0, atol=1e-5)
    here, there = unit(pair.target, second), unit(pair.target_truth, first)
    np.testing.assert_allclose(np.ptp(here - there, axis=0), 0, atol=1e-5)
    assert pair.source_known.all()
    assert pair.target_known.all()
    shared_places = cKDTree(pair.target).query(pair.source_truth)[0] < 1e-6
    assert shared_places.mean() < (0.05 if by == "area" else 0.8)


@pytest.mark.parametrize("by", ["vertex", "area"])
def test_mirrored_and_opposite_partners(by):
    pair, _, second = raw(by=by)
    truth = pair.source_truth
    # The target itself is symmetric about x = 0 and z = 0, seen from its drawn centre at -c:
    # mirrored x = -2c - x, the other coordinates stay.
    for partner, axis in ((pair.source_mirrored, 0), (pair.source_opposite, 2)):
        others = [d for d in range(3) if d != axis]
        np.testing.assert_allclose(partner[:, others], truth[:, others], atol=1e-5)
        assert np.ptp(partner[:, axis] + truth[:, axis]) < 1e-5
        assert np.abs(partner[:, axis] - truth[:, axis]).max() > 0.5 * second[axis]


@pytest.mark.parametrize("radius", [CANONICAL_RADIUS, 2.0, None])
def test_points_are_normalised_by_themselves(radius):
    pair = stream(radius=radius).draw(0)
    for points in (pair.source, pair.target):
        assert points.dtype == np.float32
        np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-6)
        rms = np.sqrt((points.astype(float) ** 2).sum(axis=1).mean())
        assert radius is None or rms == pytest.approx(radius, rel=1e-5)


def test_any_pair_can_be_drawn_by_itself():
    options = {"sampling": "mixed", "points": (64, 128), "augmentation": Augmentation(yaw=180)}
    pairs = stream(**options)
    first = [pairs.draw(index) for index in range(4)]
    assert same(stream(**options).draw(3), first[3])
    assert same(pickle.loads(pickle.dumps(pairs)).draw(2), first[2])
    assert not np.array_equal(first[0].source[:50], first[1].source[:50])
    assert not np.array_equal(stream(seed=4, **options).draw(0).source[:50], first[0].source[:50])


@given(st.integers(0, 50), st.integers(0, 50), st.sampled_from([None, 20, 60]))
@settings(max_examples=20, deadline=None)
def test_training_and_validation_shapes_never_coincide(seed, other_seed, pool):
    train, validation = Recorder(), Recorder()
    for index in range(5):
        stream(seed, "train", train, pool=pool, same_category=False).draw(index)
        stream(other_seed, "validation", validation, pool=pool, same_category=False).draw(index)
    assert not {a[:2] for a in train.asked} & {a[:2] for a in validation.asked}


def test_the_endless_stream_never_repeats_a_shape():
    generator = Recorder()
    pairs = stream(generator=generator)
    for index in range(40):
        pairs.draw(index)
    assert len({a[:2] for a in generator.asked}) == 80
    assert len({a[3] for a in generator.asked}) == 5


@pytest.mark.parametrize(("split", "count"), [("train", 36), ("validation", 4)])
def test_a_pool_has_nine_tenths_for_training(split, count):
    generator = Recorder()
    pairs = stream(split=split, generator=generator, pool=40, same_category=False)
    for index in range(400):
        pairs.draw(index)
    assert {a[1] for a in generator.asked} == set(range(count)) - ({3} if count == 4 else set())
    kinds = {}
    for _, index, *kind in generator.asked:
        assert kinds.setdefault(index, kind) == kind  # a shape of the pool is always the same
    for one, two in zip(generator.asked[::2], generator.asked[1::2], strict=True):
        assert one[1] != two[1]
        assert one[2] == two[2]


@pytest.mark.parametrize("same_category", [True, False])
@pytest.mark.parametrize("pool", [None, 200])
def test_categories(same_category, pool):
    pairs = [stream(same_category=same_category, pool=pool).draw(index) for index in range(30)]
    assert {pair.template for pair in pairs} == {"smooth", "rough"}
    equal = [pair.category == pair.target_category for pair in pairs]
    assert all(equal) if same_category else 0.1 < np.mean(equal) < 0.8


def test_a_pool_without_two_of_a_kind():
    with pytest.raises(InputError, match=r"got 4 shapes of 5 kinds, .*, expected .*; try a larger"):
        draw_two_bodies(
            Ellipsoids(), 0, np.random.default_rng(0), stream=0, same_category=True, pool=4
        )


def test_numbers_of_points():
    equal = [stream(points=(50, 99)).draw(index) for index in range(30)]
    assert all(len(pair.source) == len(pair.target) for pair in equal)
    assert len({len(pair.source) for pair in equal}) > 10
    assert all(50 <= len(pair.source) <= 99 for pair in equal)
    apart = [stream(points=(50, 99), equal_counts=False).draw(index) for index in range(10)]
    assert any(len(pair.source) != len(pair.target) for pair in apart)
    assert all(len(pair.source_truth) == len(pair.source) for pair in apart)
    assert all(len(pair.target_truth) == len(pair.target) for pair in apart)
    blocks = [len(stream(points=(50, 99), count_block=4).draw(i).source) for i in range(8)]
    assert len(set(blocks[:4])) == len(set(blocks[4:])) == 1
    assert blocks[0] != blocks[4]


@pytest.mark.parametrize("by", ["vertex", "area"])
def test_shared_samples_of_unequal_size(by):
    for index in range(6):
        pair = stream(sampling="shared", by=by, points=(50, 99), equal_counts=False).draw(index)
        met = (cKDTree(pair.target).query(pair.source_truth)[0] < 1e-6).sum()
        assert met >= min(len(pair.source), len(pair.target))
        assert len(np.unique(pair.target, axis=0)) == len(pair.target)


def test_mixtures():
    pairs = stream(sampling="mixed", shared_share=0.3, by="mixed")
    drawn = [pairs.draw(index) for index in range(200)]
    assert np.mean([pair.shared for pair in drawn]) == pytest.approx(0.3, abs=0.08)


def test_a_share_of_the_shapes_knows_its_surface():
    config = PairConfig(points=(256, 256), augmentation=Augmentation(scale=0.2))
    pairs = TrainingPairs(replace(config, surface_share=0.5), 3)
    drawn, plain = pairs.draw(2), TrainingPairs(config, 3).draw(2)
    np.testing.assert_array_equal(drawn.source, plain.source)
    assert plain.source_along is None
    assert plain.target_along is None
    known = [
        along is not None
        for index in range(30)
        for along in (pairs.draw(index).source_along, pairs.draw(index).target_along)
    ]
    assert 0.25 < np.mean(known) < 0.75
    pair = TrainingPairs(replace(config, surface_share=1.0), 3).draw(2)
    # No shortcut leads through space: most points are farther apart along the surface.
    rows = np.arange(0, 256, 8)
    apart = np.linalg.norm(pair.source[rows, None] - pair.source[rows], axis=2)
    along = np.abs(pair.source_along[rows, None] - pair.source_along[rows]).max(axis=2)
    assert np.mean(along[apart > 0] > 0.9 * apart[apart > 0]) > 0.85
    assert np.median(along[apart > 0] / apart[apart > 0]) < 2


def test_placed_parts_lie_as_in_their_whole():
    cut = Augmentation(cut_chance=1.0, cut=(0.4, 0.5))
    config = PairConfig(what="human", by="area", points=(1000, 1000), augmentation=cut)
    for index in range(3):
        whole = TrainingPairs(replace(config, augmentation=Augmentation()), 3).draw(index)
        alone = TrainingPairs(config, 3).draw(index)
        placed = TrainingPairs(replace(config, placed_share=1.0), 3).draw(index)
        assert len(alone.source) == len(alone.target) == 1000
        assert 450 < len(placed.source) < 650  # a cut counts with the density of its surface
        # As dense as the whole, and where it is: every point has one of the whole beside it.
        near = cKDTree(whole.source).query(placed.source)[0]
        assert np.median(near) < 0.03
        assert np.median(cKDTree(whole.source).query(alone.source)[0]) > 0.05
        for pair in (alone, placed):  # the truth moves along
            met = cKDTree(pair.target).query(pair.source_truth[pair.source_known])[0]
            assert np.median(met) < 0.06


def test_whole_shapes_stay_as_they_are():
    config = PairConfig(points=(200, 200), augmentation=Augmentation(cut_chance=0.5))
    uncut = TrainingPairs(replace(config, augmentation=Augmentation()), 3)
    plain, placed = TrainingPairs(config, 3), TrainingPairs(replace(config, placed_share=1.0), 3)
    wholes = 0
    for index in range(12):
        as_drawn, cut, moved = (stream.draw(index).source for stream in (uncut, plain, placed))
        whole = cut.shape == as_drawn.shape and np.allclose(cut, as_drawn)
        wholes += whole
        assert (len(moved) == 200 and np.array_equal(moved, cut)) == whole
    assert 2 < wholes < 10


def test_augmentation_off_and_switched_on():
    plain = stream().draw(0)
    assert same(plain, stream(augmentation=Augmentation()).draw(0))
    turned = stream(augmentation=Augmentation(yaw=180, tilt=10)).draw(0)
    assert np.abs(turned.source - plain.source).max() > 0.1
    np.testing.assert_allclose(
        np.linalg.norm(turned.source, axis=1), np.linalg.norm(plain.source, axis=1), atol=1e-6
    )
    # The truth turns with the target, so all distances to target points stay.
    for name in ("source_truth", "source_mirrored", "source_opposite"):
        np.testing.assert_allclose(
            cKDTree(turned.target).query(getattr(turned, name), k=5)[0],
            cKDTree(plain.target).query(getattr(plain, name), k=5)[0],
            atol=1e-5,
        )
    noisy = stream(augmentation=Augmentation(noise=0.01)).draw(0)
    assert (noisy.source - plain.source).std() == pytest.approx(0.01, rel=0.2)
    assert (noisy.target - plain.target).std() == pytest.approx(0.01, rel=0.2)
    np.testing.assert_array_equal(noisy.source_truth, plain.source_truth)
    scaled = stream(augmentation=Augmentation(scale=0.3)).draw(0)
    factor = np.linalg.norm(scaled.target) / np.linalg.norm(plain.target)
    assert 0.7 <= factor <= 1.3
    np.testing.assert_allclose(scaled.source_truth, factor * plain.source_truth, atol=1e-5)


def test_other_forms_of_bodies_keep_the_truth_and_leave_other_pairs_alone():
    plain = stream(sampling="shared")
    formed = stream(sampling="shared", augmentation=Augmentation(warp_chance=0.5))
    changed = 0
    for index in range(12):
        one, other = formed.draw(index), plain.draw(index)
        # The truth of shared samples is among the target's points, whatever the form.
        assert cKDTree(one.target).query(one.source_truth)[0].max() < 1e-5
        assert cKDTree(one.source).query(one.target_truth)[0].max() < 1e-5
        changed += not np.allclose(one.source, other.source, atol=1e-3)
    assert 2 <= changed <= 10
    never = stream(augmentation=Augmentation(warp_chance=0.0, warp=1.0))
    assert same(never.draw(0), stream().draw(0))


@pytest.mark.parametrize("sampling", ["shared", "independent"])
@pytest.mark.parametrize("by", ["vertex", "area"])
def test_cropping_keeps_the_count_and_marks_what_lost_its_partner(sampling, by):
    augmentation = Augmentation(crop=0.5)
    pairs = stream(sampling=sampling, by=by, augmentation=augmentation, points=(100, 100))
    shares = []
    for index in range(12):
        pair = pairs.draw(index)
        assert pair.source.shape == pair.target.shape == (100, 3)
        tree = cKDTree(pair.target)
        if sampling == "shared":
            met = tree.query(pair.source_truth)[0] < 1e-6
            assert pair.source_known[met].all()
            # Where the source was filled up, places are known that the target did not draw.
            assert met.mean() > 0.3
        elif (~pair.source_known).sum() > 5:
            distance = tree.query(pair.source_truth)[0]
            assert distance[~pair.source_known].mean() > distance[pair.source_known].mean()
        shares.append(pair.source_known.mean())
        assert np.isfinite(pair.target_truth).all()
        assert pair.target_known.any()
    assert min(shares) < 0.8
    assert max(shares) > 0.8


@pytest.mark.parametrize("sampling", ["shared", "independent"])
def test_a_crop_of_a_coarse_mesh_is_filled_up_on_its_faces(sampling):
    """The sphere has 262 vertices: what is left of it has fewer than 250."""
    pairs = stream(
        sampling=sampling, by="vertex", augmentation=Augmentation(crop=0.5), points=(250, 250)
    )
    for index in range(6):
        pair = pairs.draw(index)
        assert len(np.unique(pair.source, axis=0)) == len(np.unique(pair.target, axis=0)) == 250


def test_a_coarse_mesh_is_filled_up_on_its_faces_without_a_crop():
    pair = stream(by="vertex", points=(400, 400)).draw(0)
    assert len(np.unique(pair.source, axis=0)) == len(np.unique(pair.target, axis=0)) == 400


def test_uneven_density_moves_points_and_keeps_truth():
    pair, first, second = raw(by="area", augmentation=Augmentation(density=20))
    plain, *_ = raw(by="area")
    assert not np.allclose(pair.source, plain.source)
    here, there = unit(pair.source, first), unit(pair.source_truth, second)
    np.testing.assert_allclose(np.ptp(here - there, axis=0), 0, atol=1e-5)
    vertices, *_ = raw(by="vertex", augmentation=Augmentation(density=20))
    assert len(np.unique(vertices.source, axis=0)) == 128


@pytest.mark.parametrize("by", ["vertex", "area"])
def test_detail_draws_more_points_where_parts_are_small_and_keeps_truth(by):
    generator = Recorder()
    small = VERTICES[:, 1] > 0
    size = np.where(small, 0.5, 2.0).astype(np.float32)
    generator.templates = {
        name: replace(template, size=size) for name, template in generator.templates.items()
    }
    pairs = stream(radius=None, by=by, augmentation=Augmentation(detail=4), generator=generator)
    upper, lower = 0, 0
    for index in range(10):
        pair = pairs.draw(index)
        first, second = (generator.axes(*asked[:2]) for asked in generator.asked[-2:])
        here, there = unit(pair.source, first), unit(pair.source_truth, second)
        np.testing.assert_allclose(np.ptp(here - there, axis=0), 0, atol=1e-5)
        # The drawn points are centred: the sphere's own middle lies halfway between its poles.
        middle = (here[:, 1].max() + here[:, 1].min()) / 2
        upper, lower = upper + (here[:, 1] > middle).sum(), lower + (here[:, 1] < middle).sum()
    assert upper > 1.5 * lower


@pytest.mark.parametrize("what", ["human", "animal"])
def test_thin_parts_are_small(what):
    for template in own_generator(what).templates.values():
        size = template.size
        assert size.shape == template.mirror.shape
        assert np.exp(np.log(size).mean()) == pytest.approx(1, abs=1e-3)
        np.testing.assert_allclose(size, size[template.mirror], rtol=0.05)
        assert size.min() < 0.5
        assert 1.8 < size.max() < 4


@pytest.mark.parametrize(
    "options",
    [
        {"what": "plant"},
        {"sampling": "none"},
        {"shared_share": 1.5},
        {"surface_share": -0.1},
        {"placed_share": 1.5},
        {"by": "edge"},
        {"points": (1, 5)},
        {"points": (9, 5)},
        {"count_block": 0},
        {"pool": 10},
        {"radius": 0.0},
    ],
)
def test_configurations_out_of_range(options):
    (name,) = options
    with pytest.raises(
        InputError, match=rf"training pairs: got {name} = .*, expected .*; try leav"
    ):
        PairConfig(**options)


def test_streams_out_of_range():
    with pytest.raises(InputError, match=r"got seed -1 and split 'train', expected .*; try seed 0"):
        stream(seed=-1)
    with pytest.raises(InputError, match="split 'test', expected"):
        stream(split="test")
    with pytest.raises(InputError, match=r"training pair -1, expected 0 or more; try 0"):
        stream().draw(-1)


@pytest.mark.parametrize("what", ["human", "animal"])
def test_the_generators_of_the_package(what):
    augmentation = Augmentation(yaw=180, tilt=10, scale=0.1, noise=0.005, crop=0.3, density=4)
    config = PairConfig(what=what, sampling="mixed", augmentation=augmentation, count_block=3)
    pairs = TrainingPairs(config, 1, "validation")
    pair = pairs.draw(5)
    assert same(pair, TrainingPairs(config, 1, "validation").draw(5))
    assert pair.source.shape == pair.target.shape == (1024, 3)
    # Neighbours on the source are neighbours on the target: the truth is a map of the surface.
    known = pair.source_known
    _, near = cKDTree(pair.source).query(pair.source, k=2)
    steps = np.linalg.norm(pair.source_truth - pair.source_truth[near[:, 1]], axis=1)
    assert np.median(steps[known]) < 0.1
    assert np.median(cKDTree(pair.target).query(pair.source_truth[known])[0]) < 0.05


def test_no_torch_is_imported():
    code = "import sys, ltenet.data.loading, ltenet.data.training_pairs, ltenet.data.pairs;"
    done = subprocess.run([sys.executable, "-c", code + "sys.exit('torch' in sys.modules)"])
    assert done.returncode == 0
