"""`python -m evenhand`: the program that the package contains."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path


def program() -> Path:
    """Returns the path of the program `evenhand` of this installation."""
    name = "evenhand" + (sysconfig.get_config_var("EXE") or "")
    schemes = [sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")]
    for scheme in schemes:
        path = Path(sysconfig.get_path("scripts", scheme), name)
        if path.is_file():
            return path
    raise FileNotFoundError(f"{name}: not beside this package's Python")


if __name__ == "__main__":
    os.execv(program(), ["evenhand", *sys.argv[1:]])
