"""Matching any two shapes, from arrays and files to a correspondence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.spatial.transform import Rotation
from sklearn.metrics import roc_auc_score

import ltenet
from ltenet.bodies.body_pairs import own_generator
from ltenet.cli import main
from ltenet.correspondence import Correspondence
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.matching.candidates import ranked_candidates
from ltenet.matching.config import MatchConfig
from ltenet.matching.matcher import Matcher, match
from ltenet.matching.networks import Networks, read_networks
from ltenet.matching.preparation import PART, Prepared, prepare, yaw_only
from ltenet.matching.sample import sample_rows, surface_shares
from ltenet.method.model import LTENet
from ltenet.shape import Shape


def person(index: int, *, points: int | None = None, seed: int = 0) -> tuple[Shape, np.ndarray]:
    """A generated person, or some of its vertices, and which ones."""
    generator = own_generator("human")
    body = generator.draw(4321, index)
    faces = generator.templates["human"].faces.astype(np.int64)
    shape = Shape(body.vertices.astype(np.float64), faces, name=f"person{index}")
    if points is None:
        return shape, np.arange(len(shape))
    chosen = np.random.default_rng(seed).choice(len(shape), points, replace=False)
    return shape.subset(chosen), chosen


def error_percent(correspondence: Correspondence, target: Shape, truth: np.ndarray) -> float:
    distances = np.linalg.norm(correspondence.positions(target) - truth, axis=1)
    return 100 * float(np.nanmean(distances)) / target.diameter


def test_the_papers_test_phase_is_one_of_the_settings():
    source, _ = person(0, points=300)
    target, _ = person(1, points=280, seed=1)
    options = {"points": None, "orient": "none", "refine": "none", "threshold": 0.0}
    found = match(source, target, model="human", **options)
    model = LTENet.from_pretrained("human")
    features = [F.normalize(model.embed(shape), dim=1) for shape in (source, target)]
    oracle = (features[0] @ features[1].T).argmax(dim=1)
    np.testing.assert_array_equal(found.indices, oracle.numpy())


@pytest.mark.slow
def test_two_people_are_matched_whatever_way_they_come_in():
    source, _ = person(2, points=1024)
    whole, _ = person(3)
    target, chosen = person(3, points=1024, seed=1)
    truth = whole.points[person(2, points=1024)[1]]
    upright = match(source, target, model="human", threshold=0.0)
    assert error_percent(upright, target, truth) < 6
    turns = Rotation.random(2, random_state=3).as_matrix()
    moved = [
        Shape(scale * shape.points @ turn.T + shift)
        for shape, turn, scale, shift in zip(
            (source, target), turns, (1000.0, 0.01), (7.0, -3.0), strict=True
        )
    ]
    again = match(*moved, model="human", threshold=0.0)
    # Rounding moves a few sample points; the map is the same but for these.
    assert np.mean(again.indices == upright.indices) > 0.8
    assert len(chosen) == again.target_size


def test_the_map_reaches_every_vertex_of_meshes():
    source, _ = person(4)
    target, _ = person(5)
    found = match(source, target, model="human", points=900, threshold=0.0)
    assert len(found) == len(source)
    assert found.matched.all()
    assert found.details["embedded"] == [900, 900]
    assert error_percent(found, target, target.points) < 5
    assert found.source is source


@pytest.mark.slow
def test_weights_are_chosen_by_the_more_plausible_map():
    generator = own_generator("animal")
    horses = [
        Shape(generator.draw(1, index, category="horse", template="dog").vertices[::3])
        for index in range(2)
    ]
    people = [person(index, points=700)[0] for index in (6, 7)]
    assert match(*people, points=500).details["model"] == "human"
    assert match(*horses, points=500).details["model"] == "animal"


def test_the_same_input_gives_the_same_bytes(tmp_path):
    source, target = person(0)[0], person(1)[0]
    for name in ("first", "second"):
        match(source, target, model="human", points=300).save(tmp_path / f"{name}.npz")
    first, second = ((tmp_path / f"{name}.npz").read_bytes() for name in ("first", "second"))
    assert first == second


@pytest.mark.slow
def test_threads_do_not_change_the_map():
    source, target = person(0, points=400)[0], person(1, points=380, seed=1)[0]
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            torch.set_num_threads(threads)
            found.append(match(source, target))
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].indices, other.indices)
        np.testing.assert_array_equal(found[0].scores, other.scores)
        np.testing.assert_array_equal(found[0].weights, other.weights)


@pytest.mark.slow
def test_an_embedded_shape_can_be_matched_many_times():
    shapes = [person(index, points=400)[0] for index in range(3)]
    matcher = Matcher(MatchConfig(model="human"))
    ready = [matcher.prepare(shape) for shape in shapes]
    for other in (1, 2):
        kept = matcher.match_prepared(ready[0], ready[other])
        fresh = match(shapes[0], shapes[other], model="human")
        np.testing.assert_array_equal(kept.indices, fresh.indices)


def test_a_high_threshold_leaves_points_unmatched():
    source, target = person(0, points=300)[0], person(1, points=300)[0]
    found = match(source, target, model="human", threshold=0.999)
    assert not found.matched.all()
    assert (found.scores[found.matched] >= 0.999).all()
    assert found.thresholded(0.0).matched.all()


@pytest.mark.slow
def test_points_whose_part_is_missing_get_low_scores():
    pairs = TrainingPairs(
        PairConfig(what="human", points=(1024, 1024)), seed=12, split="validation"
    )
    matcher = Matcher(MatchConfig(model="human", threshold=0.0))
    areas = []
    for index in range(5):
        pair = pairs.draw(index)
        direction = np.random.default_rng(index).normal(size=3)
        heights = pair.target @ direction  # (M,)
        cut = np.quantile(heights, 0.7)
        found = matcher.match(
            Shape(pair.source.astype(np.float64)),
            Shape(pair.target[heights <= cut].astype(np.float64)),
        )
        areas.append(roc_auc_score(pair.source_truth @ direction <= cut, found.scores))
    # Of a map that fails as a whole, and says so, nobody can expect it.
    assert np.median(areas) > 0.9


def test_progress_names_every_stage():
    stages = []
    source, target = person(0, points=200)[0], person(1, points=200)[0]
    match(source, target, model="human", progress=lambda stage, share: stages.append(stage))
    assert list(dict.fromkeys(stages)) == ["embed", "refine", "confidence", "carry"]


def test_large_samples_are_embedded_in_parts_of_the_size_of_training():
    torch.manual_seed(0)
    model = LTENet.from_pretrained("human")
    shape, _ = person(0)
    networks = Networks("plain", Path(), model, None)
    prepared = prepare(shape, [networks], points=2 * PART)[0][0]
    features = prepared.embedded.features
    assert features.shape == (2 * PART, model.config.encoder.dimension)
    assert not prepared.sample.complete
    radius = prepared.points.square().sum(dim=1).mean().sqrt()
    assert float(radius) == pytest.approx(0.5, abs=1e-3)
    np.testing.assert_allclose(
        prepared.all_points()[prepared.sample.rows], prepared.points.numpy(), atol=1e-5
    )
    spreads = [prepared.points[part].std(dim=0) for part in prepared.sample.parts]
    torch.testing.assert_close(spreads[0], spreads[1], atol=0.05, rtol=0)
    # Rotated there and back again, it is the same: the same points go through together.
    quarter = Rotation.from_euler("y", 90, degrees=True).as_matrix()
    again = prepared.rotated(quarter).rotated(quarter.T)
    torch.testing.assert_close(again.embedded.features, features, atol=1e-3, rtol=0)
    torch.testing.assert_close(again.points, prepared.points, atol=1e-5, rtol=0)
    # Neighbours are found once for all rotations, and are those of each.
    beside = prepared.rotated(quarter)
    assert beside.sample is prepared.sample
    for number, part in enumerate(prepared.sample.parts):
        turned = prepared.sample.points[part] @ quarter.T
        graphs = model.graphs_of(turned, prepared.sample.along(number))
        alone = model.embed(turned, graphs=graphs)
        differ = (beside.embedded.features[part] - F.normalize(alone, dim=1)).abs() > 1e-3
        assert differ.float().mean() < 0.01  # a rotation rounds: equally near points change places


def test_a_wrong_frame_is_set_right_by_that_of_the_other_shape():
    networks = read_networks("human")
    shapes = [person(index, points=1024)[0] for index in (2, 3)]
    upright = [prepare(shape, [networks], points=None, orient="any")[0][0] for shape in shapes]
    wrong = upright[0].rotated(Rotation.from_euler("y", 60, degrees=True).as_matrix())

    def energy(source, orient):
        shapes = [networks], [[source]], [[upright[1]]]
        return ranked_candidates(*shapes, orient=orient, refine="none")[0].refined.energy

    assert energy(wrong, "any") < energy(wrong, "none")
    assert energy(wrong, "yaw") < energy(wrong, "none")  # the mistake was about that axis
    assert energy(wrong, "any") < energy(upright[0], "none") + 0.1


@pytest.mark.slow
def test_candidates_are_ranked_by_energy_and_opinion(monkeypatch):
    """Two orientations of one shape: opinion decides where it outweighs the energy."""
    networks = read_networks("human")
    source, target = (
        prepare(person(index, points=400)[0], [networks], points=None, orient="any")[0][0]
        for index in (2, 3)
    )
    half_turn = source.rotated(np.diag([-1.0, 1.0, -1.0]))
    likely, unlikely = (source.frame._replace(certainty=c) for c in (0.9, 0.1))

    def ranked(first, second):
        one = Prepared(source.sample, source.matrix, first)
        other = Prepared(half_turn.sample, half_turn.matrix, second)
        found = ranked_candidates(
            [networks], [[one, other]], [[target]], orient="none", refine="coherent", close=10.0
        )
        return found, [candidate.source is one for candidate in found]

    found, order = ranked(likely, unlikely)
    assert order == [True, False]
    assert sum(candidate.probability for candidate in found) == pytest.approx(1.0)
    assert found[0].probability > found[1].probability
    gap = found[1].cost - found[0].cost
    # An opinion that outweighs the difference in energy, which is a part of this, turns the order.
    monkeypatch.setattr("ltenet.matching.looks.PRIOR", 2 * gap / np.log(9))
    assert ranked(unlikely, likely)[1] == [False, True]


def test_samples_are_spread_by_area_not_by_vertex():
    # A square whose middle holds most of the points.
    rng = np.random.default_rng(0)
    flat = np.array([1.0, 1.0, 0.0])
    crowd = 0.1 * rng.uniform(-1, 1, (9000, 3)) * flat
    rest = rng.uniform(-1, 1, (1000, 3)) * flat
    rows = sample_rows(Shape(np.concatenate([crowd, rest])), 200, rng)
    assert len(np.unique(rows)) == 200
    assert (rows < 9000).mean() < 0.2


def test_surface_shares_sum_to_the_surface():
    square = Shape(
        np.array([[0.0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
    )
    np.testing.assert_allclose(surface_shares(square).sum(), 4.0)


def test_yaw_only_keeps_the_y_axis():
    turn = Rotation.from_euler("y", 40, degrees=True).as_matrix()
    np.testing.assert_allclose(yaw_only(turn), turn, atol=1e-12)
    leaning = Rotation.from_euler("YX", [40, 20], degrees=True).as_matrix()
    np.testing.assert_allclose(yaw_only(leaning)[1], [0, 1, 0], atol=1e-12)


def test_bad_input_is_refused_with_advice():
    fine = person(0, points=100)[0]
    with pytest.raises(InputError, match="got 20 points, expected at least 50"):
        match(np.zeros((20, 3)), fine, model="human")
    with pytest.raises(UsageError, match="at least 50"):
        MatchConfig(points=3)
    with pytest.raises(UsageError, match="orient 'sideways'"):
        MatchConfig(orient="sideways")
    with pytest.raises(UsageError, match="probability from 0 to 1"):
        MatchConfig(threshold=2.0)
    with pytest.raises(UsageError, match="config and seed"):
        match(fine, fine, config=MatchConfig(), seed=1)
    with pytest.raises(MissingError, match="the name of shipped weights"):
        match(fine, fine, model="dragon")


class TestCommandLine:
    @pytest.fixture
    def files(self, tmp_path):
        paths = []
        for index in (0, 1):
            path = tmp_path / f"person{index}.xyz"
            np.savetxt(path, person(index, points=300)[0].points)
            paths.append(str(path))
        return paths

    @pytest.mark.slow
    def test_match_writes_map_picture_and_report(self, files, tmp_path, capsys):
        outputs = {name: tmp_path / f"out.{name}" for name in ("npz", "png", "html")}
        named = ("-o", "npz"), ("--png", "png"), ("--report", "html")
        options = [word for flag, name in named for word in (flag, str(outputs[name]))]
        code = main(["match", *files, *options, "--model", "human", "--json"])
        assert code == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["points"] == [300, 300]
        assert figures["model"] == "human"
        assert Correspondence.load(outputs["npz"]).target_size == 300
        assert outputs["png"].read_bytes().startswith(b"\x89PNG")
        assert b"<html" in outputs["html"].read_bytes()[:300].lower()

    def test_text_maps_have_one_line_per_point(self, files, tmp_path):
        assert main(["match", *files, "-o", str(tmp_path / "a.map"), "--model", "human"]) == 0
        numbers = np.loadtxt(tmp_path / "a.map", dtype=int)
        assert numbers.shape == (300,)
        assert numbers.max() <= 300

    def test_nothing_is_overwritten(self, files, tmp_path, capsys):
        (tmp_path / "a.npz").write_bytes(b"precious")
        assert main(["match", *files, "-o", str(tmp_path / "a.npz")]) == 2
        assert "exists" in capsys.readouterr().err
        assert (tmp_path / "a.npz").read_bytes() == b"precious"

    def test_exit_codes(self, files, tmp_path, capsys):
        (tmp_path / "bad.off").write_text("OFF\n1 0 0\nx y z\n")
        out = ["-o", str(tmp_path / "b.npz")]
        assert main(["match", str(tmp_path / "bad.off"), files[1], *out]) == 3
        assert main(["match", *files, *out, "--model", "dragon"]) == 4
        assert main(["match", *files, *out, "--points", "many"]) == 2
        assert not (tmp_path / "b.npz").exists()
        assert "INT|all" in capsys.readouterr().err


def test_the_public_name():
    assert ltenet.match is match
