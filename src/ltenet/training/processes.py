"""One process or many: the only file that imports Lightning Fabric."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ltenet.errors import MissingError, UsageError
from ltenet.memory import keep_freed_memory
from ltenet.training.config import TrainingConfig

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def require_fabric() -> None:
    """Refuse to train without Lightning Fabric, before a run is begun."""
    try:
        import_module("lightning_fabric")
    except ImportError:
        raise MissingError(
            "got no Lightning Fabric, expected it for training; try `pip install 'ltenet[train]'`"
        ) from None


def start_processes(
    config: TrainingConfig, *, devices: int = 1, accelerator: str = "auto"
) -> Fabric:
    """Start the other processes, or join those that torchrun started, and set this one up.

    Gloo connects CPUs and NCCL connects GPUs. The processes run the same command line, so
    this comes before the model is built.
    """
    require_fabric()
    from lightning_fabric import Fabric

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
            f"got a batch of {config.optim.batch_size} pairs for {fabric.world_size} processes, "
            "expected the same number for each; try a multiple for optim.batch_size"
        )
    if config.threads:
        torch.set_num_threads(config.threads)
    keep_freed_memory()
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


def agreed_clock(fabric: Fabric, seconds: float, interrupted: bool) -> tuple[float, bool]:
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
