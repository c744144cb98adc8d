"""Dense correspondence between 3-D shapes by locally linear transformations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["LTENet", "Shape", "load"]

if TYPE_CHECKING:
    from ltenet.io import load
    from ltenet.model import LTENet
    from ltenet.shape import Shape

# Loaded on first use: `import ltenet` stays quick and imports neither torch nor trimesh.
_HOMES = {"LTENet": "ltenet.model", "Shape": "ltenet.shape", "load": "ltenet.io"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'ltenet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
