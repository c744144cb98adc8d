"""Packages that only some methods need, imported when such a method is made."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from ltenet.errors import MissingError


class _Optional(NamedTuple):
    package: str
    purpose: str
    extra: str


#: Modules: their package, their purpose, and the extra of ltenet that installs them.
_OPTIONAL = {
    "ot": _Optional("POT", "optimal transport", "baselines"),
    "pycpd": _Optional("pycpd", "coherent point drift", "baselines"),
    "pyFM.functional": _Optional("pyfmaps", "the functional map", "spectral"),
    "pyFM.mesh": _Optional("pyfmaps", "the functional map", "spectral"),
    "potpourri3d": _Optional("potpourri3d", "the geodesic error", "spectral"),
    "matplotlib": _Optional("matplotlib", "the plot", "plot"),
    "matplotlib.figure": _Optional("matplotlib", "the plot", "plot"),
}


def optional(module: str) -> Any:
    """Import an optional module, or say what installs it."""
    try:
        return import_module(module)
    except ImportError:
        needed = _OPTIONAL[module]
        raise MissingError(
            f"got no {needed.package}, expected it for {needed.purpose}: it is not installed; "
            f"try `pip install 'ltenet[{needed.extra}]'`"
        ) from None
