from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch

from ltenet import LTENet, Shape
from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.geometry.diameter import largest_distance
from ltenet.method.divergence import DivergenceConfig
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import ModelConfig, available_weights, find_weights
from ltenet.method.neighbors import cosine_topk
from ltenet.method.transforms import TransformConfig
from ltenet.metrics import accuracy, distances_to_truth

CONFIG = ModelConfig(
    encoder=EncoderConfig(widths=(6, 8), dimension=5, neighbors=4),
    radius=0.5,
    transform=TransformConfig(neighbors=3, relative=True),
    divergence=DivergenceConfig(sigma=0.02),
)


@pytest.fixture
def model() -> LTENet:
    torch.manual_seed(0)
    return LTENet(CONFIG)


@pytest.fixture
def folder(model: LTENet, tmp_path: Path) -> Path:
    model.save_pretrained(tmp_path / "weights")
    return tmp_path / "weights"


def cloud(count: int = 30, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3))


def test_embedding_does_not_depend_on_position_and_unit(model: LTENet) -> None:
    points = cloud()
    expected = model.embed(points)
    assert expected.shape == (30, 5)
    torch.testing.assert_close(model.embed(1000 * points + 77), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(model.embed(Shape(points)), expected)
    torch.testing.assert_close(model.embed(torch.tensor(points)), expected)
    assert model.training, "embedding must leave the mode as it was"


def test_without_a_radius_the_unit_counts() -> None:
    torch.manual_seed(0)
    model = LTENet(ModelConfig(encoder=CONFIG.encoder))
    assert not torch.allclose(model.embed(cloud()), model.embed(3 * cloud()))
    torch.testing.assert_close(model.embed(cloud()), model.embed(cloud() + 5), rtol=1e-4, atol=1e-4)


def test_a_joint_pass_shares_statistics_and_two_passes_do_not(model: LTENet) -> None:
    source, target = [torch.tensor(cloud()).float()], [4 + torch.tensor(cloud(20, 1)).float()]
    joint, apart = model(source, target), model(source, target, joint=False)
    assert joint[0][0].shape == apart[0][0].shape == (30, 5)
    assert joint[1][0].shape == apart[1][0].shape == (20, 5)
    assert not torch.allclose(joint[0][0], apart[0][0])
    model.eval()
    for mine, other in zip(model(source, target), model(source, target, joint=False), strict=True):
        torch.testing.assert_close(mine[0], other[0])


def test_weights_and_configuration_come_back(model: LTENet, folder: Path) -> None:
    loaded = LTENet.from_pretrained(folder)
    assert loaded.config == CONFIG
    assert not loaded.training
    assert torch.equal(loaded.embed(cloud()), model.embed(cloud()))
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_nothing_is_overwritten_without_force(model: LTENet, folder: Path) -> None:
    before = (folder / "model.safetensors").read_bytes()
    with pytest.raises(UsageError, match="exists"):
        LTENet(CONFIG).save_pretrained(folder)
    assert (folder / "model.safetensors").read_bytes() == before
    LTENet(CONFIG).save_pretrained(folder, force=True)
    assert (folder / "model.safetensors").read_bytes() != before


def test_weights_that_do_not_fit_are_refused(folder: Path) -> None:
    LTENet(ModelConfig(encoder=EncoderConfig((6,), 5, 4))).save_pretrained(folder.parent / "other")
    (folder / "model.safetensors").write_bytes(
        (folder.parent / "other" / "model.safetensors").read_bytes()
    )
    with pytest.raises(InputError, match=r"missing .*layers\.1.*of another size encoder\.head"):
        LTENet.from_pretrained(folder)


def test_damaged_files_are_refused(folder: Path) -> None:
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(InputError, match="cannot be read"):
        LTENet.from_pretrained(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        LTENet.from_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(InputError, match="got format '99'"):
        LTENet.from_pretrained(folder)
    (folder / "config.json").write_text(json.dumps({"format": 1, "model": {"depth": 3}}))
    with pytest.raises(InputError, match="the unknown setting depth"):
        LTENet.from_pretrained(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", available_weights())
def test_shipped_weights_match_generated_shapes(name: str) -> None:
    model = LTENet.from_pretrained(name)
    assert (find_weights(name) / "README.md").is_file(), "every model has its card"
    # Features that need no frame do not tell the sides of a thing; its position does.
    known = {
        "human": ("human", 0.5),
        "animal": ("animal", 0.5),
        "aligner": ("thing", 0.25),
        "any": ("thing", 0.35),
        "paper": ("human", 0.35),  # an untrained network has 0.25
        "paper-animal": ("animal", 0.35),
        "dpc": ("human", 0.3),
        "dpc-animal": ("animal", 0.3),
    }
    what, least = known.get(name) or known[name.split("-")[0]]
    frame: Literal["world", "body", "common"] = "body" if name.split("-")[0] == what else "world"
    frame = "common" if model.config.frame == "common" else frame
    config = PairConfig(what=what, frame=frame, radius=model.config.radius)
    pairs = TrainingPairs(config, seed=3, split="validation")
    shares = []
    for pair in (pairs.draw(index) for index in range(6)):
        best = cosine_topk(model.embed(pair.source), model.embed(pair.target), 1).indices[:, 0]
        distances = distances_to_truth(pair.target[best.numpy()], pair.source_truth)
        shares.append(accuracy(distances, largest_distance(pair.target), [0.05])[0])
    assert np.mean(shares) > least


def test_missing_weights_say_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"got no config\.json there"):
        LTENet.from_pretrained(tmp_path)
    with pytest.raises(MissingError, match="try one of"):
        LTENet.from_pretrained("humans-of-mars")


def test_sizes_are_compared_before_memory_is_taken(folder: Path) -> None:
    settings = json.loads((folder / "config.json").read_text())
    settings["model"]["encoder"]["widths"] = [60_000, 60_000]  # 14 GB
    (folder / "config.json").write_text(json.dumps(settings))
    with pytest.raises(InputError, match=r"of another size encoder"):
        LTENet.from_pretrained(folder)
    for text in ("[" * 100_000, '{"format": ' + "9" * 400 + "}"):
        (folder / "config.json").write_text(text)
        with pytest.raises(InputError, match=r"nested more than|400 digits"):
            LTENet.from_pretrained(folder)
