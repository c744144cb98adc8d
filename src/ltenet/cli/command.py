"""What every verb of the command line is: options, and `run`, which returns its result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import tyro

from ltenet.errors import LTENetError

#: The two shapes of a pair and the map between them, named alike by every verb.
SourcePath = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="SOURCE")]]
TargetPath = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="TARGET")]]
MapPath = tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="MAP")]]
#: Options that are left out by default; that their value is then None is of no interest to a user.
OptionalPath = Annotated[Path | None, tyro.conf.arg(metavar="PATH", help_behavior_hint="")]
OptionalName = Annotated[str | None, tyro.conf.arg(metavar="NAME", help_behavior_hint="")]
OutputPath = Annotated[
    Path | None, tyro.conf.arg(aliases=("-o",), metavar="PATH", help_behavior_hint="")
]
OptionalMinutes = Annotated[float | None, tyro.conf.arg(metavar="MIN", help_behavior_hint="")]
IndexBase = Annotated[Literal[0, 1] | None, tyro.conf.arg(metavar="{0,1}", help_behavior_hint="")]


class Result(NamedTuple):
    """What a verb found out.

    Attributes
    ----------
    data
        What `--json` prints: plain dicts, lists, numbers and texts.
    text
        The same for people.
    failure
        What went wrong with a part of it; told after the result, and the exit code is its own.
    """

    data: Mapping[str, Any]
    text: str
    failure: LTENetError | None = None


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


#: Options that change nothing about a result, or that name a place on this machine only.
_NOT_TOLD = ("json", "verbose", "force", "output", "cache", "workers", "runs")


def command_line(command: Command, verb: str) -> str:
    """Write a command as one would type it, for results that name the command behind them.

    Options with their default are left out, as is what does not change the result.
    """
    words = ["ltenet", verb]
    for option in fields(command):
        value = getattr(command, option.name)
        if option.name == "data" and value is not None:
            words += ["--data", "DIR"]
        elif option.name == "output" and option.default is MISSING:
            words += ["-o", "DIR"]
        elif option.name in _NOT_TOLD or value == option.default:
            continue
        elif option.default is MISSING:
            words.append(str(value))
        elif value is True:
            words.append(_flag(option.name))
        elif isinstance(value, tuple) and "UseAppendAction" in str(option.type):
            words += [word for item in value for word in (_flag(option.name), str(item))]
        elif isinstance(value, tuple):
            words += [_flag(option.name), *map(str, value)]
        else:
            words += [_flag(option.name), str(value)]
    return " ".join(words)


def _flag(name: str) -> str:
    """Write an option's name; one that is a word of Python has an underscore behind it."""
    return "--" + name.rstrip("_").replace("_", "-")
