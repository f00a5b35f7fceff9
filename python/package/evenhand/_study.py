"""Studies: a workload replayed under several policies."""

from __future__ import annotations

import functools
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._capacity import Capacity, capacity_argument
from ._commands import MakeBar, Option, option_arguments, progress_bar, run
from ._errors import EnvironmentFailure, InputError
from ._files import KeptFolder, toml_file
from ._native import Table
from ._policies import Policies, forget_runs, register
from ._tables import flat, table_of
from ._workload import Source, Workload, read

if TYPE_CHECKING:
    from ._plots import Plots


@dataclass(frozen=True)
class Comparison:
    """The users' mean waits under one policy against another, at one capacity."""

    policy: str
    against: str
    capacity: str
    #: Users whose mean wait is lower, higher and the same, of those who started tasks in both runs.
    users_better: int
    users_worse: int
    users_same: int
    #: Columns `user`, `mean_wait_s`, `against_mean_wait_s` and `difference_s`, below 0 where the policy is better.
    users: Table


class Study:
    """The results of a study, and its folder.

    `runs`, `users` and `tasks` are tables, which polars, pandas, DuckDB and pyarrow take. `summary` is what the program
    writes as summary.json. `print(study)` shows the table that the program prints.
    """

    def __init__(self, folder: Path, text: str, notes: list[str], kept: KeptFolder | None) -> None:
        self.folder = folder
        self.notes = notes
        self._text = text
        # Removed with the study.
        self._kept = kept

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        """What the program writes as summary.json."""
        summary: dict[str, Any] = json.loads(Path(self.folder, "summary.json").read_bytes())
        return summary

    @functools.cached_property
    def runs(self) -> Table:
        """A row for each policy and capacity: waits, utilization, fairness, counts.

        >>> import evenhand as eh
        >>> s = eh.study(eh.generate(tasks=300, users=5, days=1), policies=["fifo", "drf"], capacity=0.5)
        >>> s.runs["policy"]
        ['fifo', 'drf']
        """
        return table_of([{**_run_columns(run), **flat(run, leave_out=_NAMED)} for run in self.summary["runs"]])

    @functools.cached_property
    def users(self) -> Table:
        """A row for each run and user: counts, waits, slowdown."""
        rows = []
        for run_record in self.summary["runs"]:
            columns = _run_columns(run_record)
            for user in run_record["users"]:
                rows.append({**columns, "user": user["name"], **flat(user, leave_out=("name",))})
        return table_of(rows)

    @property
    def tasks(self) -> Table:
        """A row for each run and task: when it started, and what became of it. Times are in nanoseconds.

        Read anew each time, because it may be large; `tasks_of` reads one run.
        """
        return Table.concatenate([self.tasks_of(run["id"]) for run in self.summary["runs"]])

    def tasks_of(self, run: str) -> Table:
        """The tasks of one run, which is named by its id: `drf-0.5`."""
        ids = [record["id"] for record in self.summary["runs"]]
        if run not in ids:
            raise InputError(f"found run {run!r}, expected one of: {', '.join(ids)}")
        path = Path(self.folder, f"tasks-{run}.parquet")
        if not path.exists():
            raise InputError(f"run {run} has no tasks: the study was made without them, expected tasks=True")
        return _native.read_tasks(str(path), run)

    def compare(self, policy: str, against: str | None = None, capacity: str | float | None = None) -> Comparison:
        """Compares the users' mean waits under a policy with those under another one, the first of the study by default.

        >>> import evenhand as eh
        >>> s = eh.study(eh.generate(tasks=300, users=5, days=1), policies=["fifo", "drf"], capacity=0.5)
        >>> c = s.compare("drf", against="fifo")
        >>> c.users_better + c.users_worse + c.users_same == len(c.users)
        True
        """
        runs: list[dict[str, Any]] = self.summary["runs"]
        capacities = list(dict.fromkeys(run["capacity_name"] for run in runs))
        if capacity is None and len(capacities) > 1:
            raise InputError(f"capacity: the study has several, expected one of: {', '.join(capacities)}")
        name = capacities[0] if capacity is None else str(capacity)
        against = against or runs[0]["policy"]

        def of(policy: str) -> dict[str, float]:
            found = [run for run in runs if run["policy"] == policy and run["capacity_name"] == name]
            if not found:
                known = ", ".join(dict.fromkeys(f"{run['policy']} at {run['capacity_name']}" for run in runs))
                raise InputError(f"no run of {policy} at capacity {name}, expected one of: {known}")
            if len(found) > 1:
                raise InputError(f"{policy} has {len(found)} runs at capacity {name}, which differ in their memory")
            return {user["name"]: user["mean_wait_s"] for user in found[0]["users"]}

        waits, others = of(policy), of(against)
        users = [user for user in waits if waits[user] is not None and others.get(user) is not None]
        differences = [waits[user] - others[user] for user in users]
        table = Table.from_columns(
            [
                ("user", users),
                ("mean_wait_s", [waits[user] for user in users]),
                ("against_mean_wait_s", [others[user] for user in users]),
                ("difference_s", differences),
            ]
        )
        better, worse = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
        return Comparison(policy, against, name, better, worse, len(users) - better - worse, table)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Copies the study's folder, with the report `index.html`, to `path`; returns the report's path."""
        target = Path(path)
        try:
            if not target.exists() or not target.samefile(self.folder):
                shutil.copytree(self.folder, target, dirs_exist_ok=True)
        except (OSError, shutil.Error) as error:
            raise EnvironmentFailure(f"{target}: {error}") from error
        return target / "index.html"

    @property
    def plot(self) -> Plots:
        """Figures by matplotlib: `study.plot.waits()`."""
        from ._plots import Plots

        return Plots(self)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        runs = ", ".join(run["id"] for run in self.summary["runs"])
        return f"<evenhand.Study: {self.summary['workload']['tasks']} tasks, runs {runs}>"


def study(
    workload: Source | Workload | None = None,
    *,
    policies: Policies | None = None,
    capacity: Capacity | Sequence[Capacity] | None = None,
    scheduler: str | None = None,
    weights: Mapping[str, float] | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    tasks: bool = True,
    progress: bool | MakeBar = False,
    **options: Option,
) -> Study:
    """Replays a workload under several policies.

    policies: their names, which `evenhand policies` lists, classes with a method `key`, `user_key` or `next`, or
    `CompiledPolicy`. The first is the one that the others are compared with.
    capacity: multiples of the workload's mean use (0.5), amounts ({"cpu": 100}), or files ("pool.toml").
    scheduler: strict, easy or conservative, the two also with settings (easy:reserve=3).
    weights: of users by name, or a file.
    out: folder of the results; without one they are removed with the study.
    tasks: whether to keep the start of every task.
    progress: True for a bar by tqdm, or tqdm itself.
    options: any other option of `evenhand study`, with underscores: half_life="8d", placement="best-fit".

    The results are those of the program, bit by bit. The interpreter's lock is released, and Ctrl-C stops the study.

    >>> import evenhand as eh
    >>> w = eh.generate(tasks=300, users=5, days=1)
    >>> s = eh.study(w, policies=["fifo", "drf"], capacity=0.5)
    >>> s
    <evenhand.Study: 300 tasks, runs fifo-0.5, drf-0.5>
    >>> len(s.users)
    10
    """
    arguments: list[str] = ["study", "--list-all-users"]
    if workload is not None:
        workload = workload if isinstance(workload, Workload) else read(workload)
        arguments += workload.arguments
    kept = None
    if out is None:
        kept = KeptFolder()
        out = kept.name
    with tempfile.TemporaryDirectory(prefix="evenhand-") as inputs:
        if capacity is not None:
            several = capacity if isinstance(capacity, Sequence) and not isinstance(capacity, str) else [capacity]
            each = [capacity_argument(c, inputs, i if len(several) > 1 else 0) for i, c in enumerate(several, 1)]
            arguments.append(f"--capacity={','.join(each)}")
        if isinstance(weights, Mapping):
            weights = toml_file(Path(inputs, "weights.toml"), "weights", weights)
        names, registered = register(policies)
        forget_runs(Path(out), registered)
        named: dict[str, Option] = {"policy": names, "weights": weights, "no_tasks": not tasks, "out": out}
        named["scheduler"] = scheduler
        finished = run([*arguments, *option_arguments(named), *option_arguments(options)], progress_bar(progress), registered)
    text = finished.output.split("\nReport: ")[0].strip()
    return Study(Path(out), text, finished.notes, kept)


#: What names a run.
_NAMED = ("id", "policy", "capacity_name")


def _run_columns(run: Mapping[str, Any]) -> dict[str, object]:
    """What names a run, in the columns of users.csv."""
    return {"run": run["id"], "policy": run["policy"], "capacity": run["capacity_name"]}
