"""Frozen dataclasses to and from plain dictionaries, strictly: what is not known is refused."""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from ltenet.errors import InputError

T = TypeVar("T")


def to_dict(config: Any) -> dict[str, Any]:
    """Return a dataclass, and those inside it, as a dictionary of JSON's types."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in (
            (item.name, _plain(getattr(config, item.name))) for item in dataclasses.fields(config)
        )
    }


def from_dict(kind: type[T], values: Mapping[str, Any], *, where: str) -> T:
    """Make a dataclass from a dictionary; missing keys take their defaults.

    Parameters
    ----------
    kind
        The dataclass.
    values
        What `to_dict` made, or a file with the same keys.
    where
        What to call the dictionary in messages, e.g. the file's name.
    """
    if not isinstance(values, Mapping):
        raise InputError(
            f"{where}: got {values!r}, expected a table of settings; try putting the settings "
            "under it"
        )
    hints = typing.get_type_hints(kind)
    known = {item.name for item in dataclasses.fields(kind) if item.init}  # type: ignore[arg-type]
    unknown = sorted(set(values) - known)
    if unknown:
        raise InputError(
            f"{where}: got the unknown setting {', '.join(unknown)}, expected some of "
            f"{', '.join(sorted(known))}; try one of these"
        )
    made = {
        key: _convert(hints[key], value, where=f"{where}: {key}") for key, value in values.items()
    }
    return kind(**made)


def _plain(value: Any) -> Any:
    return to_dict(value) if dataclasses.is_dataclass(value) else value


def _convert(hint: Any, value: Any, *, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_dict(hint, value, where=where)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        # Optional settings only: exactly one other type.
        (other,) = (kind for kind in arguments if kind is not type(None))
        return _convert(other, value, where=where)
    if origin is typing.Literal:
        if value in arguments:
            return value
        raise _wrong(where, value, f"one of {', '.join(map(repr, arguments))}")
    if origin is Mapping:  # a free table; whoever reads it checks it
        if not isinstance(value, Mapping):
            raise _wrong(where, value, "a table")
        return dict(value)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise _wrong(where, value, "a list")
        if arguments[-1] is Ellipsis:
            kinds = (arguments[0],) * len(value)
        else:
            kinds = arguments
            if len(kinds) != len(value):
                raise _wrong(where, value, f"a list of {len(kinds)}")
        return tuple(_convert(k, item, where=where) for k, item in zip(kinds, value, strict=True))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > sys.float_info.max:
            raise _wrong(where, value, "a number within the range of floats")
        return float(value)
    if isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    raise _wrong(where, value, f"a value of type {hint.__name__}")


def _wrong(where: str, value: Any, needed: str) -> InputError:
    return InputError(
        f"{where}: got {value!r}, expected {needed}; try the default by leaving it out"
    )
