"""What the loop trains: a network with its loss, ours or that of another system.

The loop knows a `Trainee` alone. `EmbeddingTrainee` is LTENet (and DPC) with the objectives of the
settings; other systems derive from `Trainee` and are their own network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from ltenet.data.loading import Drawable
from ltenet.data.set_pairs import open_pairs
from ltenet.data.training_pairs import TrainingPair
from ltenet.errors import UsageError
from ltenet.geometry.arrays import IntArray
from ltenet.method.model import LTENet
from ltenet.training.average import WeightAverage
from ltenet.training.config import TrainingConfig
from ltenet.training.objectives import StepLoss, step_loss
from ltenet.training.pair_tensors import PairTensors, embed_pairs
from ltenet.training.validation import Scores, score, scores_of_maps


class Terms(Protocol):
    """The loss of a step, a NamedTuple of scalars: what is minimised is `total`."""

    @property
    def total(self) -> Tensor:
        """What is minimised."""

    def _asdict(self) -> dict[str, Tensor]: ...

    def __iter__(self) -> Iterator[Tensor]: ...


class SavedNetwork(Protocol):
    """Weights that can be written to a folder."""

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write them."""


class PointMaps(NamedTuple):
    """Partners of all points of a pair.

    Attributes
    ----------
    forth
        (N,) target point of each source point.
    back
        (M,) source point of each target point.
    """

    forth: IntArray
    back: IntArray


class Trainee(nn.Module):
    """A network with its loss.

    Attributes
    ----------
    supervised
        Whether the loss needs known correspondences.
    """

    supervised: ClassVar[bool] = False

    @property
    def network(self) -> nn.Module:
        """The weights: what is averaged, checkpointed and saved."""
        return self

    def forward(self, pairs: Sequence[Any], progress: float) -> Terms:
        """Evaluate `loss`; several processes meet in here."""
        return self.loss(pairs, progress)

    def loss(self, pairs: Sequence[Any], progress: float) -> Terms:
        """Return the loss of a batch, given the share of the run that is over.

        Parameters
        ----------
        pairs
            What `tensors` made of the pairs.
        progress
            From 0 to 1.
        """
        raise NotImplementedError

    def maps(self, pair: TrainingPair) -> PointMaps:
        """Match the points of a pair, both ways."""
        raise NotImplementedError

    def save_pretrained(self, folder: str | Path, *, force: bool = False) -> None:
        """Write the weights and their settings."""
        raise NotImplementedError

    def stream(self, config: TrainingConfig) -> Drawable[TrainingPair]:
        """Return the pairs to train on."""
        return open_pairs(config.pairs, config.seed)

    def prepared(self, pair: TrainingPair) -> TrainingPair:
        """Compute once what a held-back pair needs in every validation."""
        return pair

    def tensors(self, pair: TrainingPair, device: torch.device) -> Any:
        """Copy what the loss needs of a pair to the device."""
        return PairTensors.of(pair, device)

    def begin(self, average: WeightAverage[Any]) -> None:
        """Learn which moving average the loop keeps, before the first step."""

    def share_statistics(self) -> None:
        """Let BatchNorm see the batches of all processes as one; separate ones by default."""

    def score(self, network: Any, pair: TrainingPair) -> Scores:
        """Score the moving average of the weights on a held-back pair."""
        found: PointMaps = network.maps(pair)
        return scores_of_maps(pair, *found)


class EmbeddingTrainee(Trainee):
    """LTENet, with the objectives that have a weight in the settings.

    Parameters
    ----------
    config
        The settings.
    initial
        Weights to begin with instead of random ones.
    """

    def __init__(self, config: TrainingConfig, initial: LTENet | None = None) -> None:
        if config.system != "ltenet":
            raise UsageError(
                f"got the system '{config.system}', expected 'ltenet', the only one that trains "
                f"without its own network; try `ltenet train {config.system}`"
            )
        super().__init__()
        self.model = LTENet(config.model)
        if initial is not None:
            self.model.load_state_dict(initial.state_dict())
        if self.model.matchability is not None and config.known.weight == 0:
            self.model.matchability.requires_grad_(False)  # it learns from labels alone
        self.config = config
        self._average: WeightAverage[LTENet] | None = None

    @property
    def network(self) -> LTENet:
        """LTENet itself."""
        return self.model

    def begin(self, average: WeightAverage[Any]) -> None:
        """Take the moving average as the teacher of self-training."""
        self._average = average

    def share_statistics(self) -> None:
        """Let BatchNorm see the batches of all processes as one."""
        self.model.encoder.share_statistics()

    def loss(self, pairs: Sequence[PairTensors], progress: float) -> StepLoss:
        """Embed both shapes of every pair and add up the objectives."""
        source, target = embed_pairs(self.model, pairs, joint=self.config.joint)
        teacher = self.model if self._average is None else self._average.model
        return step_loss(
            pairs,
            source,
            target,
            self.config,
            progress=progress,
            teacher=teacher,
            matchability=self.model.matchability,
        )

    def score(self, network: Any, pair: TrainingPair) -> Scores:
        """Score nearest features, and the paper's objective."""
        return score(network, pair, self.config)
