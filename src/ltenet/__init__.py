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
    from ltenet.matching import match
    from ltenet.model import LTENet
    from ltenet.refinement import refine
    from ltenet.shape import Shape
    from ltenet.transferring.transfer import transfer
    from ltenet.viewer import view

# Loaded on first use: `import ltenet` stays quick and imports neither torch nor trimesh.
_HOMES = {
    "Correspondence": "ltenet.correspondence",
    "LTENet": "ltenet.model",
    "Shape": "ltenet.shape",
    "evaluate": "ltenet.evaluation.evaluate",
    "load": "ltenet.io",
    "match": "ltenet.matching",
    "refine": "ltenet.refinement",
    "transfer": "ltenet.transferring.transfer",
    "view": "ltenet.viewer",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ltenet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
