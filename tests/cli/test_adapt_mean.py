"""`ltenet adapt` writes the mean of its shapes beside the weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ltenet.bodies.body_pairs import own_generator
from ltenet.cli import main
from ltenet.collections.atlas import Atlas, build_atlas
from ltenet.collections.plan import Specimen
from ltenet.collections.shape_model import generalized_procrustes
from ltenet.errors import InputError
from ltenet.geometry.arrays import FloatArray
from ltenet.geometry.rotations import umeyama
from ltenet.io import load, save
from ltenet.matching.config import MatchConfig
from ltenet.matching.networks import read_networks
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig
from ltenet.shape import Shape

SHORT = (
    "workers=0", "threads=1", "pairs.points=[64, 64]", "schedule.unit=steps", "schedule.length=2",
    "schedule.warmup=1", "validation.pairs=2", "validation.every=2", "optim.batch_size=2",
)  # fmt: skip
CHANGES = [word for change in SHORT for word in ("--set", change)]
COUNTS = 280, 300, 320


def bodies() -> FloatArray:
    """Vertices (3, V, 3) of three generated people, the same ones in the same order."""
    generator = own_generator("human")
    return np.stack([generator.draw(986, index).vertices for index in range(3)]).astype(float)


def chosen(count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return which vertices (count,) a cloud of so many points has: a smaller one has fewer."""
    return np.random.default_rng(5).permutation(bodies().shape[1])[:count]


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files of three clouds of people with different numbers of points, all called `scan.ply`."""
    files = []
    for body, count in zip(bodies(), COUNTS, strict=True):
        folder = tmp_path_factory.mktemp("person")
        save(Shape(body[chosen(count)]), folder / "scan.ply")
        files.append(str(folder / "scan.ply"))
    return files


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes are matched as they stand, in half of the time."""

    def build_quickly(
        specimens: Sequence[Specimen], folder: Path, config: MatchConfig, **options: Any
    ) -> Atlas:
        faster = replace(config, orient="none")
        return build_atlas(specimens, folder, faster, **options)

    monkeypatch.setattr("ltenet.collections.atlas.build_atlas", build_quickly)


def adapt(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    """Figures and messages of a run."""
    capsys.readouterr()
    code = main(["adapt", *words, *CHANGES, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out), err


def error(points: FloatArray, others: FloatArray) -> float:
    """Mean distance after alignment, in the height of the other shape."""
    away = np.linalg.norm(umeyama(points, others)(points) - others, axis=1)  # (N,)
    return float(away.mean() / np.ptp(others, axis=0).max())


@pytest.mark.usefixtures("quick")
def test_the_mean_is_that_of_the_shapes(
    people: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    noise, output = tmp_path / "noise.ply", tmp_path / "new"
    save(Shape(np.random.default_rng(0).normal(size=(100, 3))), noise)
    told, err = adapt(capsys, "human", *people, str(noise), "-o", str(output))
    assert told["mean"] == str(output / "mean.ply")
    assert "the mean of 3 of 4 shapes" in err
    assert "noise" in err
    mean = load(output / "mean.ply").points
    assert len(mean) in COUNTS
    # The true places of its vertices on every body are known.
    true = bodies()[:, chosen(len(mean))]  # (3, N, 3)
    expected = generalized_procrustes(true).mean
    assert error(mean, expected) < 0.02
    assert min(error(one, expected) for one in true) > 0.04  # no single shape would do
    assert error(mean[::-1], expected) > 0.1

    # It is no part of the weights, and goes with them.
    assert "mean.ply" not in (output / "config.json").read_text()
    (output / "mean.ply").rename(tmp_path / "kept.ply")
    LTENet.from_pretrained(output)
    (tmp_path / "kept.ply").rename(output / "mean.ply")
    LTENet.from_pretrained(output)
    told, err = adapt(capsys, "human", *people, "-o", str(output), "--force", "--no-mean")
    assert told["mean"] is None
    assert "warning" not in err
    assert not (output / "mean.ply").exists()
    LTENet.from_pretrained(output)


def test_shapes_are_matched_with_the_new_weights(
    people: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    encoder = EncoderConfig(widths=(8, 12), dimension=16, neighbors=6)
    start = LTENet(ModelConfig(encoder=encoder, radius=1.0))
    start.save_pretrained("mine")
    Path("mine/mean.ply").write_text("of an earlier run")
    used = []

    def build_atlas(specimens: object, folder: Path, config: MatchConfig, **_: object) -> None:
        used.append(read_networks(config.model).model.encoder.head.weight)
        raise InputError("got strangers, expected relatives; try others")

    monkeypatch.setattr("ltenet.collections.atlas.build_atlas", build_atlas)
    # The old weights have the same name, under which they were read in this process.
    options = ["--force", "--set", "validation.select=loss", "--set", "optim.ema=0"]
    options += ["--set", "optim.lr=1e-2"]
    told, err = adapt(capsys, "mine", *people, "-o", "mine", *options)
    assert told["best_step"] > 0
    new = LTENet.from_pretrained(tmp_path / "mine").encoder.head.weight
    assert torch.equal(used[0], new)
    assert not torch.allclose(new, start.encoder.head.weight, atol=1e-6)
    # Shapes that do not match have no mean, and the weights stay.
    assert told["mean"] is None
    assert "warning: no mean shape: got strangers" in err
    assert not Path("mine/mean.ply").exists()


def test_two_shapes_have_no_mean(
    people: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told, err = adapt(capsys, "human", *people[:2], "-o", str(tmp_path / "new"))
    assert told["mean"] is None
    assert "warning: no mean shape: got 2 shapes, expected at least 3" in err
    assert not (tmp_path / "new" / "mean.ply").exists()
    LTENet.from_pretrained(tmp_path / "new")
