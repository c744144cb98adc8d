from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ltenet.errors import InputError, MissingError, UsageError
from ltenet.training.config import KnownTerm, OptimConfig, TrainingConfig
from ltenet.training.settings import dump_config, load_config, parse_config, presets

PRESETS = {
    "adapt", "animal", "animal-unsupervised", "dpc", "human", "human-unsupervised", "paper", "tiny",
}  # fmt: skip


def test_presets_are_all_there() -> None:
    assert set(presets()) == PRESETS


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_survives_its_own_toml(name: str) -> None:
    config = load_config(name)
    assert config.name == name
    assert parse_config(dump_config(config), where="again") == config


def test_the_paper_to_the_letter() -> None:
    config = load_config("paper")
    model, optim, terms = config.model, config.optim, config.reconstruction.objective
    assert (model.transform.kind, model.transform.neighbors, model.transform.gamma) == (
        "lle",
        10,
        1,
    )
    assert (model.divergence.kind, model.divergence.sigma) == ("cauchy-schwarz", 0.01)
    assert (terms.itself, terms.cross, terms.smoothness, terms.alpha) == (1, 1, 10, 8)
    assert (optim.kind, optim.lr, optim.weight_decay) == ("adamw", 3e-4, 5e-4)
    assert (optim.betas, optim.batch_size, optim.ema, optim.clip) == ((0.9, 0.999), 8, 0, 0)
    schedule = config.schedule
    assert (schedule.kind, schedule.unit) == ("cosine", "epochs")
    assert (schedule.length, schedule.warmup) == (300, 10)
    pairs = config.pairs
    assert (pairs.sampling, pairs.by, pairs.pool, pairs.radius) == ("shared", "vertex", 2000, None)
    assert pairs.points == (1024, 1024)
    assert config.known.weight == config.self_training.weight == 0
    assert config.model.radius is None


def test_the_baseline_is_dpc() -> None:
    config = load_config("dpc")
    terms = config.reconstruction.objective
    assert (terms.itself, terms.cross, terms.smoothness) == (10, 1, 1)
    assert (config.optim.kind, config.optim.batch_size, config.optim.accumulate) == ("adam", 8, 2)
    assert config.schedule.milestones == (6, 9)
    assert (config.model.transform.kind, config.model.divergence.kind) == ("softmax", "chamfer")
    assert not config.joint


@pytest.mark.parametrize("name", ["human", "animal", "human-unsupervised", "animal-unsupervised"])
def test_our_presets_train_for_independent_samples(name: str) -> None:
    config = load_config(name)
    assert config.pairs.sampling in ("independent", "mixed")
    assert config.pairs.radius == config.model.radius == 0.5
    unsupervised = name.endswith("unsupervised")
    assert (config.known.weight == 0) == unsupervised
    assert (config.validation.select == "error") != unsupervised


def test_settings_are_changed_one_by_one() -> None:
    config = load_config(
        "tiny",
        [
            "optim.lr=1e-4",
            "pairs.points=[64, 128]",
            "pairs.what=animal",
            'known.mode="distance"',
            "sync_norm=false",
            "pairs.radius=none",
            "model.radius=none",
            "schedule.length=7",
            "schedule.warmup=1",
        ],
    )
    assert config.optim.lr == 1e-4
    assert config.pairs.points == (64, 128)
    assert (config.pairs.what, config.known.mode) == ("animal", "distance")
    assert config.sync_norm is False
    assert config.model.radius is config.pairs.radius is None
    assert config.schedule.length == 7.0


def test_a_file_is_read_like_a_preset(tmp_path: Path) -> None:
    config = replace(load_config("tiny"), name='with "quotes" and ümlaut')
    path = tmp_path / "mine.toml"
    path.write_text(dump_config(config), encoding="utf-8")
    assert load_config(path) == config


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("optim.lr", UsageError, "no value came; key=value is needed; write it as"),
        ("optim.lr=fast", InputError, "lr: 'fast' came; a value of type float is needed"),
        ("optim.learning_rate=1", InputError, "unknown setting learning_rate; known are"),
        ("name.first=x", UsageError, "name is a single setting; a table of settings is needed"),
        ("optim.batch_size=2.5", InputError, "2.5 came; a value of type int"),
        ("optim.batch_size=0", InputError, "batch_size is 0; at least 1 is needed; leave it out"),
        ("optim.betas=[0.9]", InputError, "a list of 2 is needed"),
        ("optim.betas=[0.9, 1.0]", InputError, "two numbers from 0 to below 1"),
        ("known.mode=guess", InputError, "'guess' came; one of 'similarity', 'distance'"),
        ("known.weight=0", InputError, "no term of the loss has a weight"),
        ("model.radius=1.0", InputError, "the same normalisation is needed"),
        ("name=a/b", InputError, "a name without slashes"),
        ("schedule.warmup=1e9", InputError, "a length above the warm-up"),
        ("schedule.final=2", InputError, "shares up to 1"),
        ("reconstruction.sigma_start=-1", InputError, "none or a length above 0"),
        ("self_training.start=1", InputError, "a share below 1"),
    ],
)
def test_what_cannot_be_is_refused(change: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_config("tiny", [change])


def test_a_missing_or_broken_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no such preset, and no readable file"):
        load_config("huamn")
    path = tmp_path / "broken.toml"
    path.write_text("[optim\nlr = 1", encoding="utf-8")
    with pytest.raises(InputError, match=r"broken.toml: not TOML .* put quotes around text"):
        load_config(path)


def test_defaults_need_a_term() -> None:
    model = load_config("tiny").model
    with pytest.raises(InputError, match="no term of the loss"):
        TrainingConfig(model=model)
    assert TrainingConfig(model=model, known=KnownTerm(weight=1)).seed == 0


def test_the_optimiser_is_the_one_that_was_asked_for() -> None:
    from ltenet.model import LTENet
    from ltenet.training.loop import make_optimizer

    model = LTENet(load_config("tiny").model)
    adamw = make_optimizer(model, OptimConfig(kind="adamw", weight_decay=0.1))
    adam = make_optimizer(model, OptimConfig(kind="adam", betas=(0.5, 0.9)))
    assert type(adamw) is torch.optim.AdamW
    assert adamw.param_groups[0]["weight_decay"] == 0.1
    assert type(adam) is torch.optim.Adam
    assert adam.param_groups[0]["betas"] == (0.5, 0.9)
