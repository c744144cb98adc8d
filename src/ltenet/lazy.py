"""Properties that are computed when first asked for, and then kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy(Generic[Value]):  # noqa: N801  (read as a decorator, like property)
    """`functools.cached_property` as it is from Python 3.12 on.

    Before, that of the standard library holds one lock for all instances of a class while it
    computes, so that two shapes could not be embedded side by side. Two threads that ask the same
    instance at once both compute the value, and one of the two is kept.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[Value] | Value:
        if instance is None:
            return self
        # The value hides this descriptor, which defines no `__set__`, from now on.
        value: Value = vars(instance).setdefault(self._name, self._compute(instance))
        return value
