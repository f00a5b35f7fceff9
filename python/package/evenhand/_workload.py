"""Workloads: traces, stored ones, generated ones, and tables of other libraries."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, Union, runtime_checkable

from . import _native
from ._commands import Option, OwnFile, option_arguments, run, run_json
from ._errors import EnvironmentFailure, InputError
from ._files import KeptFolder
from ._native import Table


@runtime_checkable
class ArrowStream(Protocol):
    """A table of polars, pandas, DuckDB or pyarrow: anything with Arrow's C data interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """A record batch: anything with Arrow's C data interface for arrays."""

    def __arrow_c_array__(self, requested_schema: object | None = None, /) -> object: ...


@runtime_checkable
class JobSet(Protocol):
    """A job set of evalys, which writes itself as a table."""

    df: Any

    def to_csv(self, filename: str, /) -> object: ...


#: What can be read as a workload.
Source: TypeAlias = Union[
    str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]], ArrowStream, ArrowArray, JobSet
]


class Workload:
    """Tasks of users: who submitted what, when, and what each task held for how long.

    Made by :func:`read` and :func:`generate`. A workload is a table: polars, pandas, DuckDB and pyarrow take it.

    >>> import evenhand as eh
    >>> w = eh.generate(tasks=100, users=3, days=1)
    >>> len(w)
    100
    >>> w.table["user"][0] in w.users
    True
    """

    def __init__(
        self, path: str, options: list[str], folder: KeptFolder | None = None, own_file: OwnFile | None = None
    ) -> None:
        self._path = path
        #: The workload's file if it is removed with the workload.
        self._own_file = own_file
        self._options = options
        # Removed with the workload.
        self._folder = folder
        self._stored: Path | None = None
        self._table: Table | None = None
        self._description: dict[str, Any] | None = None

    @property
    def path(self) -> Path:
        """The file of the workload."""
        return Path(self._path)

    @property
    def arguments(self) -> list[str]:
        """The arguments of the program that name this workload, with the options that say how it is read."""
        return [self._path, *self._options]

    def describe(self) -> dict[str, Any]:
        """Counts, users, demands, durations and mean use: what `evenhand workload describe --format json` prints.

        >>> import evenhand as eh
        >>> eh.generate(tasks=100, users=3, days=1).describe()["tasks"]
        100
        """
        if self._description is None:
            _, self._description = run_json(["workload", "describe", *self.arguments])
        assert self._description is not None
        return self._description

    @property
    def own_files(self) -> list[OwnFile]:
        """The files among the arguments that are removed with the workload."""
        return [] if self._own_file is None else [self._own_file]

    @property
    def users(self) -> list[str]:
        """The names of the users, in the order in which they first appear."""
        return list(dict.fromkeys(self.table["user"]))

    @property
    def table(self) -> Table:
        """The tasks, one a row (or several identical ones, if there is a column `count`).

        Times are whole nanoseconds, amounts are in the resource's unit. The page "Workload files" has the columns.
        """
        if self._table is None:
            self._table = _native.read_workload(self._store_path())
        return self._table

    def store(self, path: str | os.PathLike[str]) -> Workload:
        """Stores the workload as Parquet, which is read much faster than a trace; returns the stored workload."""
        if self._is_stored:
            try:
                shutil.copyfile(self._path, path)
            except OSError as error:
                raise EnvironmentFailure(f"{os.fspath(path)}: {error.strerror or error}") from error
        else:
            run(["workload", "import", *self.arguments, f"--output={os.fspath(path)}"])
        return read(path)

    def export(self, to: str, path: str | os.PathLike[str]) -> None:
        """Writes the workload in another program's format: sdrf-csv, swf or evalys-csv."""
        run(["workload", "export", *self.arguments, f"--to={to}", f"--output={os.fspath(path)}"])

    def to_evalys(self) -> Any:
        """Returns the tasks, with their original starts, as a JobSet of evalys, which must be installed.

        The trace has no numbers of processors: each task gets the lowest ones that are free when it starts.
        """
        try:
            from evalys.jobset import JobSet as EvalysJobSet
        except ImportError as error:
            raise InputError("to_evalys needs evalys, which is not installed: pip install evalys") from error
        with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
            path = Path(folder, "jobs.csv")
            self.export("evalys-csv", path)
            return EvalysJobSet.from_csv(str(path))

    def __len__(self) -> int:
        return int(self.describe()["tasks"])

    def __repr__(self) -> str:
        about = self.describe()
        return f"<evenhand.Workload: {about['tasks']} tasks of {len(self.users)} users>"

    def __arrow_c_stream__(self, requested_schema: object | None = None, /) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    @property
    def _is_stored(self) -> bool:
        try:
            with open(self._path, "rb") as file:
                return file.read(4) == b"PAR1"
        except OSError:
            return False

    def _store_path(self) -> str:
        if self._is_stored:
            return self._path
        if self._stored is None:
            self._folder = self._folder or KeptFolder()
            stored = Path(self._folder.name, "workload.parquet")
            run(["workload", "import", *self.arguments, f"--output={stored}"])
            self._stored = stored
        return str(self._stored)


def read(source: Source, *, units: Mapping[str, str] | None = None, **options: Option) -> Workload:
    """Reads a workload: a file, a table of polars, pandas, DuckDB or pyarrow, or a JobSet of evalys.

    A file is a stored workload (Parquet) or a trace in any format that the program imports; `options` are those of
    `evenhand workload import`, with underscores: `lenient=True`, `csv_columns="submit=created,…"`. The format, which is
    detected by default, is `from_`, because `from` is a word of Python: `from_="google-2019"`. A trace of several files is a
    list of their paths.

    A table has a row for each task, with columns `submit` (timestamps, or seconds), `duration` (durations or seconds; or
    `start` or `wait`, and `end`), `user`, one or more resources of any name, and, where known, the other columns that a table in
    a file has: `start`, `requested`, `eligible`, `account`, `queue`, `qos`, `count`, `nodes`, `per_node`, `gpu_type`,
    `cpu_requested` and so on. Times in nanoseconds have names that end in `_ns`. `units` has the units of resources. The page
    "Workload files" has all columns.

    >>> import evenhand as eh
    >>> columns = [("submit", [0, 5]), ("duration", [60, 30]), ("user", ["ann", "bob"]), ("cpu", [2, 0.5])]
    >>> w = eh.read(eh.Table.from_columns(columns), units={"cpu": "cores"})
    >>> w.describe()["tasks"]
    2
    """
    if isinstance(source, str | os.PathLike):
        if units is not None:
            raise InputError("units: a file says itself which units its resources have, expected units with tables only")
        workload = Workload(os.fspath(source), option_arguments(options))
        # Now and not when it is used, so that an error points here.
        workload.describe()
        return workload
    if isinstance(source, list | tuple):
        return _read_files(source, units, options)
    if options:
        raise InputError(f"{', '.join(options)}: options of files, and a table was given")
    if not isinstance(source, ArrowStream | ArrowArray | JobSet):
        raise InputError(
            f"found {type(source).__name__}, expected a path, a list of paths, a table with Arrow's C data interface"
            " (polars, pandas, DuckDB, pyarrow), or a JobSet of evalys"
        )
    folder = KeptFolder()
    if isinstance(source, JobSet) and not isinstance(source, ArrowStream | ArrowArray):
        return _read_job_set(source, folder)
    path = str(Path(folder.name, "workload.parquet"))
    _native.store_table(source, path, list((units or {}).items()))
    return Workload(path, [], folder, OwnFile(path, "table.parquet", "a table in Python"))


def _read_files(
    paths: Sequence[str | os.PathLike[str]], units: Mapping[str, str] | None, options: Mapping[str, Option]
) -> Workload:
    """Reads a trace of several files, which becomes one stored workload."""
    if units is not None:
        raise InputError("units: files say themselves which units their resources have, expected units with tables only")
    if wrong := [path for path in paths if not isinstance(path, str | os.PathLike)]:
        raise InputError(f"found {wrong[0]!r} in a list, expected the paths of one trace")
    if not paths:
        raise InputError("found no path, expected those of one trace")
    files = [os.fspath(path) for path in paths]
    return _made(["workload", "import", *files, *option_arguments(options)], ", ".join(files))


def _made(words: list[str], contents: str) -> Workload:
    """The workload that a command of the program writes."""
    folder = KeptFolder()
    path = str(Path(folder.name, "workload.parquet"))
    run([*words, f"--output={path}"])
    made_by = shlex.join(["evenhand", *words, "--output=workload.parquet"])
    return Workload(path, [], folder, OwnFile(path, "workload.parquet", contents, made_by))


def _read_job_set(jobs: JobSet, folder: KeptFolder) -> Workload:
    path = Path(folder.name, "jobs.csv")
    try:
        jobs.to_csv(str(path))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"the JobSet cannot be written: {error!r}") from error
    # At once: the JobSet may change later.
    stored = Workload(str(path), ["--from=evalys-csv"], folder)._store_path()
    return Workload(stored, [], folder, OwnFile(stored, "jobset.parquet", "a JobSet in Python"))


def generate(
    like: str = "google2011", *, tasks: int = 200_000, users: int = 100, days: float = 29.0, seed: int = 1
) -> Workload:
    """Generates a workload that resembles a public trace: google2011 or metacentrum.

    >>> import evenhand as eh
    >>> eh.generate("metacentrum", tasks=50, users=5, days=2, seed=7)
    <evenhand.Workload: 50 tasks of 5 users>
    """
    options: dict[str, Option] = {"like": like, "tasks": tasks, "users": users, "days": days, "seed": seed}
    # In the words of a study without a workload, which generates one.
    contents = f"generated like {like}: {tasks} tasks of {users} users over {days:g} days, seed {seed}"
    return _made(["workload", "generate", *option_arguments(options)], contents)
