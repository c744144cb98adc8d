"""Arrays inside pickles, read without running anything in them.

Public data come pickled: arrays that `torch.save` wrapped, body models as dictionaries of numpy,
scipy and chumpy objects. The unpickler here knows a short list of names, and each stands for an
inert class of this module, never for the code that a file asks for. Whatever else a file names is
refused. Arrays are made from the bytes in the file, so that no size is taken on trust.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ltenet.io.formats.torch_files import check_records

#: Element types that arrays may have, as numpy abbreviates them.
_TYPES = frozenset(("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"))


class _Type:
    """Stands for numpy.dtype."""

    def __init__(self, code: str, *flags: object) -> None:
        if code not in _TYPES:
            raise pickle.UnpicklingError(f"an array of {code!r}")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        if state[1] == ">":
            self.dtype = self.dtype.newbyteorder(">")


class _Array:
    """Stands for numpy.ndarray."""

    value: NDArray[Any]

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, columns_first, content = state
        if isinstance(content, str):  # written by Python 2
            content = content.encode("latin1")
        count = math.prod(shape)
        if count < 0 or not isinstance(content, bytes):
            raise pickle.UnpicklingError("an array without its bytes")
        if count * kind.dtype.itemsize != len(content):
            raise pickle.UnpicklingError(f"{len(content)} bytes for an array of shape {shape}")
        flat = np.frombuffer(content, dtype=kind.dtype)
        self.value = flat.reshape(shape, order="F" if columns_first else "C")


class _Holder:
    """Stands for a chumpy or scipy.sparse object: its state as a dictionary."""

    state: dict[str, Any]

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, dict):
            raise pickle.UnpicklingError(f"a {type(state).__name__} as the state of an object")
        self.state = state


class _Chumpy(_Holder):
    """Stands for a chumpy array, whose values are `x`."""


class _Sparse(_Holder):
    """Stands for a compressed matrix of scipy, by columns or by rows."""

    by_columns = True


class _SparseRows(_Sparse):
    by_columns = False


class _Call:
    """A function that a pickle may call and cannot change."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def __call__(self, *arguments: Any) -> Any:
        return self._run(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a change to a function")


def _new_array(*arguments: object) -> _Array:
    return _Array()


def _new_base(*arguments: object) -> None:
    """Stand for object, the base that copyreg._reconstructor is told."""


def _new_object(kind: Any, *arguments: object) -> Any:
    """Stand for copyreg._reconstructor."""
    if not (isinstance(kind, type) and issubclass(kind, _Holder)):
        raise pickle.UnpicklingError("an object of an unexpected kind")
    return kind()


def _encoded(text: str, encoding: str = "latin1") -> bytes:
    """Stand for _codecs.encode, by which protocol 2 writes bytes."""
    if not isinstance(text, str) or encoding != "latin1":
        raise pickle.UnpicklingError(f"text in {encoding!r}")
    return text.encode("latin1")


_NAMES: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _Call(_encoded),
    ("copy_reg", "_reconstructor"): _Call(_new_object),
    ("copyreg", "_reconstructor"): _Call(_new_object),
    ("__builtin__", "object"): _Call(_new_base),
    ("builtins", "object"): _Call(_new_base),
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    **{
        (f"numpy.{core}.multiarray", "_reconstruct"): _Call(_new_array)
        for core in ("core", "_core")
    },
    ("chumpy.ch", "Ch"): _Chumpy,
    **{
        (module, name): kind
        for name, kind in (("csc_matrix", _Sparse), ("csr_matrix", _SparseRows))
        for module in (
            "scipy.sparse",
            "scipy.sparse.csc",
            "scipy.sparse.csr",
            "scipy.sparse._csc",
            "scipy.sparse._csr",
        )
    },
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"the name {module}.{name}")
        return _NAMES[module, name]

    def persistent_load(self, key: Any) -> Any:
        raise pickle.UnpicklingError("a tensor among arrays")


def read_pickled(stream: IO[bytes]) -> Any:
    """Read lists, tuples, dictionaries, numbers, texts and arrays from a pickle.

    Raises
    ------
    ValueError
        If the pickle holds anything else, or is damaged.
    """
    try:
        content = stream.read()
        _check_sizes(content)
        # From memory: reading from a file takes room for as many bytes as the pickle declares.
        return _plain(_Unpickler(io.BytesIO(content), encoding="latin1").load(), depth=0)
    except ValueError:
        raise
    except Exception as error:  # a damaged pickle may fail in any way
        raise ValueError(str(error) or type(error).__name__) from None


def _check_sizes(content: bytes) -> None:
    """Refuse what declares more than there is: the unpickler makes a table as long as any memo."""
    for opcode, argument, _ in pickletools.genops(content):
        memo = opcode.name in ("PUT", "BINPUT", "LONG_BINPUT")
        if memo and not 0 <= int(argument or 0) <= len(content):
            raise ValueError(f"memo {argument} in {len(content)} bytes")


def read_torch_arrays(path: Path) -> Any:
    """Read what `torch.save` made of arrays; tensors are left to `torch.load`.

    Raises
    ------
    ValueError
        As `read_pickled`.
    """
    check_records(path)
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
        if len(names) != 1:
            raise ValueError("no data.pkl")
        with archive.open(names[0]) as stream:
            return read_pickled(stream)


def _plain(value: Any, *, depth: int) -> Any:
    """Replace the inert objects by arrays."""
    if depth > 8:
        raise ValueError("objects nested too deeply")
    if isinstance(value, _Array):
        return value.value
    if isinstance(value, _Chumpy):
        return _plain(value.state.get("x"), depth=depth + 1)
    if isinstance(value, _Sparse):
        return _dense(value)
    if isinstance(value, list | tuple):
        return type(value)(_plain(item, depth=depth + 1) for item in value)
    if isinstance(value, dict):
        return {str(key): _plain(item, depth=depth + 1) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    raise ValueError(f"a {type(value).__name__}")


def _dense(matrix: _Sparse) -> NDArray[Any]:
    """Return a compressed matrix in full; joint regressors have a few dozen rows."""
    parts = {key.lstrip("_"): item for key, item in matrix.state.items()}
    values, inner, starts = (
        np.asarray(_plain(parts[name], depth=1)) for name in ("data", "indices", "indptr")
    )
    rows, columns = (int(size) for size in parts["shape"])
    outer = columns if matrix.by_columns else rows
    if not 0 < rows * columns <= 10_000_000 or len(starts) != outer + 1 or starts[-1] != len(inner):
        raise ValueError(f"a sparse matrix of shape {(rows, columns)} that does not add up")
    majors = np.repeat(np.arange(outer), np.diff(starts))  # (E,)
    full = np.zeros((rows, columns))
    full[(inner, majors) if matrix.by_columns else (majors, inner)] = values
    return full
