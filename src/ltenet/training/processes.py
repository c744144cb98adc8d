"""One process or many: the only file that imports Lightning Fabric."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ltenet.encoder import DGCNN
from ltenet.errors import MissingError, UsageError
from ltenet.training.config import TrainingConfig

if TYPE_CHECKING:
    from lightning_fabric import Fabric


class PairNetwork(nn.Module):
    """The encoder on both shapes of each pair, as the one module that processes have in common.

    Parameters
    ----------
    encoder
        The network to train.
    joint
        One pass over sources and targets together, or one over each.
    """

    def __init__(self, encoder: DGCNN, *, joint: bool) -> None:
        super().__init__()
        self.encoder = encoder
        self.joint = joint

    def forward(
        self, sources: Sequence[Tensor], targets: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Embed B pairs of (N_b, 3) and (M_b, 3) points: lists of (N_b, D) and (M_b, D)."""
        if not self.joint:
            return list(self.encoder(sources)), list(self.encoder(targets))
        features = list(self.encoder([*sources, *targets]))
        return features[: len(sources)], features[len(sources) :]


def start_processes(
    config: TrainingConfig, *, devices: int = 1, accelerator: str = "auto"
) -> Fabric:
    """Start the other processes, or join those that torchrun started, and set this one up.

    Gloo connects CPUs and NCCL connects GPUs. The processes run the same command line, so
    this comes before the model is built.
    """
    try:
        from lightning_fabric import Fabric
    except ImportError:
        raise MissingError(
            "Lightning Fabric is not installed; training needs it; "
            "install it with `pip install 'ltenet[train]'`"
        ) from None
    # What torchrun says comes first: it may have started processes on several machines.
    devices = int(os.environ.get("LOCAL_WORLD_SIZE", devices))
    nodes = max(1, int(os.environ.get("WORLD_SIZE", devices)) // devices)
    fabric = Fabric(
        accelerator=accelerator,
        devices=devices,
        num_nodes=nodes,
        strategy="ddp" if nodes * devices > 1 else "auto",
    )
    fabric.launch()
    if config.optim.batch_size % fabric.world_size:
        raise UsageError(
            f"a batch of {config.optim.batch_size} pairs came for {fabric.world_size} processes; "
            "each needs the same number; choose a multiple for optim.batch_size"
        )
    if config.threads:
        torch.set_num_threads(config.threads)
    return fabric


@contextmanager
def rounded_products(precision: str) -> Iterator[None]:
    """With "bf16", let matrix products round their factors, where the hardware gains by it.

    Meant for the backward pass, which has two thirds of all products. The forward pass must stay
    exact: distances, and with them neighbours, come from products too.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium" if precision == "bf16" else before)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def agree(fabric: Fabric, seconds: float, interrupted: bool) -> tuple[float, bool]:
    """Let all processes see the same clock, and all stop if one was interrupted."""
    if fabric.world_size == 1:
        return seconds, interrupted
    both = torch.tensor([seconds, float(interrupted)], dtype=torch.float64, device=fabric.device)
    torch.distributed.all_reduce(both, torch.distributed.ReduceOp.MAX)
    return float(both[0]), bool(both[1])


def summed(fabric: Fabric, values: Tensor) -> Tensor:
    """Sum of a tensor over all processes."""
    values = values.to(fabric.device)
    if fabric.world_size > 1:
        torch.distributed.all_reduce(values)
    return values
