"""BatchNorm statistics for weights that are about to be tested.

Running statistics are an exponential average over the last few batches of training: they lag behind
the weights and depend on which batches came last. Estimating them anew, with the weights held
fixed, removes that from a comparison, as stochastic weight averaging does [Izmailov et al. 2018].
"""

from __future__ import annotations

import torch
from torch import nn

from ltenet.data.loading import Drawable
from ltenet.data.training_pairs import TrainingPair
from ltenet.errors import UsageError
from ltenet.method.model import LTENet
from ltenet.training.pair_tensors import PairTensors, embed_pairs


@torch.no_grad()
def settle(
    model: LTENet, pairs: Drawable[TrainingPair], passes: int = 48, *, batch_size: int = 4
) -> None:
    """Replace the running statistics of a model by their mean over fresh batches, in place.

    Each pass embeds `batch_size` pairs, sources and targets together, with the statistics of that
    batch; afterwards every running mean and variance is the plain average over the passes. Weights,
    random state and mode (training or evaluation) stay as they are.

    Parameters
    ----------
    model
        What is to be tested.
    pairs
        Where the batches come from: the first ``passes * batch_size`` pairs, usually those the
        model was trained on, ``TrainingPairs(config.pairs, config.seed)``.
    passes
        Batches to average over.
    batch_size
        Pairs in a batch.
    """
    if passes < 1 or batch_size < 1:
        raise UsageError(
            f"settle: got {passes} passes of {batch_size} pairs, expected at least 1 of each; "
            "try 48 passes of 4"
        )
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm1d)]
    momenta = [norm.momentum for norm in norms]
    device, training = next(model.parameters()).device, model.training
    model.train()
    try:
        for number in range(passes):
            for norm in norms:
                norm.momentum = 1 / (number + 1)  # the first pass replaces, the others average
            batch = [
                PairTensors.of(pairs.draw(number * batch_size + index), device)
                for index in range(batch_size)
            ]
            embed_pairs(model, batch)
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        model.train(training)
