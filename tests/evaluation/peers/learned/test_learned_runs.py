"""Every learned system goes through the one training loop and comes back as a method."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from known_shapes import shuffled

from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPairs
from ltenet.errors import InputError, MissingError, UsageError
from ltenet.evaluation.peers.learned.learner import Learner, find_learner, learner_of
from ltenet.evaluation.peers.table import PEERS, make_peer
from ltenet.method.model import LTENet
from ltenet.shape import Shape
from ltenet.training.checkpoint import read_checkpoint
from ltenet.training.config import TrainingConfig
from ltenet.training.loop import train
from ltenet.training.runs import new_run
from ltenet.training.settings import load_config
from ltenet.training.trainee import EmbeddingTrainee

Settings = Callable[..., TrainingConfig]

#: Networks small enough for a test, by system.
POINTNET = ("trunk=[8, 16]", "code=[8]", "head=[16]")
SMALL: dict[str, tuple[str, ...]] = {
    "pointnet": (
        *(f"network.pointnet.{change}" for change in POINTNET), "network.pointnet.outputs=8",
    ),
    "corrnet3d": (
        "network.points=96", "network.widths=[8, 8]", "network.local=16", "network.head=[16, 8]",
        "network.sharpener=32", "network.decoder=[16]", "network.neighbors=6", "network.groups=2",
    ),
    "3d-coded": (
        "network.trunk=[8, 16]", "network.code=[16]", "network.decoder=[16]",
        "network.template_points=64",
    ),
    "elementary": (
        "network.trunk=[8, 16]", "network.code=[16]", "network.decoder=[16]",
        "network.template_points=64", "network.deformation=[8]",
    ),
    "diff-fmaps": (
        *(f"network.{part}.{change}" for change in POINTNET for part in ("basis", "descriptors")),
        "network.basis.outputs=6", "network.descriptors.outputs=10",
    ),
    "diff-fmaps-universal": (
        *(f"network.basis.{change}" for change in POINTNET), "network.basis.outputs=6",
    ),
    "geofmnet": (
        "network.functions=6", "network.diffusion_functions=12", "network.width=8",
        "network.blocks=1", "network.outputs=10", "network.pool=6",
    ),
    **dict.fromkeys(
        ("surfmnet", "fmnet", "fmnet-unsupervised"),
        ("network.functions=8", "network.blocks=1", "network.pool=6"),
    ),
}  # fmt: skip
SYSTEMS = [name for name, peer in PEERS.items() if peer.learning and not peer.post]


def test_every_system_has_a_small_network_here() -> None:
    assert set(SYSTEMS) == set(SMALL)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_of_every_system_is_a_method(
    settings: Settings, tmp_path: Path, lump: Shape, system: str
) -> None:
    changes = ("validation.pairs=1", "validation.every=2", "optim.batch_size=2")
    config = settings(system, *SMALL[system], *changes)
    run = new_run(config, tmp_path)
    result = train(config, run, system=find_learner(system).from_config)
    assert result.steps == 4
    losses = [record for record in run.read_log() if record["kind"] == "train"]
    assert np.isfinite([record["total"] for record in losses]).all()
    saved = json.loads((run.best / "config.json").read_text("utf-8"))
    assert saved["system"] == system
    source = Shape(lump.points[::5])
    target, _ = shuffled(source)
    names = [name for name, peer in PEERS.items() if peer.module == PEERS[system].module]
    for name in names:
        if find_learner(name) is find_learner(system):
            found = make_peer(name, {"model": run.best})(source, target)
            assert found.matched.all()
            assert (len(found), found.target_size) == (len(source), len(target))


class PowerCutError(Exception):
    """Ends a run between two steps."""


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_resumed_run_ends_with_the_same_bytes(
    settings: Settings, tmp_path: Path, system: str
) -> None:
    make = find_learner(system).from_config

    def cut_after_two_steps(config: TrainingConfig) -> Learner:
        learner, calls = make(config), []
        loss = learner.loss

        def counted(pairs: Sequence[Any], progress: float) -> Any:
            calls.append(progress)
            if len(calls) > 2:
                raise PowerCutError
            return loss(pairs, progress)

        learner.loss = counted  # type: ignore[method-assign]
        return learner

    changes = (*SMALL[system], "optim.batch_size=2", "checkpoint_minutes=0")
    config = settings(system, *changes, "name=whole")
    whole = new_run(config, tmp_path)
    train(config, whole, system=make)
    config = settings(system, *changes, "name=broken")
    broken = new_run(config, tmp_path)
    with pytest.raises(PowerCutError):
        train(config, broken, system=cut_after_two_steps)
    assert read_checkpoint(broken.checkpoint).step == 2
    train(config, broken, resume=True, system=make)
    states = [read_checkpoint(run.checkpoint) for run in (whole, broken)]
    assert [state.step for state in states] == [4, 4]
    for name, value in states[0].model.items():
        assert torch.equal(value, states[1].model[name]), name


def test_weights_of_another_system_are_refused(settings: Settings, tmp_path: Path) -> None:
    learner_of(settings("pointnet", *SMALL["pointnet"])).save_pretrained(tmp_path / "weights")
    with pytest.raises(InputError, match=r"got weights of 'pointnet', expected those of LTENet"):
        LTENet.from_pretrained(tmp_path / "weights")
    LTENet().save_pretrained(tmp_path / "ours")
    with pytest.raises(InputError, match=r"got weights of 'ltenet', expected those of 'pointnet'"):
        make_peer("pointnet", {"model": tmp_path / "ours"})
    with pytest.raises(MissingError, match=r"pointnet: got no weights, .*`ltenet train pointnet`"):
        make_peer("pointnet")
    settings_file = tmp_path / "weights" / "config.json"
    damaged = json.loads(settings_file.read_text("utf-8")) | {"radius": "wide"}
    settings_file.write_text(json.dumps(damaged), encoding="utf-8")
    with pytest.raises(InputError, match=r"got radius 'wide' .*, expected a length or null"):
        make_peer("pointnet", {"model": tmp_path / "weights"})


def test_systems_that_do_not_exist(settings: Settings) -> None:
    with pytest.raises(UsageError, match=r"got the system 'icp', expected ltenet or one of"):
        find_learner("icp")
    with pytest.raises(UsageError, match=r"got the system 'pointnet', expected 'ltenet'"):
        EmbeddingTrainee(settings("pointnet"))
    with pytest.raises(InputError, match=r"got network .*, expected it for other systems only"):
        load_config("tiny", ["network.width=3"])
    with pytest.raises(InputError, match=r"network: got the unknown setting depth"):
        learner_of(settings("pointnet", "network.depth=3"))


def test_pairs_know_their_places_on_the_template() -> None:
    """Shared points have one place on the template, whatever their order."""
    config = PairConfig(what="animal", sampling="shared", points=(80, 80))
    pair = TrainingPairs(config, 0).draw(0)
    assert pair.source_rest is not None
    assert pair.target_rest is not None
    partner = np.linalg.norm(pair.source_truth[:, None] - pair.target, axis=2).argmin(axis=1)
    np.testing.assert_allclose(pair.target_rest[partner], pair.source_rest, atol=1e-6)
