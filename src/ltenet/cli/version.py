"""`ltenet version`: what is installed, for reports of errors."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from ltenet import __version__
from ltenet.cli.command import Command, Result
from ltenet.cli.output import table

_PACKAGES = ("torch", "numpy", "scipy", "safetensors", "tyro", "rich")


@dataclass(frozen=True, kw_only=True)
class Version(Command):
    """Versions of ltenet, Python and the packages it needs."""

    def run(self) -> Result:
        """Look them up without importing anything."""
        versions = {
            "ltenet": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            **{name: _version(name) for name in _PACKAGES},
        }
        return Result(versions, table(list(versions.items())))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


COMMAND = Version
