"""Released DPC checkpoints as weights of this package: the same network by other names.

DPC [Lang et al. 2021] saves with PyTorch Lightning: a dictionary whose `state_dict` has the trunk
as `...convs.I.0.weight` (convolutions with kernels of one point) and `...convs.I.1.*` (BatchNorm),
and layers behind it that play no part in matching. Both networks act on the same two halves,
``[f_j - f_i, f_i]``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ltenet.errors import InputError
from ltenet.io.formats.torch_files import check_records
from ltenet.method.encoder import EncoderConfig
from ltenet.method.model import LTENet, ModelConfig
from ltenet.training.settings import load_config

_CONV = re.compile(r"^(?P<where>.*convs)\.(?P<layer>\d+)\.(?P<part>[01])\.(?P<name>\w+)$")
_NORM = ("weight", "bias", "running_mean", "running_var")


def import_dpc(path: Path, *, neighbors: int = 27) -> LTENet:
    """Read a checkpoint of DPC.

    Parameters
    ----------
    path
        A `.ckpt` of PyTorch Lightning, or a state dict of its own. Only tensors are read.
    neighbors
        Neighbours in the graph, which the weights do not tell; DPC has 27.
    """
    layers = _layers(path, _read(path))
    weights = [_flat(path, layer, "0.weight") for layer in layers]
    _check(path, weights)
    widths = tuple(len(weight) for weight in weights[:-1])
    base = load_config("dpc").model
    encoder = EncoderConfig(widths=widths, dimension=len(weights[-1]), neighbors=neighbors)
    model = LTENet(ModelConfig(**{**_fields(base), "encoder": encoder}))
    names = [*(f"encoder.layers.{depth}" for depth in range(len(widths))), "encoder"]
    state: dict[str, Tensor] = {}
    for name, layer, weight in zip(names, layers, weights, strict=True):
        state["encoder.head.weight" if name == "encoder" else f"{name}.weight"] = weight
        for part in _NORM:
            state[f"{name}.norm.{part}"] = _flat(path, layer, f"1.{part}")
        count = layer.get("1.num_batches_tracked", torch.tensor(0))
        state[f"{name}.norm.num_batches_tracked"] = count
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(
            f"{path}: got layers that do not fit together ({str(error).splitlines()[-1].strip()}), "
            "expected DPC's network; try the checkpoint as its authors released it"
        ) from None
    return model.eval()


def _fields(config: ModelConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config.__dataclass_fields__}


def _read(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint; nothing else of it is looked at."""
    try:
        check_records(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the restricted unpickler raises whatever it stumbles over
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"{path}: got more than tensors, or a damaged file ({reason}), expected a checkpoint; "
            "try to save its tensors alone, where you trust it: torch.save({'state_dict': "
            "torch.load(FILE, weights_only=False)['state_dict']}, OTHER)"
        ) from None
    state = content.get("state_dict", content) if isinstance(content, dict) else {}
    return {str(key): value for key, value in state.items() if isinstance(value, Tensor)}


def _layers(path: Path, state: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Tensors of each layer of the one trunk, in order."""
    trunks: dict[str, dict[int, dict[str, Tensor]]] = {}
    for key, value in state.items():
        found = _CONV.match(key)
        if found:
            layers = trunks.setdefault(found["where"], {})
            layers.setdefault(int(found["layer"]), {})[f"{found['part']}.{found['name']}"] = value
    if len(trunks) != 1:
        raise InputError(
            f"{path}: got {len(trunks)} networks with layers named convs.0.0.weight, expected "
            "one, as DPC has; try a checkpoint of DPC (not of SE-ORNet or CorrNet3D)"
        )
    (layers,) = trunks.values()
    if sorted(layers) != list(range(len(layers))) or len(layers) < 2:
        raise InputError(
            f"{path}: got layers {sorted(layers)}, expected them numbered from 0 and at least 2; "
            "try downloading the checkpoint again"
        )
    return [layers[number] for number in range(len(layers))]


def _flat(path: Path, layer: dict[str, Tensor], name: str) -> Tensor:
    """Return a tensor of a layer without the sizes of one that kernels have."""
    if name not in layer:
        raise InputError(
            f"{path}: got a layer without {name}, expected a convolution and its BatchNorm; try "
            "downloading the checkpoint again"
        )
    value, axes = layer[name], 2 if name == "0.weight" else 1
    sizes = tuple(value.shape)
    if len(sizes) < axes or any(size != 1 for size in sizes[axes:]):
        raise InputError(
            f"{path}: got {name} of shape {sizes}, expected {axes} axes, and others of size 1 "
            "alone; try downloading the checkpoint again"
        )
    return value.reshape(sizes[:axes]).float()


def _check(path: Path, weights: list[Tensor]) -> None:
    """Refuse layers of which one does not take what those before it give."""
    expected = [6, *(2 * len(weight) for weight in weights[:-2])]
    expected.append(sum(len(weight) for weight in weights[:-1]))
    found = [weight.shape[1] for weight in weights]
    if found != expected:
        raise InputError(
            f"{path}: got layers with {found} inputs, expected {expected} as in DPC's network on "
            "coordinates; try the checkpoint as its authors released it"
        )
