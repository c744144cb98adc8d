"""Moving average of the weights: what validation, `best/` and the self-training teacher use."""

from __future__ import annotations

import copy
from typing import Generic, TypeVar

import torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)


class WeightAverage(Generic[Network]):
    """Exponential moving average of a model's weights and BatchNorm statistics.

    Attributes
    ----------
    model
        The averaged model, in evaluation mode; the trained model itself if the decay is 0.
    """

    def __init__(self, model: Network, decay: float) -> None:
        self.decay = decay
        self.model = model
        if decay > 0:
            self.model = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model: Network, step: int) -> None:
        """Move towards `model` after step number `step`, counted from 1.

        The decay is ``min(decay, step / (step + 9))``: the random initial weights fade quickly.
        """
        if self.decay == 0:
            return
        share = 1 - min(self.decay, step / (step + 9))
        mine, theirs = self.model.state_dict().values(), model.state_dict().values()
        for average, value in zip(mine, theirs, strict=True):
            if average.is_floating_point():
                average.lerp_(value, share)
            else:
                average.copy_(value)
