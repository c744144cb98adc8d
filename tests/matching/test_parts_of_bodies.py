"""Parts of bodies: where they lie, which way they face, and what is matched."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from creature import body, embedded, pair_of
from scipy.spatial.transform import Rotation

from ltenet.data.partial_pairs import partial_pair
from ltenet.evaluation.bench.benchmarks import GeneratedBenchmark
from ltenet.geometry.rotations import axis_rotation, rotation_degrees
from ltenet.matching.config import MatchConfig
from ltenet.matching.frame_search import UNSURE, better_turn
from ltenet.matching.matcher import Matcher
from ltenet.matching.placement import SCALES, Placement, can_place, fit_placement, place_part
from ltenet.matching.preparation import Prepared
from ltenet.method.model import LTENet, ModelConfig
from ltenet.refinement.pair import Pair
from ltenet.shape import Shape, normalizing_matrix


@pytest.fixture(scope="module")
def matcher() -> Matcher:
    return Matcher(MatchConfig(model="human", orient="none"))


@pytest.fixture(scope="module")
def whole() -> Shape:
    shapes = GeneratedBenchmark("generated-human")
    points = shapes.shape(0).points
    rows = np.random.default_rng(0).permutation(len(points))[:1024]
    return Shape(points[rows], name="whole")


def test_scale_and_place_are_fitted_in_spite_of_wrong_matches() -> None:
    target = body(600, 0)
    features = embedded(target, noise=0.0, seed=0)
    part = target[:, 1] < 0.1
    source = (target[part] - torch.tensor([0.1, -0.3, 0.2])) / 0.6
    wrong = features[part].clone()
    count = len(wrong) // 5
    wrong[:count] = features[part][:count].flip(0)  # a fifth of the points has another's feature
    found = fit_placement(pair_of(source, target, wrong, features))
    assert found.scale == pytest.approx(0.6, rel=0.03)
    assert found.offset == pytest.approx(np.array([0.1, -0.3, 0.2]), abs=0.02)
    known = fit_placement(pair_of(source, target, wrong, features), scale=0.5)
    assert known.scale == 0.5
    tiny = fit_placement(pair_of(100 * source, target, wrong, features))
    assert tiny.scale == SCALES[0]


def test_a_placement_is_a_matrix() -> None:
    matrix = Placement(0.5, np.array([1.0, 2.0, 3.0])).matrix
    assert (matrix @ [2.0, 4.0, 6.0, 1.0]).tolist() == [2.0, 4.0, 6.0, 1.0]


def test_only_networks_of_normalised_coordinates_can_place() -> None:
    assert can_place(LTENet.from_pretrained("human"))
    assert not can_place(LTENet(ModelConfig()))  # the paper's keeps the unit of the shape


def test_a_part_in_its_place_has_the_features_of_the_whole(matcher: Matcher, whole: Shape) -> None:
    model = matcher.networks[0].model
    matrix = normalizing_matrix(whole.points)
    points = torch.from_numpy(whole.points @ matrix[:3, :3].T + matrix[:3, 3]).float()
    expected = torch.nn.functional.normalize(model.embed(whole).float(), dim=1)
    again = model.embed_placed(points, at_once=len(points))
    assert torch.nn.functional.cosine_similarity(again, expected).min() > 0.999
    low = points[:, 1] < 0
    part = model.embed_placed(points[low], at_once=int(low.sum()))
    inner = points[low][:, 1] < -0.25
    placed = torch.nn.functional.cosine_similarity(part, expected[low])[inner].mean()
    own = model.embed(points[low]).float()
    alone = torch.nn.functional.cosine_similarity(own, expected[low])[inner].mean()
    assert placed > 0.95
    assert 1 - placed < 0.8 * (1 - alone)


def test_a_part_is_put_where_it_belongs(matcher: Matcher, whole: Shape) -> None:
    part = Shape(whole.points[whole.points[:, 1] > np.median(whole.points[:, 1])], name="part")
    source, target = (matcher.prepare(shape)[0][0] for shape in (part, whole))
    found = place_part(source, target)
    assert found is not None
    assert found[1] is target
    truth = part.points @ target.matrix[:3, :3].T + target.matrix[:3, 3]
    before = np.linalg.norm(source.all_points() - truth, axis=1).mean()
    after = np.linalg.norm(found[0].all_points() - truth, axis=1).mean()
    assert after < 0.4 * before
    swapped = place_part(target, source, same_scale=True)
    assert swapped is not None
    assert swapped[0] is target
    scales = [np.linalg.norm(one.matrix[0, :3]) for one in swapped]
    assert scales[1] == pytest.approx(scales[0])
    assert place_part(target, target) is None


def test_a_whole_shape_with_some_wrong_features_stays_where_it_is(
    matcher: Matcher, whole: Shape
) -> None:
    target = matcher.prepare(whole)[0][0]
    features = target.first_part.features.clone()
    heights = target.first_part.points[:, 1]
    torch.manual_seed(0)
    for share, placed in ((0.2, False), (0.5, True)):  # half of a shape may well be missing
        wrong = heights > torch.quantile(heights, 1 - share)
        changed = torch.where(wrong[:, None], torch.randn_like(features), features)
        source = Prepared(target.sample, target.matrix, features={0: changed})
        assert Pair(source.first_part, target.first_part).overlap is not None
        assert (place_part(source, target) is not None) == placed


@pytest.mark.slow
def test_a_part_that_is_turned_is_turned_back(matcher: Matcher, whole: Shape) -> None:
    part = Shape(whole.points[whole.points[:, 1] > np.median(whole.points[:, 1])], name="part")
    source, target = (matcher.prepare(shape)[0][0] for shape in (part, whole))
    askew = source.rotated(axis_rotation((0.0, 1.0, 0.0), 50.0))
    found = better_turn(askew, target, "any")
    assert found is not None
    assert found.target is target
    assert found.opinion == 0.0
    angle = Rotation.from_matrix(found.source.rotation @ source.rotation.T).magnitude()
    assert np.degrees(angle) < 25
    assert better_turn(askew, target, "none") is None
    assert better_turn(target, target, "any") is None


@pytest.mark.slow
def test_a_whole_body_is_turned_where_its_frame_is_in_doubt(whole: Shape) -> None:
    target = Matcher(MatchConfig(model="human")).prepare(whole)[0][0]
    assert target.frame is not None
    assert target.frame.certainty > UNSURE
    for certainty, turns in ((UNSURE - 0.3, True), (UNSURE + 0.1, False)):
        frame = target.frame._replace(certainty=certainty)
        askew = Prepared(target.sample, target.matrix, frame).rotated(axis_rotation((0, 1, 0), 60))
        found = better_turn(askew, target, "any")
        assert (found is not None) == turns
        if found is not None:
            assert rotation_degrees(found.source.rotation @ target.rotation.T) < 25
            assert found.target is target


@pytest.mark.slow
def test_the_frame_in_doubt_is_mended_even_if_features_err_as_those_of_parts_do(
    whole: Shape,
) -> None:
    matcher = Matcher(MatchConfig(model="human"))
    points = GeneratedBenchmark("generated-human").shape(3).points
    sure = matcher.prepare(Shape(points[np.random.default_rng(1).permutation(len(points))[:1024]]))
    upright = matcher.prepare(whole)[0][0]
    assert upright.frame is not None
    doubt = upright.frame._replace(certainty=0.1)
    askew = Prepared(upright.sample, upright.matrix, doubt).rotated(axis_rotation((1, 0, 0), 65))
    assert Pair(askew.first_part, sure[0][0].first_part).overlap is not None
    for source, target in ((askew, sure[0][0]), (sure[0][0], askew)):
        found = better_turn(source, target, "any")
        assert found is not None
        turned, kept = found[:2] if source is askew else found[1::-1]
        assert kept is sure[0][0]
        assert rotation_degrees(turned.rotation @ upright.rotation.T) < 35


@pytest.mark.slow
def test_half_a_body_is_matched_onto_another_body() -> None:
    drawn = partial_pair(GeneratedBenchmark("generated-human"), 58, kind="cut", rotate="any")
    found = Matcher(MatchConfig(model="human")).match(Shape(drawn.source), Shape(drawn.target))
    errors = np.linalg.norm(found.positions(drawn.target) - drawn.truth, axis=1) / drawn.diameter
    assert errors.mean() < 0.04
    assert (found.indices >= 0).mean() > 0.9
