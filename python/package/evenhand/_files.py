"""Folders that live as long as an object."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref


class KeptFolder:
    """A folder for temporary files, removed with this object or at the end of the process."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="evenhand-")
        weakref.finalize(self, _remove, self.name, os.getpid())


def _remove(path: str, owner: int) -> None:
    # A process that was forked has copies of its parent's objects, but the files are the parent's.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
