"""Capacities as the program takes them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias, Union

from ._commands import OwnFile
from ._errors import InputError
from ._files import toml_file

#: A multiple of the workload's mean use; amounts of resources; or a file with a pool or machines.
Capacity: TypeAlias = Union[int, float, Fraction, str, "os.PathLike[str]", Mapping[str, Union[int, float, str, Fraction]]]


def capacity_argument(capacity: Capacity, folder: str, number: int, files: list[OwnFile]) -> str:
    """The argument of `--capacity`; `folder` is for a file that it may name, which is added to `files`."""
    if isinstance(capacity, Mapping):
        if not capacity:
            raise InputError('capacity: found no resource, expected amounts such as {"cpu": 100}')
        path = toml_file(Path(folder, f"pool-{number}.toml" if number else "pool.toml"), "pool", capacity)
        # As the program takes a pool too.
        pool = ",".join(f"{resource}={amount}" for resource, amount in capacity.items())
        files.append(OwnFile(path, pool, pool))
        return path
    if isinstance(capacity, str | os.PathLike):
        return os.fspath(capacity)
    return str(capacity)
