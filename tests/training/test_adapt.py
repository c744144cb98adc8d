from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from ltenet.bodies.body_pairs import own_generator
from ltenet.cli import main
from ltenet.errors import InputError, UsageError
from ltenet.io import save
from ltenet.matching.confidence import Calibration
from ltenet.matching.orientation import Orienter
from ltenet.method.model import LTENet
from ltenet.shape import Shape
from ltenet.training.adapt import adapt
from ltenet.training.config import TrainingConfig
from ltenet.training.own_shapes import OwnPairs
from ltenet.training.settings import load_config

Settings = Callable[..., TrainingConfig]
SHORT = (
    "workers=0", "threads=1", "pairs.points=[64, 64]", "schedule.unit=steps", "schedule.length=4",
    "schedule.warmup=1", "validation.pairs=2", "validation.every=2", "optim.batch_size=2",
)  # fmt: skip


def shapes(count: int = 3) -> list[Shape]:
    generator = own_generator("animal")
    name = next(iter(generator.templates))
    faces = generator.templates[name].faces
    bodies = [generator.draw(5, index, template=name) for index in range(count)]
    return [Shape(b.vertices, faces=faces, name=f"own{i}") for i, b in enumerate(bodies)]


def test_own_pairs_are_found_by_their_index() -> None:
    config = load_config("adapt", SHORT).pairs
    pairs = OwnPairs(shapes(), config, seed=3)
    first, again = pairs.draw(7), pairs.draw(7)
    np.testing.assert_array_equal(first.source, again.source)
    assert first.source.shape == first.target.shape == (64, 3)
    assert first.source.dtype == np.float32
    assert not first.source_known.any()
    assert not first.target_known.any()
    assert all(pairs.draw(i).category != pairs.draw(i).target_category for i in range(9))
    assert {pairs.draw(i).category for i in range(20)} == {"own0", "own1", "own2"}
    held_back = OwnPairs(shapes(), config, seed=3, split="validation").draw(7)
    assert not np.array_equal(held_back.source, first.source)


def test_a_single_cloud_is_paired_with_itself() -> None:
    config = load_config("adapt", [*SHORT, "pairs.points=[96, 96]"]).pairs
    cloud = Shape(np.random.default_rng(0).normal(size=(80, 3)))
    pair = OwnPairs([cloud], config).draw(0)
    assert pair.source.shape == (80, 3)  # all that there are
    np.testing.assert_allclose(pair.source.mean(axis=0), 0, atol=1e-6)


def test_too_few_points_are_refused() -> None:
    config = load_config("adapt").pairs
    with pytest.raises(InputError, match="got no shape, expected at least one shape"):
        OwnPairs([], config)
    with pytest.raises(InputError, match="got dot with 3 points"):
        OwnPairs([Shape(np.eye(3), name="dot")], config)


@pytest.mark.slow
def test_adapt_writes_weights_that_learned(
    small: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = LTENet(small().model)
    model.save_pretrained(tmp_path / "old")
    files = []
    for shape in shapes(2):
        files.append(str(tmp_path / f"{shape.name}.ply"))
        save(shape, files[-1])
    changes = [word for change in SHORT for word in ("--set", change)]
    output = tmp_path / "new"
    arguments = ["adapt", str(tmp_path / "old"), *files, "-o", str(output), *changes]
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cycle_after"] <= told["cycle_before"]
    assert {p.name for p in output.iterdir()} == {
        "config.json", "config.toml", "log.jsonl", "model.safetensors",
    }  # fmt: skip
    adapted = LTENet.from_pretrained(output)
    assert adapted.config == model.config
    before, after = model.encoder.head.weight, adapted.encoder.head.weight
    assert torch.equal(before, after) == (told["best_step"] == 0)
    torch.testing.assert_close(before, after, atol=0.05, rtol=0)
    assert main(arguments) == 2  # nothing is overwritten
    assert main([*arguments, "--force"]) == 0


def test_adapt_keeps_weights_that_it_cannot_better(small: Settings, tmp_path: Path) -> None:
    model = LTENet(small().model)
    spoiled = ("optim.lr=10.0", "optim.clip=0", "optim.ema=0", "validation.select=loss")
    config = load_config("adapt", [*SHORT, *spoiled])
    result = adapt(model, shapes(2), tmp_path / "out", config)
    assert result.best_step == 0
    assert result.best_score == result.start_score
    kept = LTENet.from_pretrained(tmp_path / "out")
    assert torch.equal(model.encoder.head.weight, kept.encoder.head.weight)


def test_adapt_takes_along_what_belongs_to_the_weights(small: Settings, tmp_path: Path) -> None:
    start = tmp_path / "old"
    LTENet(small().model).save_pretrained(start)
    Orienter().save_pretrained(start)
    Calibration().save_pretrained(start)
    files = [str(tmp_path / f"own{k}.ply") for k in range(2)]
    for shape, file in zip(shapes(2), files, strict=True):
        save(shape, file)
    changes = [word for change in SHORT for word in ("--set", change)]
    output = tmp_path / "new"
    assert main(["adapt", str(start), *files, "-o", str(output), *changes]) == 0
    for name in ("orientation.safetensors", "calibration.json"):
        assert (output / name).read_bytes() == (start / name).read_bytes()
    LTENet.from_pretrained(output)
    (output / "calibration.json").unlink()
    with pytest.raises(InputError, match=r"weights without calibration\.json"):
        LTENet.from_pretrained(output)


def test_adapted_weights_appear_whole_or_not_at_all(small: Settings, tmp_path: Path) -> None:
    model = LTENet(small().model)
    output = tmp_path / "out"
    model.save_pretrained(output)
    before = {file.name: file.read_bytes() for file in output.iterdir()}
    config = load_config("adapt", list(SHORT))
    lost = [tmp_path / "calibration.json"]  # as if the process ended while it copies
    with pytest.raises(UsageError, match="out"):
        adapt(model, shapes(2), output, config, beside=lost, force=True)
    assert {file.name: file.read_bytes() for file in output.iterdir()} == before
    assert list(tmp_path.iterdir()) == [output]


def test_adapt_refuses_before_it_works(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("mine")
    monkeypatch.chdir(tmp_path)
    for shapes_given, output, words in (
        (["a.ply"], "new", "at least two"),
        (["a.ply", "b.ply"], "mine", "not empty"),
        (["a.ply", "b.ply"], ".", "not empty"),
    ):
        assert main(["adapt", "human", *shapes_given, "-o", output]) == 2
        assert words in capsys.readouterr().err
    for output, words in (("mine", "thesis.tex"), (".", "mine")):
        assert main(["adapt", "human", "a.ply", "b.ply", "-o", output, "--force"]) == 2
        assert words in capsys.readouterr().err


def test_labels_are_not_asked_of_shapes_that_have_none(small: Settings, tmp_path: Path) -> None:
    config = small()
    with pytest.raises(UsageError, match="expected an objective without labels"):
        adapt(LTENet(config.model), shapes(2), tmp_path / "out", config)


@pytest.mark.slow
def test_info_summarises_and_draws_a_run(
    small: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ltenet.training.loop import train
    from ltenet.training.runs import new_run

    config = small()
    train(config, new_run(config, tmp_path))
    assert main(["info", "tiny", "--runs", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == 8
    assert told["best_step"] in (4, 8)
    assert told["best"]["error"] > 0
    assert (told["plot"] is None) != (tmp_path / "tiny" / "curves.png").exists()
    assert main(["info", str(tmp_path / "tiny")]) == 0
    text = capsys.readouterr().out
    assert "loss" in text
    assert "█" in text
    assert main(["info", "nothing", "--runs", str(tmp_path)]) == 4


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["train"], 2), (["train", "tiny", "--resume", "x"], 2), (["train", "nosuch"], 4)],
)
def test_train_tells_usage_errors(arguments: list[str], code: int) -> None:
    assert main(arguments) == code


def test_without_its_package_training_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    assert main(["train", "tiny", "--runs", str(tmp_path / "runs")]) == 4
    assert "pip install 'ltenet[train]'" in capsys.readouterr().err
    assert list(tmp_path.glob("runs/*")) == []
