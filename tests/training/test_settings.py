from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ltenet.errors import InputError, MissingError, UsageError
from ltenet.training.config import KnownTerm, OptimConfig, TrainingConfig
from ltenet.training.settings import (
    dump_config,
    load_config,
    parse_config,
    presets,
    validated_alike,
)

PRESETS = {
    "adapt", "aligner", "animal", "animal-unsupervised", "any", "dpc", "human",
    "human-unsupervised", "paper",
    "tiny", "3d-coded", "corrnet3d", "diff-fmaps", "diff-fmaps-universal", "elementary", "fmnet",
    "fmnet-unsupervised", "geofmnet", "pointnet", "surfmnet",
}  # fmt: skip


def test_presets_are_all_there() -> None:
    assert set(presets()) == PRESETS


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_survives_its_own_toml(name: str) -> None:
    config = load_config(name)
    assert config.name == name
    assert parse_config(dump_config(config), where="again") == config


def test_the_paper_where_it_is_explicit() -> None:
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
    assert schedule.epoch_pairs == 8 * 1000  # DPC's, as the paper defines none
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
    schedule = config.schedule
    assert (schedule.unit, schedule.length, schedule.epoch_pairs) == ("epochs", 300, 8 * 1000)
    # The rate falls after 6000 and 9000 batches; two batches make a step.
    for batches, rate in ((5998, 1), (6000, 0.1), (8998, 0.1), (9000, 0.01), (299_998, 0.01)):
        position = schedule.position(
            step=batches // 2, pairs_per_step=config.pairs_per_step, seconds=0
        )
        assert schedule.rate(position) == pytest.approx(rate)
    assert (config.model.transform.kind, config.model.divergence.kind) == ("softmax", "chamfer")
    assert not config.joint


def test_paper_and_baseline_differ_in_the_method_alone() -> None:
    paper, dpc = load_config("paper"), load_config("dpc")
    assert paper.pairs == dpc.pairs
    assert (paper.seed, paper.joint, paper.model.encoder) == (
        dpc.seed,
        dpc.joint,
        dpc.model.encoder,
    )
    assert (paper.model.radius, paper.model.center) == (dpc.model.radius, dpc.model.center)
    terms, others = paper.reconstruction.objective, dpc.reconstruction.objective
    assert (terms.alpha, terms.smoothness_neighbors) == (8, 10)
    assert (others.alpha, others.smoothness_neighbors) == (8, 10)


@pytest.mark.parametrize(
    "name", ["aligner", "any", "human", "animal", "human-unsupervised", "animal-unsupervised"]
)
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
            'optim.kind="adam"',
            "sync_norm=false",
            "pairs.radius=none",
            "model.radius=none",
            "schedule.length=7",
            "schedule.warmup=1",
        ],
    )
    assert config.optim.lr == 1e-4
    assert config.pairs.points == (64, 128)
    assert (config.pairs.what, config.optim.kind) == ("animal", "adam")
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
        ("optim.lr", UsageError, "got no value, expected key=value; try --set"),
        ("optim.lr=fast", InputError, "lr: got 'fast', expected a value of type float"),
        ("optim.learning_rate=1", InputError, "got the unknown setting learning_rate, expected"),
        ("name.first=x", UsageError, "got name, a single setting, expected a table"),
        ("optim.batch_size=2.5", InputError, "got 2.5, expected a value of type int"),
        ("optim.batch_size=0", InputError, "batch_size: got 0, expected at least 1; try"),
        ("optim.betas=[0.9]", InputError, "expected a list of 2"),
        ("optim.betas=[0.9, 1.0]", InputError, "two numbers from 0 to below 1"),
        ("optim.kind=sgd", InputError, "got 'sgd', expected one of 'adamw', 'adam'"),
        ("known.weight=0", InputError, "got no term of the loss with a weight"),
        ("model.radius=1.0", InputError, "got model.radius 1.0 and pairs.radius 0.5"),
        ("pairs.center=false", InputError, "got model.center True and pairs.center False"),
        ("name=a/b", InputError, "a name without slashes"),
        ("schedule.warmup=1e9", InputError, "expected a length above the warm-up"),
        ("schedule.final=2", InputError, "shares up to 1"),
        ("reconstruction.weight=-1", InputError, "got -1.0, expected at least 0"),
        ("self_training.start=1", InputError, "a share below 1"),
    ],
)
def test_what_cannot_be_is_refused(change: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_config("tiny", [change])


def test_a_missing_or_broken_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="got neither a preset nor a readable file"):
        load_config("huamn")
    path = tmp_path / "broken.toml"
    path.write_text("[optim\nlr = 1", encoding="utf-8")
    with pytest.raises(InputError, match=r"broken.toml: got text that is not TOML .* try quotes"):
        load_config(path)


def test_runs_of_older_versions_still_load() -> None:
    """Settings that are gone are dropped where they meant what every run does today."""
    config = load_config("tiny")
    lines = (
        dump_config(config)
        .replace("[known]", '[known]\nmode = "similarity"')
        .replace("[reconstruction]", '[reconstruction]\nsigma_start = "none"\nsigma_share = 0.5')
        .replace("[self_training.refinement]", "[self_training.refinement]\naligned = false")
    )
    assert "aligned = false" in lines
    assert parse_config(lines, where="old") == config
    assert validated_alike(lines, dump_config(config))
    changed = lines.replace('"similarity"', '"distance"')
    with pytest.raises(InputError, match=r"old: got known\.mode 'distance', expected a setting of"):
        parse_config(changed, where="old")
    assert not validated_alike(changed, dump_config(config))


def test_defaults_need_a_term() -> None:
    model = load_config("tiny").model
    with pytest.raises(InputError, match="no term of the loss"):
        TrainingConfig(model=model)
    assert TrainingConfig(model=model, known=KnownTerm(weight=1)).seed == 0


def test_the_optimiser_is_the_one_that_was_asked_for() -> None:
    from ltenet.method.model import LTENet
    from ltenet.training.loop import make_optimizer

    model = LTENet(load_config("tiny").model)
    adamw = make_optimizer(model, OptimConfig(kind="adamw", weight_decay=0.1))
    adam = make_optimizer(model, OptimConfig(kind="adam", betas=(0.5, 0.9)))
    assert type(adamw) is torch.optim.AdamW
    assert adamw.param_groups[0]["weight_decay"] == 0.1
    assert type(adam) is torch.optim.Adam
    assert adam.param_groups[0]["betas"] == (0.5, 0.9)
