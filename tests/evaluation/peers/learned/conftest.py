"""Small learned systems: four pairs of few points that a network can learn by heart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ltenet.data.pair_config import PairConfig
from ltenet.data.training_pairs import TrainingPair, TrainingPairs
from ltenet.evaluation.peers.learned.learner import Learner, find_learner
from ltenet.training.config import TrainingConfig
from ltenet.training.settings import load_config

#: Pairs of animals, which are quick to draw.
PAIRS = ("pairs.what=animal", "pairs.points=[96, 96]", "pairs.sampling=shared")


@pytest.fixture(scope="session")
def four_pairs() -> list[TrainingPair]:
    """Four pairs of animals with shared, shuffled points."""
    config = PairConfig(what="animal", sampling="shared", points=(96, 96), radius=0.5)
    return [TrainingPairs(config, 3).draw(index) for index in range(4)]


@pytest.fixture(scope="session")
def settings() -> Callable[..., TrainingConfig]:
    """Settings of a small run of a system, with changes."""

    def made(system: str, *changes: str) -> TrainingConfig:
        common = ("workers=0", "threads=1", "log_every=1", "validation.pairs=0", "seed=1")
        schedule = ("schedule.unit=steps", "schedule.length=4", "schedule.warmup=0")
        return load_config(system, [*PAIRS, *common, *schedule, *changes])

    return made


@pytest.fixture(scope="session")
def fitted(
    settings: Callable[..., TrainingConfig],
) -> Callable[..., Learner]:
    """Train a small system on given pairs alone, outside the loop."""

    def train(
        system: str,
        pairs: Sequence[TrainingPair],
        *changes: str,
        steps: int = 150,
        lr: float = 3e-3,
        progress: Callable[[int], float] = lambda step: 0.0,
    ) -> tuple[Learner, list[float]]:
        torch.manual_seed(0)
        config = settings(system, *changes)
        learner = find_learner(system).from_config(config)
        ready: list[Any] = [
            learner.tensors(learner.prepared(pair), torch.device("cpu")) for pair in pairs
        ]
        optimizer = torch.optim.Adam(learner.parameters(), lr=lr)
        losses = []
        for step in range(steps):
            loss = learner.loss(ready, progress(step)).total
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        return learner.eval(), losses

    return train


@pytest.fixture(scope="session")
def error_of() -> Callable[[Learner, Sequence[TrainingPair]], float]:
    """Mean distance of a learner's map from the truth, over pairs."""

    def error(learner: Learner, pairs: Sequence[TrainingPair]) -> float:
        distances = [
            np.linalg.norm(
                pair.target[learner.maps(learner.prepared(pair)).forth] - pair.source_truth, axis=1
            )
            for pair in pairs
        ]
        return float(np.concatenate(distances).mean())

    return error


@pytest.fixture(scope="session")
def alike() -> Callable[[TrainingPair], TrainingPair]:
    """A pair of a shape with itself, in the same order."""

    def made(pair: TrainingPair) -> TrainingPair:
        return replace(pair, target=pair.source, source_truth=pair.source, target_truth=pair.source)

    return made
