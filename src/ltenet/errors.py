"""What can go wrong, in one hierarchy; each class carries the exit code of the command line.

Every message has three parts: got ..., expected ...; try ...
"""

from __future__ import annotations


class LTENetError(Exception):
    """Base of every error that ltenet raises on purpose."""

    exit_code = 1


class UsageError(LTENetError):
    """Options that contradict each other or do not exist."""

    exit_code = 2


class InputError(LTENetError, ValueError):
    """Data that cannot be used: a damaged file, a wrong shape, a value out of range."""

    exit_code = 3


class MissingError(LTENetError):
    """A model, a data set or an optional dependency that is not there."""

    exit_code = 4


class Stopped(KeyboardInterrupt):
    """Somebody ended the program by a signal: Ctrl-C, SIGTERM or SIGHUP."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class PartialFailure(LTENetError):  # noqa: N818 - some of the pairs are fine, so not an "Error"
    """Some pairs of a collection failed; the others are done."""

    exit_code = 5
