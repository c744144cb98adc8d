"""Maps of any origin, refined: noisy, partial, perfect, with and without a model, from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from ltenet import io
from ltenet.correspondence import Correspondence
from ltenet.errors import InputError, UsageError
from ltenet.geometry.arrays import FloatArray, IntArray
from ltenet.matching.refine import refine
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig
from ltenet.refinement.map_features import joined, map_features, position_features
from ltenet.shape import Shape


def rest(count: int, seed: int) -> FloatArray:
    """Random points on a trunk with a long and a short limb and a head."""
    rng = np.random.default_rng(seed)
    axes = np.array([[0.25, 0.6, 0.15], [0.5, 0.07, 0.08], [0.3, 0.07, 0.08], [0.1, 0.2, 0.2]])
    centres = np.array([[0.0, 0, 0], [0.6, 0.4, 0.0], [-0.4, 0.2, 0.1], [0.0, 0.75, 0.1]])
    part = rng.choice(4, count, p=[0.5, 0.2, 0.15, 0.15])
    direction = rng.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * axes[part] + centres[part]


def bent(points: FloatArray) -> FloatArray:
    """Bend, turn by a right angle, enlarge and shift."""
    x, y, z = points.T
    moved = np.stack([x * np.cos(x) - 0.3 * y * np.sin(x), y + x * np.sin(x), z + 0.2 * y * y], 1)
    return 3.0 * moved @ np.array([[0.0, 0, 1], [0, 1, 0], [-1, 0, 0]]) + 7.0


COUNT, SIZE = 300, 260
SOURCE, TARGET = rest(COUNT, 0), bent(rest(SIZE, 1))
TRUTH = bent(SOURCE)
NEAREST: IntArray = np.square(TRUTH[:, None] - TARGET).sum(axis=2).argmin(axis=1)


def wrong(share: float) -> IntArray:
    """The best map with a share of its entries drawn at random."""
    rng = np.random.default_rng(5)
    chosen = rng.random(COUNT) < share
    return np.where(chosen, rng.integers(0, SIZE, COUNT), NEAREST)


def error(correspondence: Correspondence) -> float:
    return float(np.linalg.norm(correspondence.positions() - TRUTH, axis=1).mean())


@pytest.mark.parametrize("how", ["coherent", "mutual", "ot"])
def test_wrong_matches_are_corrected_without_any_features(how: str) -> None:
    given = wrong(0.3)
    result = refine(given, SOURCE, TARGET, how=how)  # type: ignore[arg-type]
    before = float(np.linalg.norm(TARGET[given] - TRUTH, axis=1).mean())
    best = float(np.linalg.norm(TARGET[NEAREST] - TRUTH, axis=1).mean())
    assert before > 0.6
    assert error(result) < {"coherent": 1.3, "mutual": 2.0, "ot": 2.0}[how] * best
    assert result.details["refined"] == how
    assert result.details["refinement_accepted"] is True
    assert result.details["energy"] < result.details["energy_before"]
    assert result.scores is not None
    assert result.neighbors is not None
    assert result.neighbors.shape == (COUNT, 10)
    assert result.source is not None


def test_a_missing_region_is_filled_in_or_left_as_it_was() -> None:
    given = wrong(0.1)
    hole = (SOURCE[:, 1] > 0.6) & (SOURCE[:, 0] < 0.2)  # the head
    given[hole] = -1
    filled = refine(given, SOURCE, TARGET)
    assert filled.matched.all()
    distance = np.linalg.norm(filled.positions() - TRUTH, axis=1)
    assert np.median(distance[hole]) < 0.4  # the head is 1.2 wide
    left = refine(given, SOURCE, TARGET, fill=False)
    assert np.array_equal(left.matched, ~hole)


def test_a_perfect_map_between_the_same_points_stays() -> None:
    order = np.random.default_rng(2).permutation(COUNT)
    shapes = Shape(SOURCE), Shape(TRUTH[order])
    result = refine(np.argsort(order), *shapes)
    assert result.details["same_points"]
    assert np.mean(result.indices == np.argsort(order)) > 0.95


def test_what_is_worse_is_not_taken() -> None:
    """ZoomOut on a cloud of 60 points cannot do better than the truth."""
    order = np.random.default_rng(2).permutation(60)
    given = Correspondence(
        np.argsort(order),
        60,
        details={"made": "by hand"},
        source=Shape(SOURCE[:60]),
        target=Shape(TRUTH[:60][order]),
    )
    result = refine(given, how="spectral")
    assert result.details["refinement_accepted"] is False
    assert result.details["made"] == "by hand"
    assert np.array_equal(result.indices, given.indices)
    assert result.positions() == pytest.approx(given.positions(), abs=1e-2)
    assert result.scores is not None
    assert result.neighbors is not None


def test_none_adds_neighbours_and_scores_and_nothing_else() -> None:
    given = wrong(0.3)
    given[7] = -1
    result = refine(given, SOURCE, TARGET, how="none", fill=False)
    assert np.array_equal(result.indices, given)
    assert result.neighbors is not None
    assert np.array_equal(result.neighbors[given >= 0, 0], given[given >= 0])


def test_soft_partners_of_the_map_are_heard() -> None:
    """The indices are all wrong, the neighbours and weights beside them are right."""
    given = Correspondence(
        np.zeros(COUNT, np.int64), SIZE, neighbors=NEAREST[:, None], weights=np.ones((COUNT, 1))
    )
    result = refine(given, SOURCE, TARGET)
    best = float(np.linalg.norm(TARGET[NEAREST] - TRUTH, axis=1).mean())
    assert error(result) < 1.3 * best


def small_model() -> LTENet:
    torch.manual_seed(0)
    encoder = EncoderConfig(widths=(8, 8), dimension=16, dilations=(1, 1))
    return LTENet(ModelConfig(encoder=encoder, radius=0.5)).eval()


def test_a_model_is_heard_beside_the_map(tmp_path: Path) -> None:
    model = small_model()
    given = wrong(0.3)
    alone = refine(given, SOURCE, TARGET, how="none")
    heard = refine(given, SOURCE, TARGET, model=model, trust=0.9)
    assert error(heard) < 0.5 * error(alone)
    model.save_pretrained(tmp_path / "weights")
    again = refine(given, SOURCE, TARGET, model=tmp_path / "weights", trust=0.9)
    assert np.array_equal(heard.indices, again.indices)
    linear = refine(NEAREST, SOURCE, TARGET, how="linear", model=model)
    assert linear.details["energy"] <= linear.details["energy_before"]


def test_large_shapes_are_embedded_in_part_and_keep_every_point() -> None:
    source = rest(2300, 3)
    identity = np.arange(2300)
    result = refine(identity, source, source, how="none", model=small_model())
    assert np.array_equal(result.indices, identity)


def test_files_and_attached_shapes_do_as_well(tmp_path: Path) -> None:
    io.save(Shape(SOURCE), tmp_path / "source.ply")
    io.save(Shape(TARGET), tmp_path / "target.npz")
    read = refine(wrong(0.2), tmp_path / "source.ply", str(tmp_path / "target.npz"), how="mutual")
    attached = Correspondence(wrong(0.2), SIZE, source=read.source, target=read.target)
    assert np.array_equal(refine(attached, how="mutual").indices, read.indices)


def test_errors_say_what_to_do() -> None:
    given = wrong(0.2)
    with pytest.raises(UsageError, match="try model='human'"):
        refine(given, SOURCE, TARGET, how="linear")
    with pytest.raises(UsageError, match="checking the spelling"):
        refine(given, SOURCE, TARGET, how="magic")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="try passing source and target"):
        refine(given)
    with pytest.raises(InputError, match="got no source"):
        refine(Correspondence(given, SIZE), target=TARGET)
    with pytest.raises(InputError, match="source with 299 points and a map of 300"):
        refine(given, SOURCE[:-1], TARGET)
    with pytest.raises(InputError, match="trust=2"):
        refine(given, SOURCE, TARGET, trust=2.0)
    with pytest.raises(InputError, match="without any matched point"):
        refine(np.full(COUNT, -1), SOURCE, TARGET)


# --- A map as features -------------------------------------------------------------------------


def test_cosines_of_positions_fall_with_distance() -> None:
    target = torch.tensor(SOURCE).float()
    features = position_features(target, target)
    cosines, distance = features @ features.T, torch.cdist(target, target)
    assert cosines.diagonal() == pytest.approx(torch.ones(COUNT), abs=1e-5)
    assert cosines[distance < 0.03].min() > 0.9
    assert cosines[distance > 0.8].max() < 0.2


def test_neighbours_outvote_a_wrong_match_and_silence_stays_silent() -> None:
    source = torch.tensor(SOURCE).float()
    positions = source.clone()
    positions[5] = source[(source - source[5]).square().sum(1).argmax()]
    first, second = map_features(source, source, positions, torch.ones(COUNT))
    assert (source[(first @ second.T).argmax(dim=1)] - source)[5].norm() < 0.2
    silent, _ = map_features(source, source, positions, torch.zeros(COUNT))
    assert (silent == 0).all()


def test_joined_cosines_are_mixtures() -> None:
    generator = torch.Generator().manual_seed(0)
    one, two = ((torch.randn(4, d, generator=generator),) * 2 for d in (3, 6))
    cosine = torch.nn.functional.cosine_similarity
    source, target = joined(one, two, share=0.3)
    found = cosine(source[:, None], target[None], dim=2)
    parts = [cosine(f[0][:, None], f[1][None], dim=2) for f in (one, two)]
    assert torch.allclose(found, 0.7 * parts[0] + 0.3 * parts[1], atol=1e-6)
