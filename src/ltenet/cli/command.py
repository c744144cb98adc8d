"""What every verb of the command line is: options, and `run`, which returns its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import tyro


class Result(NamedTuple):
    """What a verb found out.

    Attributes
    ----------
    data
        What `--json` prints: plain dicts, lists, numbers and texts.
    text
        The same for people.
    """

    data: Mapping[str, Any]
    text: str


@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """Options that every verb has."""

    json: bool = False
    """Print the result as one JSON object."""
    verbose: Annotated[bool, tyro.conf.arg(aliases=("-v",))] = False
    """Say more on stderr, and where an error comes from."""

    @abstractmethod
    def run(self) -> Result:
        """Do the work; errors are raised, files written, results returned and never printed."""
