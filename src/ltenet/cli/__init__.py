"""The command line: `ltenet VERB ...`.

Each verb has a file of its own, which is imported only when the verb is used; `VERBS` lists them.
Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 unexpected, 2 usage, 3 bad
input, 4 missing model, data or dependency, 5 some pairs failed, 129, 130 or 143 ended by SIGHUP,
Ctrl-C or SIGTERM. See docs/cli.md.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import make_dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, NamedTuple, Union

from ltenet import __version__
from ltenet.cli.command import Command
from ltenet.cli.output import discard_stdout, logging_to_stderr, say, write_result
from ltenet.cli.signals import ended_by_signals
from ltenet.errors import InputError, LTENetError, Stopped, UsageError

DESCRIPTION = (
    "Dense correspondence between 3-D shapes. `ltenet VERB --help` explains a verb; "
    "`ltenet --version` prints the version."
)


class Verb(NamedTuple):
    """Where a verb lives.

    Attributes
    ----------
    module
        Module whose `COMMAND` is a `Command`, or a dataclass that chooses one.
    summary
        What the list of verbs says about it.
    """

    module: str
    summary: str


#: The verbs, in the order of the help text. A new one is a file and a line here.
VERBS: dict[str, Verb] = {
    "adapt": Verb("ltenet.cli.adapt", "Fine-tune weights on your own shapes, without labels."),
    "app": Verb("ltenet.cli.app", "Match by drag and drop, in the browser on this machine."),
    "atlas": Verb("ltenet.cli.atlas", "Mean, modes and group differences of many shapes."),
    "batch": Verb("ltenet.cli.batch", "Match a whole collection of shapes, each prepared once."),
    "bench": Verb("ltenet.cli.bench", "Measure a method on a benchmark, with peers beside it."),
    "data": Verb("ltenet.cli.data", "Shapes to learn from: list, make, draw and measure them."),
    "import-dpc": Verb("ltenet.cli.import_dpc", "Turn a released DPC checkpoint into weights."),
    "info": Verb("ltenet.cli.info", "Describe weights, or summarise and plot a training run."),
    "match": Verb("ltenet.cli.match", "Match two shapes: which point is which."),
    "paper": Verb("ltenet.cli.paper", "Make a table or figure of the paper, ours beside theirs."),
    "train": Verb("ltenet.cli.train", "Train a network on generated shapes or on your own."),
    "transfer": Verb("ltenet.cli.transfer", "Carry colours, landmarks, a mesh ... along a map."),
    "version": Verb("ltenet.cli.version", "Versions of ltenet and of what it stands on."),
    "view": Verb("ltenet.cli.view", "Look at a map: a report in one HTML file, or a picture."),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv
        Arguments after the program's name; those of the process by default.

    Returns
    -------
    The exit code. Nothing is raised, so that `sys.exit(main())` is all a caller needs.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    verbose = bool({"-v", "--verbose"} & set(arguments))
    try:
        with ended_by_signals(), logging_to_stderr(verbose=verbose):
            if arguments == ["--version"]:
                write_result({"ltenet": __version__}, f"ltenet {__version__}", as_json=False)
                return 0
            command = _parse(arguments)
            result = command.run()
            write_result(result.data, result.text, as_json=command.json)
            if result.failure is not None:
                raise result.failure
            return 0
    except SystemExit as stop:  # help and usage errors of tyro, which has told the user
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except LTENetError as error:
        say(f"error: {error}", traceback=verbose)
        return error.exit_code
    except KeyboardInterrupt as stop:
        say("interrupted")
        return stop.exit_code if isinstance(stop, Stopped) else 130
    except BrokenPipeError:  # the reader of our output has seen enough
        discard_stdout()
        return 0
    except OSError as error:
        discard_stdout()  # it may be what cannot be written
        say(f"error: {_of_the_system(error)}", traceback=verbose)
        return InputError.exit_code
    except MemoryError:
        say(
            "error: got shapes that need more memory than there is, expected smaller ones; try "
            "--points 1024, or reduce the shapes",
            traceback=verbose,
        )
        return InputError.exit_code
    except Exception as error:
        advice = "" if verbose else "; try again with --verbose to see where"
        say(f"error: unexpected {type(error).__name__}: {error}{advice}", traceback=verbose)
        return 1


def _of_the_system(error: OSError) -> str:
    """Say what the system refused: a full disk, a folder without permission, ..."""
    where = "" if error.filename is None else f"{error.filename}: "
    return (
        f"{where}got '{error.strerror or error}' from the system, expected a file or folder with "
        "permission and room; try another one"
    )


def _parse(arguments: list[str]) -> Command:
    """Turn arguments into a command; only the module of the verb that is used is imported."""
    import tyro

    from ltenet.cli.counts import COUNTS

    wanted = next((word for word in arguments if not word.startswith("-")), None)
    if wanted is not None and wanted not in VERBS:
        raise UsageError(
            f"got the verb '{wanted}', expected one of {', '.join(VERBS)}; "
            f"try `ltenet {_nearest(wanted)}`, or `ltenet --help`"
        )
    choices = tuple(
        Annotated[
            _command_type(verb) if name == wanted else _placeholder(name),
            tyro.conf.subcommand(
                name, description=_explained(verb) if name == wanted else verb.summary
            ),
        ]
        for name, verb in VERBS.items()
    )
    any_of_them: Any = Union[choices]  # noqa: UP007 - made of a table
    with COUNTS:
        chosen: Any = tyro.cli(
            any_of_them,
            prog="ltenet",
            description=DESCRIPTION,
            args=arguments,
            config=(
                tyro.conf.OmitSubcommandPrefixes,
                tyro.conf.OmitArgPrefixes,
                tyro.conf.FlagCreatePairsOff,
            ),
        )
    # A group such as `data` holds its command in the field of that name.
    command = getattr(chosen, "command", chosen)
    assert isinstance(command, Command)
    return command


def _nearest(word: str) -> str:
    return next(iter(get_close_matches(word, VERBS, n=1, cutoff=0.0)))


def _explained(verb: Verb) -> str:
    """Take all of a verb's docstring, with its examples."""
    return inspect.getdoc(_command_type(verb)) or verb.summary


def _command_type(verb: Verb) -> Any:
    return import_module(verb.module).COMMAND


def _placeholder(name: str) -> type:
    """Stand in for a verb that is listed but not used."""
    return make_dataclass(f"_{name}", ())
