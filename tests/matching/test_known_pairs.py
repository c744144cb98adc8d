"""Known pairs: how they are read, what they steer, and that maps meet them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from ltenet.bodies.body_pairs import own_generator
from ltenet.correspondence.algebra import MapArrays
from ltenet.errors import InputError, UsageError
from ltenet.geometry.arrays import FloatArray
from ltenet.io.landmarks import Landmarks, write_landmarks
from ltenet.matching.cleaning import Cleaned
from ltenet.matching.config import MatchConfig
from ltenet.matching.known_pairs import KnownPairs, known_pairs, read_known_pairs
from ltenet.matching.matcher import Matcher
from ltenet.matching.preparation import Prepared
from ltenet.matching.sample import Sample
from ltenet.matching.steering import Steering, places_in, signature
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig
from ltenet.refinement.bending import Bender
from ltenet.refinement.coherent import CONFIG
from ltenet.refinement.embedded_shape import EmbeddedShape
from ltenet.refinement.pair import Anchors, Pair, spans_plane
from ltenet.shape import Shape, normalizing_matrix


def thing(index: int, *, template: str = "thing402", turn: int | None = None) -> Shape:
    generator = own_generator("thing", held_back=True)
    points = generator.draw(9, index, template=template).vertices.astype(np.float64)
    if turn is not None:
        points = points @ Rotation.random(random_state=turn).as_matrix().T
    faces = generator.templates[template].faces.astype(np.int64)
    return Shape(points, faces=faces, name=f"thing{index}")


@pytest.fixture(scope="module")
def shapes() -> tuple[Shape, Shape]:
    return thing(0), thing(1)


def test_numbers_and_positions_mean_the_same_points(shapes):
    source, target = shapes
    numbers = [(700, 12), (5, 5)]
    positions = [(source.points[i], target.points[j]) for i, j in numbers]
    flat = np.array(positions).reshape(2, 6) + 1e-5
    for given in (numbers, np.array(numbers), positions, flat):
        found = known_pairs(given, source, target)
        np.testing.assert_array_equal(found.source, [5, 700])
        np.testing.assert_array_equal(found.target, [5, 12])
    assert known_pairs(found, source, target) is not None


def test_tables_and_landmark_files_are_read(shapes, tmp_path):
    source, target = shapes
    table = tmp_path / "known.csv"
    table.write_text("source,target\n7,9\n30,40\n", encoding="utf-8")
    found = read_known_pairs([table], source, target)
    np.testing.assert_array_equal(np.stack(found), [[7, 30], [9, 40]])
    one = tmp_path / "one.csv"
    one.write_text("7,9\n", encoding="utf-8")
    np.testing.assert_array_equal(np.stack(read_known_pairs([one], source, target)), [[7], [9]])
    here, there = tmp_path / "a.fcsv", tmp_path / "b.fcsv"
    write_landmarks(Landmarks(("nose", "tail"), source.points[[3, 50]]), here)
    write_landmarks(Landmarks(("tail", "wing"), target.points[[60, 4]]), there)
    found = read_known_pairs([here, there], source, target)
    np.testing.assert_array_equal(np.stack(found), [[50], [60]])
    write_landmarks(Landmarks(("other",), target.points[[4]]), there, force=True)
    with pytest.raises(InputError, match=r"no landmark of the same name .*; try giving"):
        read_known_pairs([here, there], source, target)
    with pytest.raises(UsageError, match=r"got 3 files .*, expected one table .*; try --pairs"):
        read_known_pairs([table] * 3, source, target)


def test_wrong_pairs_are_refused(shapes):
    source, target = shapes
    for given, error, match in (
        ([(0, 10**6)], InputError, r"target points 1000000 .*, expected 0 to .*; try counting"),
        ([(-1, 0)], InputError, r"source points -1 to -1, expected 0 to .*; try counting"),
        ([(1, 2), (1, 3)], InputError, r"two partners of the source point 1, expected one; try"),
        (np.zeros((0, 2), dtype=int), UsageError, r"got 0 known pairs, expected 1 to 50; try"),
        ([(i, i) for i in range(51)], UsageError, r"got 51 known pairs, expected 1 to 50; try"),
        ([(0.5, 1.5)], UsageError, r"shape \(1, 2\) and type float64, expected .*; try \[\(12"),
        ([[9.0] * 6], InputError, r"known pair 0 at a distance .*, expected it on the surface"),
        ([[np.nan] * 6], InputError, r"coordinates that are not finite, expected numbers; try"),
    ):
        with pytest.raises(error, match=match):
            known_pairs(given, source, target)


def test_three_points_off_a_line_span_a_plane():
    line = np.array([[0.0, 0, 0], [0.2, 0, 0], [0.5, 0.001, 0]])
    assert not spans_plane(line)
    assert not spans_plane(line[:2])
    assert spans_plane(np.array([[0.0, 0, 0], [0.2, 0, 0], [0, 0.2, 0]]))


def prepared(shape: Shape, rows: FloatArray, model: LTENet) -> Prepared:
    cleaned = Cleaned(shape, np.arange(len(shape)), shape)
    sample = Sample(cleaned, model, rows, (np.arange(len(rows)),))
    return Prepared(sample, normalizing_matrix(shape.points[rows]))


@pytest.fixture(scope="module")
def model() -> LTENet:
    torch.manual_seed(0)
    encoder = EncoderConfig(widths=(8, 8), dimension=8, neighbors=8)
    return LTENet(ModelConfig(encoder=encoder, radius=0.5)).eval()


def test_the_turn_is_the_one_between_the_shapes(shapes, model):
    source = shapes[0]
    rotation = Rotation.random(random_state=4).as_matrix()
    target = Shape(3.0 * source.points @ rotation.T + 5.0, faces=source.faces)
    rows = np.arange(0, len(source), 3)
    both = prepared(source, rows, model), prepared(target, rows, model)
    ends = np.array([0, 300, 900, 1200])
    turn = Steering(KnownPairs(ends, ends)).turn(*both)
    assert turn is not None
    np.testing.assert_allclose(turn, rotation, atol=1e-9)
    assert Steering(KnownPairs(ends[:2], ends[:2])).turn(*both) is None


def test_signatures_tell_where_a_point_lies_and_ignore_motions(shapes, model):
    source = shapes[0]
    rows = np.arange(0, len(source), 2)
    rotation = Rotation.random(random_state=4).as_matrix()
    moved = Shape(2.0 * source.points @ rotation.T - 1.0, faces=source.faces)
    known = np.array([0, 600, 1000])
    first = signature(prepared(source, rows, model).sample, known)
    again = signature(prepared(moved, rows, model).sample, known)
    torch.testing.assert_close(again, first, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(first.norm(dim=1), torch.ones(len(rows)))
    # The most similar point is the point itself, or one right beside it.
    nearest = (first @ first.T).fill_diagonal_(-1).argmax(dim=1)
    apart = np.linalg.norm(source.points[rows] - source.points[rows][nearest], axis=1)
    assert np.median(apart) < 0.15
    np.testing.assert_array_equal(places_in(prepared(source, rows, model).sample, known), known / 2)


def test_a_bent_shape_meets_its_anchors(shapes):
    rng = np.random.default_rng(0)
    rows = rng.choice(len(shapes[0]), 400, replace=False)
    points = [
        torch.tensor((s.points[rows] - s.points.mean(axis=0)), dtype=torch.float32) for s in shapes
    ]
    noise = torch.randn(400, 6, generator=torch.Generator().manual_seed(0))
    here, there = (EmbeddedShape(one, noise[torch.randperm(400)]) for one in points)
    known = torch.arange(0, 400, 40)
    free, anchored = (
        Bender(Pair(here, there, anchors=anchors), CONFIG).bend(3.0).points
        for anchors in (None, Anchors(known, known))
    )
    misses = [
        float((bent[known] - points[1][known]).norm(dim=1).mean()) for bent in (free, anchored)
    ]
    assert misses[1] < 0.05 < misses[0]
    whole = [float((bent - points[1]).norm(dim=1).mean()) for bent in (free, anchored)]
    assert whole[1] < 0.6 * whole[0]
    back = Pair(here, there, anchors=Anchors(known, known + 1)).reversed()
    assert back.anchors is not None
    torch.testing.assert_close(back.anchors.rows, known + 1)


def test_finished_maps_meet_the_pairs():
    arrays = MapArrays(
        np.array([3, -1, 2]),
        np.full(3, 0.2),
        np.zeros((3, 2), dtype=np.int64),
        np.full((3, 2), 0.5),
    )
    met = Steering(KnownPairs(np.array([1]), np.array([4]))).met(arrays)
    np.testing.assert_array_equal(met.indices, [3, 4, 2])
    assert met.scores is not None
    assert met.neighbors is not None
    assert met.weights is not None
    np.testing.assert_array_equal(met.scores, [0.2, 1.0, 0.2])
    np.testing.assert_array_equal(met.neighbors[1], [4, 4])
    np.testing.assert_array_equal(met.weights, [[0.5, 0.5], [1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(arrays.indices, [3, -1, 2])


@pytest.mark.slow
def test_three_pairs_turn_a_symmetric_thing_round():
    source, target = thing(0, turn=1), thing(1, turn=2)
    matcher = Matcher(MatchConfig(points=700))
    # A nose, a tail and a wing would do; here, three ends of the thing.
    middle = source.points - source.points.mean(axis=0)
    first = int(np.square(middle).sum(axis=1).argmax())
    second = int(np.linalg.norm(source.points - source.points[first], axis=1).argmax())
    axis = source.points[second] - source.points[first]
    third = int(
        np.linalg.norm(np.cross(source.points - source.points[first], axis), axis=1).argmax()
    )
    known = np.array([first, second, third])
    steered = matcher.match(source, target, pairs=np.stack([known, known], axis=1))
    free = matcher.match(source, target)
    errors = []
    for found in (free, steered):
        matched = found.matched
        offsets = target.points[found.indices[matched]] - target.points[matched]
        errors.append(100 * np.linalg.norm(offsets, axis=1).mean() / target.diameter)
    np.testing.assert_array_equal(steered.indices[known], known)
    np.testing.assert_array_equal(steered.scores[known], 1.0)
    assert steered.details["known_pairs"] == 3
    assert free.details["known_pairs"] == 0
    assert errors[1] < 8.0
    assert errors[1] < errors[0]
