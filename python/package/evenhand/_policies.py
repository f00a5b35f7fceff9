"""Policies written in Python, or in machine code."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, Union, runtime_checkable

from ._errors import InputError
from ._native import View
from .compiled import CompiledPolicy

#: Name, summary, what makes an object for each run, and about how many times as long as a policy of the program it takes
#: for a decision.
Registered: TypeAlias = tuple[str, str, Callable[[], object], int]

#: As `examples/decision_rates.py` measures them of a study as a whole, rounded up.
_COST_IN_PYTHON = 100
_COST_IN_MACHINE_CODE = 2


@runtime_checkable
class KeyPolicy(Protocol):
    """A policy that orders the waiting users by a key: the lowest goes first.

    `key` is called at every decision; `view` has a row for each waiting user.
    """

    def key(self, view: View) -> Any: ...


@runtime_checkable
class UserKeyPolicy(Protocol):
    """A policy whose key of a user depends on nothing but that user's own standing.

    `user_key` is called with the users who started, finished or submitted since the last decision, and not with all.
    """

    def user_key(self, view: View) -> Any: ...


@runtime_checkable
class NextPolicy(Protocol):
    """A policy that names the next user: one of `view.users`."""

    def next(self, view: View) -> int: ...


#: An object or a class with one of the methods; a class is called for every run, and an object is copied.
PythonPolicy: TypeAlias = Union[
    KeyPolicy, UserKeyPolicy, NextPolicy, type[KeyPolicy], type[UserKeyPolicy], type[NextPolicy]
]
#: The name of a policy of the program, a policy written in Python, or one in machine code.
AnyPolicy: TypeAlias = Union[str, PythonPolicy, CompiledPolicy]
#: One policy or several.
Policies: TypeAlias = Union[AnyPolicy, Sequence[AnyPolicy]]

_METHODS = ("key", "user_key", "next")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def register(policies: Policies | None) -> tuple[list[str] | None, list[Registered]]:
    """Returns the names of the policies, and those that are not the program's."""
    if policies is None:
        return None, []
    several: Sequence[Any] = policies if isinstance(policies, Sequence) and not isinstance(policies, str) else [policies]
    names: list[str] = []
    registered: list[Registered] = []
    for policy in several:
        if isinstance(policy, str):
            names.append(policy)
            continue
        entry = _registered(policy)
        names.append(entry[0])
        registered.append(entry)
    return names, registered


def _registered(policy: object) -> Registered:
    if isinstance(policy, CompiledPolicy):
        return _checked_name("CompiledPolicy", policy.name), "machine code", lambda: policy._native, _COST_IN_MACHINE_CODE
    kind = policy if isinstance(policy, type) else type(policy)
    found = [method for method in _METHODS if callable(getattr(policy, method, None))]
    if len(found) != 1:
        has = " and ".join(found) if found else "none"
        raise InputError(
            f"policies: {kind.__name__} has {has} of the methods {', '.join(_METHODS)}, expected one of them"
        )
    try:
        import numpy  # noqa: F401
    except ImportError as error:
        raise InputError("policies in Python see arrays of NumPy, which is not installed: pip install numpy") from error
    name = getattr(policy, "name", None)
    if name is None:
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower().replace("_", "-")
    summary = (kind.__doc__ or "written in Python").strip().splitlines()[0]
    make: Callable[[], object] = kind if isinstance(policy, type) else lambda: copy.deepcopy(policy)
    return _checked_name(kind.__name__, name), summary, make, _COST_IN_PYTHON


def _checked_name(kind: str, name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(f"policies: {kind} has the name {name!r}, expected letters, digits, '.', '_' and '-'")
    return name


def forget_runs(folder: Path, registered: Sequence[Registered]) -> None:
    """Removes stored runs of policies that are not the program's: whether their code changed is not known."""
    for name, *_ in registered:
        for path in (folder / "runs").glob(f"{name}-*.json*"):
            path.unlink()
