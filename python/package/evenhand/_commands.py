"""Runs commands of the program in this process."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, Union

from . import _native
from ._errors import EnvironmentFailure, InputError

#: Value of an option of the program: True gives the option without a value, None and False leave it out, and the elements
#: of a sequence are joined by commas.
Option: TypeAlias = Union[str, int, float, Fraction, bool, None, "os.PathLike[str]", "Sequence[Union[str, int, float]]"]

#: A file's path, or the document itself.
Document: TypeAlias = Union[str, "os.PathLike[str]", Mapping[str, Any]]

_logger = logging.getLogger("evenhand")
#: Folders of temporary files, as `tempfile` names them.
_TEMPORARY = re.compile(re.escape(os.path.join(tempfile.gettempdir(), "evenhand-")) + r"[a-z0-9_]{8}/")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Bar(Protocol):
    """A progress bar of tqdm, or an object with the same methods."""

    def update(self, n: int, /) -> object: ...

    def close(self) -> object: ...


#: Makes a progress bar: tqdm, or a function with its keywords.
MakeBar: TypeAlias = Callable[..., Bar]


class OwnFile(NamedTuple):
    """A file that the package writes and removes: records state what it holds in place of its path."""

    path: str
    #: Its name in the recorded command line.
    argument: str
    #: What it holds, in words.
    contents: str
    #: The command line that makes it.
    made_by: str | None = None


class Finished(NamedTuple):
    """What a command printed."""

    status: int
    output: str
    notes: list[str]


def run(
    arguments: Sequence[str | os.PathLike[str]],
    progress: MakeBar | None = None,
    policies: Sequence[tuple[str, str, Callable[[], object], int]] = (),
    files: Sequence[OwnFile] = (),
) -> Finished:
    """Runs a command; raises the exception of its failure. `files` are those among its arguments that are removed later."""
    bar = _Progress(progress) if progress is not None else None
    try:
        words = [os.fspath(argument) for argument in arguments]
        status, output, notes, error = _native.run(words, bar, list(policies), list(files))
    finally:
        if bar is not None:
            bar.close()
    notes = [_TEMPORARY.sub("", note) for note in notes]
    for note in notes:
        _logger.info(note)
    if error is not None:
        message = _COLOURS.sub("", error).removeprefix("error: ")
        # Files of a call are named as if they were the caller's: "pool.toml:2:9: capacity of cpu: …".
        message = _TEMPORARY.sub("", message)
        raise (InputError if status == 2 else EnvironmentFailure)(message)
    return Finished(status, output.decode(), notes)


def run_json(arguments: Sequence[str | os.PathLike[str]]) -> tuple[int, Any]:
    """Runs a command that prints JSON; returns its exit status and what it printed."""
    finished = run(["--format=json", *arguments])
    return finished.status, json.loads(finished.output) if finished.output else None


def option_arguments(options: Mapping[str, Option]) -> list[str]:
    """Writes options as the program reads them. A name of Python may have an underscore at its end: `from_`.

    >>> option_arguments({"half_life": "8d", "policy": ["fifo", "drf"], "no_tasks": True, "until": None})
    ['--half-life=8d', '--policy=fifo,drf', '--no-tasks']
    """
    arguments = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(option)
        elif isinstance(value, str | os.PathLike):
            arguments.append(f"{option}={os.fspath(value)}")
        elif isinstance(value, Mapping):
            raise InputError(f"{name}: found a dict, expected a path or another value of {option}")
        elif isinstance(value, Sequence):
            arguments.append(f"{option}={','.join(str(element) for element in value)}")
        else:
            arguments.append(f"{option}={value}")
    return arguments


def progress_bar(progress: bool | MakeBar) -> MakeBar | None:
    """What makes the bar that a caller asked for: True is tqdm."""
    if progress is False:
        return None
    if progress is not True:
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise InputError("progress=True draws a bar by tqdm, which is not installed: pip install tqdm") from error
    make: MakeBar = tqdm
    return make


def document_path(document: Document, folder: str, name: str) -> str:
    """Returns the path of a document, which is written into `folder` unless it is a file already."""
    if isinstance(document, Mapping):
        path = Path(folder, f"{name}.json")
        try:
            path.write_text(json.dumps(document, default=_plain, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: {error}") from error
        return str(path)
    if not isinstance(document, str | os.PathLike):
        raise InputError(f"{name}: found {type(document).__name__}, expected a path or a dict")
    return os.fspath(document)


def _plain(value: object) -> object:
    """Converts numbers that JSON does not have: fractions are texts, NumPy's numbers are Python's."""
    if isinstance(value, Fraction):
        return str(value)
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise TypeError(f"found {value!r}, expected a number, a text, a list or a dict")


class _Progress:
    """Passes the numbers of simulated tasks on to a bar, which is made when the total is known."""

    def __init__(self, make: MakeBar) -> None:
        self._make = make
        self._bar: Bar | None = None
        self._done = 0

    def __call__(self, done: int, total: int) -> None:
        if total == 0:
            return
        if self._bar is None:
            self._bar = self._make(total=total, unit="task", unit_scale=True)
        if done > self._done:
            self._bar.update(done - self._done)
            self._done = done

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
