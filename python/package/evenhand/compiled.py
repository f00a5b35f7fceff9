"""Policies in machine code: a function of C, numba, Cython or Rust that computes the keys of waiting users.

`include/evenhand_policy.h`, in the folder that :func:`include` returns, is the signature. A function of another signature
crashes the interpreter, as with ctypes; what can be checked is checked: declared types of ctypes and numba, the name of a
capsule, that the address is in executable memory, the returned status, NaN, and elements beyond the keys.
"""

from __future__ import annotations

import ctypes
import importlib
from _ctypes import CFuncPtr
from pathlib import Path
from typing import Any, Literal

from ._errors import InputError
from ._native import CompiledKeys

_INT: Any = ctypes.c_int64
_DOUBLE: Any = ctypes.c_double
_INTS, _DOUBLES = ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_double)
#: The arguments by name, in their order.
_ARGUMENTS: dict[str, Any] = {
    "now": _DOUBLE,
    "users": _INT,
    "resources": _INT,
    "user": _INTS,
    "shares": _DOUBLES,
    "demand": _DOUBLES,
    "weight": _DOUBLES,
    "submitted": _DOUBLES,
    "position": _INTS,
    "requested": _DOUBLES,
    "keys": _DOUBLES,
    "data": ctypes.c_void_p,
}

#: The type of the function for ctypes: `KEY_FUNCTION(address)`, or a decorator of a function in Python, for tests.
KEY_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, *_ARGUMENTS.values())


def include() -> Path:
    """The folder of `evenhand_policy.h`, for `cc -shared -fPIC -I`.

    >>> from evenhand.compiled import include
    >>> (include() / "evenhand_policy.h").exists()
    True
    """
    return Path(__file__).with_name("include")


def numba_signature() -> Any:
    """The signature for numba: `@numba.cfunc(numba_signature())`."""
    try:
        types: Any = importlib.import_module("numba").types
    except ImportError as error:
        raise InputError("numba_signature needs numba, which is not installed: pip install numba") from error
    of: dict[Any, Any] = {
        _DOUBLE: types.float64,
        _INT: types.int64,
        _INTS: types.CPointer(types.int64),
        _DOUBLES: types.CPointer(types.float64),
        ctypes.c_void_p: types.voidptr,
    }
    return types.int32(*(of[kind] for kind in _ARGUMENTS.values()))


class CompiledPolicy:
    """A policy whose keys a function in machine code computes: the lowest goes first.

    function: a function of ctypes (`ctypes.CDLL("./policy.so").drf`), a `cfunc` of numba, its address as an int, or a
    PyCapsule named `evenhand_key_v1`.
    name: of the policy in tables and results.
    method: "key" calls it at every decision with all waiting users; "user_key" with those who started, finished or
    submitted since the last decision, which is enough where a key depends on nothing but that user's own standing.
    data: what the function gets as its last argument: an array of NumPy, an object of ctypes, or an address. Runs of a
    study, which may be simulated at the same time, share it.

    The function and the data must not be unloaded while a study runs; objects are kept alive.

    >>> import evenhand as eh
    >>> from evenhand.compiled import KEY_FUNCTION
    >>> @KEY_FUNCTION
    ... def fifo(now, users, resources, user, shares, demand, weight, submitted, position, requested, keys, data):
    ...     for row in range(users):
    ...         keys[row] = submitted[row]
    ...     return 0
    >>> w = eh.generate(tasks=300, users=5, days=1)
    >>> s = eh.study(w, policies=["fifo", eh.CompiledPolicy(fifo, name="my-fifo")], capacity=0.5)
    >>> s.tasks_of("fifo-0.5")["start_ns"] == s.tasks_of("my-fifo-0.5")["start_ns"]
    True
    """

    def __init__(
        self, function: object, *, name: str, method: Literal["key", "user_key"] = "key", data: object = None
    ) -> None:
        self.name = name
        self.method = method
        self._native = CompiledKeys(_code(function), method, _data(data), (function, data))

    def __repr__(self) -> str:
        return f"<evenhand.CompiledPolicy: {self.name}, {self.method}>"


def _code(function: Any) -> object:
    """The address of a function, or its capsule; InputError if its types are known and others."""
    if type(function).__name__ == "PyCapsule":
        return function
    if isinstance(function, int) and not isinstance(function, bool):
        if not 0 <= function < 1 << 8 * ctypes.sizeof(ctypes.c_void_p):
            raise InputError(f"function: found {function}, expected an address")
        return function
    # A cfunc of numba has one of ctypes, with its types.
    function = function.ctypes if hasattr(function, "address") and hasattr(function, "ctypes") else function
    if not isinstance(function, CFuncPtr):
        raise InputError(
            f"function: found {type(function).__name__}, expected a function of ctypes, a cfunc of numba, an address or a"
            " PyCapsule"
        )
    if function.argtypes is not None:
        _check_types(function)
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _check_types(function: Any) -> None:
    found = list(function.argtypes)
    if len(found) != len(_ARGUMENTS):
        raise InputError(f"function: found {len(found)} arguments, expected {len(_ARGUMENTS)}: {', '.join(_ARGUMENTS)}")
    for (name, expected), kind in zip(_ARGUMENTS.items(), found, strict=True):
        if _type_name(kind) != _type_name(expected) and kind is not ctypes.c_void_p:
            raise InputError(f"function: found {_type_name(kind)} as argument {name}, expected {_type_name(expected)}")
        if kind is ctypes.c_void_p and not _type_name(expected).endswith("*"):
            raise InputError(f"function: found void* as argument {name}, expected {_type_name(expected)}")
    if _type_name(function.restype) != "int32":
        raise InputError(f"function: found {_type_name(function.restype)} as the result, expected int32")


def _type_name(kind: Any) -> str:
    """A type of ctypes by its size, because `c_long` and `c_longlong` are the same on some machines."""
    if kind is ctypes.c_void_p:
        return "void*"
    if isinstance(kind, type) and issubclass(kind, ctypes._Pointer):
        return _type_name(kind._type_) + "*"
    code = getattr(kind, "_type_", None)
    if isinstance(code, str) and code in "bhilq":
        return f"int{8 * ctypes.sizeof(kind)}"
    if code == "d":
        return "double"
    return getattr(kind, "__name__", str(kind))


def _data(data: Any) -> int:
    """The address of what the function gets as its last argument."""
    if data is None:
        return 0
    if isinstance(data, int) and not isinstance(data, bool):
        if not 0 <= data < 1 << 8 * ctypes.sizeof(ctypes.c_void_p):
            raise InputError(f"data: found {data}, expected an address")
        return data
    if isinstance(data, ctypes._SimpleCData | ctypes.Structure | ctypes.Union | ctypes.Array):
        return ctypes.addressof(data)
    interface = getattr(data, "__array_interface__", None)
    if isinstance(interface, dict):
        if interface.get("strides") is not None:
            raise InputError("data: found an array with gaps between its elements, expected a contiguous one")
        return int(interface["data"][0])
    raise InputError(f"data: found {type(data).__name__}, expected an array of NumPy, an object of ctypes or an address")
