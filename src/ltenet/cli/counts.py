"""Whole numbers on the command line that may be "all": `None` in Python."""

from __future__ import annotations

from types import UnionType
from typing import Union, get_args, get_origin

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

ALL = "all"

#: Rules of the command line, to be used as a context around `tyro.cli`.
COUNTS = ConstructorRegistry()


@COUNTS.primitive_rule
def _count(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[int | None] | None:
    if get_origin(info.type) not in (Union, UnionType) or set(get_args(info.type)) != {
        int,
        type(None),
    }:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=f"INT|{ALL}",
        instance_from_str=lambda words: None if words[0] == ALL else int(words[0]),
        is_instance=lambda value: value is None or isinstance(value, int),
        str_from_instance=lambda value: [ALL if value is None else str(value)],
    )
