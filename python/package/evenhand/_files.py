"""Folders that live as long as an object, and files of settings."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from pathlib import Path


class KeptFolder:
    """A folder for temporary files, removed with this object or at the end of the process."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="evenhand-")
        weakref.finalize(self, _remove, self.name, os.getpid())


def _remove(path: str, owner: int) -> None:
    # A process that was forked has copies of its parent's objects, but the files are the parent's.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


def toml_file(path: Path, section: str, values: Mapping[str, object]) -> str:
    """Writes a section of numbers and texts; returns the path."""
    lines = [f"[{section}]"]
    for name, value in values.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        lines.append(f"{toml(str(name))} = {value if is_number else toml(str(value))}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def toml(value: object) -> str:
    """Writes a text, a number or a list of them for TOML, whose texts are those of JSON but for one character.

    >>> print(toml(["naïve 🙂", 1, True]))
    ["naïve 🙂", 1, true]
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
