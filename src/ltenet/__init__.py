"""Dense correspondence between 3-D shapes by locally linear transformations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "Correspondence",
    "LTENet",
    "Shape",
    "evaluate",
    "load",
    "match",
    "refine",
    "transfer",
    "view",
]

if TYPE_CHECKING:
    from ltenet.correspondence import Correspondence
    from ltenet.evaluation.evaluate import evaluate
    from ltenet.io import load
    from ltenet.matching.matcher import match
    from ltenet.matching.refine import refine
    from ltenet.method.model import LTENet
    from ltenet.shape import Shape
    from ltenet.transferring.transfer import transfer
    from ltenet.viewer import view

# Loaded on first use, so that `import ltenet` stays quick and does not import torch.
_HOMES = {
    "Correspondence": "ltenet.correspondence",
    "LTENet": "ltenet.method.model",
    "Shape": "ltenet.shape",
    "evaluate": "ltenet.evaluation.evaluate",
    "load": "ltenet.io",
    "match": "ltenet.matching.matcher",
    "refine": "ltenet.matching.refine",
    "transfer": "ltenet.transferring.transfer",
    "view": "ltenet.viewer",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ltenet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
