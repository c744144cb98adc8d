"""Sides that cannot be told apart: both maps are kept, and no map turns a shape inside out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from ltenet.correspondence import Correspondence
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.io import save
from ltenet.matching.candidates import CLOSE, Candidate, ranked_candidates, refined_cost
from ltenet.matching.config import MatchConfig
from ltenet.matching.looks import Look
from ltenet.matching.matcher import Matcher
from ltenet.matching.networks import read_aligner, read_networks
from ltenet.matching.preparation import prepare
from ltenet.matching.rivals import distinct_maps, rival
from ltenet.matching.summary import summarize
from ltenet.matching.ways import Way
from ltenet.shape import Shape
from ltenet.viewer.scene import build_scene
from ltenet.viewer.work import Order, work


class Propeller(NamedTuple):
    """A tube in the form of a bent S, which a half turn about z maps to itself."""

    shape: Shape
    twin: IntArray


def propeller(*, head: float = 0.0) -> Propeller:
    """A cloud of 600 points; `head` thickens one of the two ends, so that they differ."""
    rng = np.random.default_rng(4)
    t, angle = rng.uniform(0, 1, 300), rng.uniform(0, 2 * np.pi, 300)
    curve = np.stack([t, 0.8 * t**2, 0.6 * t**2], axis=1)  # (300, 3)
    along = np.stack([np.ones(300), 1.6 * t, 1.2 * t], axis=1)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    side = np.cross(along, [0.0, 0.0, 1.0])
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    over = np.cross(side, along)

    def half(extra: float) -> FloatArray:
        radius = (0.12 + extra * np.exp(-np.square((t - 0.9) / 0.15)))[:, None]
        around = np.cos(angle)[:, None] * side + 0.6 * np.sin(angle)[:, None] * over
        found: FloatArray = curve + radius * around
        return found

    points = np.concatenate([half(head), half(0.0) * [-1, -1, 1]])  # (600, 3)
    return Propeller(Shape(points, name="propeller"), (np.arange(600) + 300) % 600)


def turned(shape: Shape, seed: int) -> Shape:
    return replace(shape, points=shape.points @ Rotation.random(random_state=seed).as_matrix().T)


def error(found: Correspondence, target: Shape, truth: IntArray) -> float:
    apart = np.linalg.norm(found.positions(target) - target.points[truth], axis=1)
    return float(np.nanmean(apart)) / target.diameter


@pytest.mark.slow
def test_both_ends_of_a_propeller_fit_either_way() -> None:
    shape, twin = propeller()
    target = turned(shape, 3)
    matcher = Matcher(MatchConfig(model="any", threshold=0.0))
    chosen, other = matcher.match_both(shape, target)
    assert other is not None
    straight = np.arange(len(shape))
    errors = sorted(
        [(error(one, target, straight), error(one, target, twin)) for one in (chosen, other)]
    )
    assert errors[0][0] < 0.03 < 0.3 < errors[0][1]  # one map keeps the ends
    assert errors[1][1] < 0.03 < 0.3 < errors[1][0]  # and one exchanges them
    for one, rest in ((chosen, other), (other, chosen)):
        assert one.details["symmetry"] == "ambiguous"
        assert one.details["other_probability"] == rest.details["direction_probability"]
    assert chosen.details["direction_probability"] >= other.details["direction_probability"]
    summary = summarize(chosen)
    assert summary.symmetry == "ambiguous"
    assert "symmetry ambiguous" in summary.headline
    figures = {
        one["name"]: one["value"]
        for one in build_scene(shape, target, chosen).description["figures"]
    }
    assert figures["symmetry"] == "ambiguous"
    # The plain call makes the same choice.
    np.testing.assert_array_equal(matcher.match(shape, target).indices, chosen.indices)


@pytest.mark.slow
def test_ends_that_differ_are_told_apart() -> None:
    shape, _ = propeller(head=0.25)
    target = turned(shape, 3)
    chosen, other = Matcher(MatchConfig(model="any", threshold=0.0)).match_both(shape, target)
    assert other is None
    assert error(chosen, target, np.arange(len(shape))) < 0.03
    assert chosen.details["symmetry"] == "clear"
    assert chosen.details["other_probability"] is None


@pytest.mark.slow
def test_the_app_offers_the_other_map(tmp_path: Path) -> None:
    shape, _ = propeller()
    paths = tmp_path / "one.ply", tmp_path / "two.ply"
    for one, path in zip((shape, turned(shape, 3)), paths, strict=True):
        save(one, path)
    offered = {}
    for name, pairs in (("free", ()), ("steered", ((10, 10), (200, 200), (450, 450)))):
        folder = tmp_path / name
        folder.mkdir()
        work(Order(*paths, "one", "two", "any", "quick", folder, pairs), lambda *_: None)
        offered[name] = json.loads((folder / "offered.json").read_text())
    assert "other.npz" in offered["free"]
    assert "other.npz" not in offered["steered"]  # known pairs decide
    maps = [Correspondence.load(tmp_path / "free" / name) for name in ("map.npz", "other.npz")]
    assert (maps[0].indices != maps[1].indices).mean() > 0.9
    steered = Correspondence.load(tmp_path / "steered" / "map.npz")
    assert steered.details["symmetry"] == "clear"
    assert error(steered, turned(shape, 3), np.arange(len(shape))) < 0.05


def test_without_refinement_nobody_looks_for_another_map() -> None:
    shape, _ = propeller()
    matcher = Matcher(MatchConfig(model="any", refine="none", threshold=0.0))
    found = matcher.match(shape, turned(shape, 3))
    assert found.details["symmetry"] is None
    assert summarize(found).symmetry is None


@pytest.fixture(scope="module")
def candidate() -> Candidate:
    """The map of a shape onto itself."""
    networks = [read_networks("any"), read_aligner()]
    shape, _ = propeller()
    sides = [prepare(one, networks, points=None) for one in (shape, turned(shape, 5))]
    found = ranked_candidates(networks, *sides, orient="any", refine="none")
    return found[0]


def moved(candidate: Candidate, shift: float, probability: float) -> Candidate:
    """The same map, all of whose places are moved by a share of the diameter."""
    scale = float(np.linalg.norm(candidate.target.matrix[0, :3]))
    step = shift * candidate.target.shape.diameter * scale
    places = candidate.refined.positions + torch.tensor([step, 0.0, 0.0])
    refined = candidate.refined._replace(positions=places)
    return candidate._replace(refined=refined, probability=probability)


def test_ways_to_one_map_are_no_rivals(candidate: Candidate) -> None:
    ways = [moved(candidate, *one) for one in ((0.0, 0.5), (0.02, 0.3), (0.4, 0.15), (0.42, 0.05))]
    kept = distinct_maps(ways)
    assert [one.probability for one in kept] == pytest.approx([0.8, 0.2])
    other = rival(kept)
    assert other is not None
    assert other.refined is ways[2].refined
    assert rival(kept[:1]) is None
    assert rival([kept[0], kept[1]._replace(probability=0.05)]) is None


def test_maps_are_compared_in_the_frame_of_the_target(candidate: Candidate) -> None:
    """One map in two orientations of the target is one map."""
    rotation = Rotation.random(random_state=1).as_matrix()
    target = candidate.target.rotated(rotation)
    places = candidate.refined.positions @ torch.from_numpy(rotation).float().T
    again = candidate._replace(target=target, refined=candidate.refined._replace(positions=places))
    halves = [one._replace(probability=0.5) for one in (candidate, again)]
    assert len(distinct_maps(halves)) == 1


def test_a_map_that_turns_the_shape_inside_out_comes_last(candidate: Candidate) -> None:
    """Of two maps at about the same cost, the one that keeps the orientation is chosen."""
    way = Way(candidate.networks, candidate.source, candidate.target, 0.0)
    look = Look(way, candidate.refined.indices, energy=0.6, left_out=0.0)
    kept, reversed_ = (
        candidate.refined._replace(energy=energy, mirrored=mirrored)
        for energy, mirrored in ((0.5, 0.1), (0.45, 0.9))
    )
    assert refined_cost(look, kept, 0.0) == pytest.approx(0.55)
    assert refined_cost(look, reversed_, 0.0) == pytest.approx(0.525 + CLOSE)
    assert refined_cost(look, kept, 0.0) < refined_cost(look, reversed_, 0.0)
