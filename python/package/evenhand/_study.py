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
from ._commands import MakeBar, Option, OwnFile, option_arguments, progress_bar, run
from ._errors import EnvironmentFailure, InputError
from ._files import KeptFolder, toml_file
from ._native import Table
from ._policies import Policies, forget_runs, register
from ._run_selection import RunSelection
from ._tables import flat, table_of
from ._workload import Source, Workload, read

if TYPE_CHECKING:
    from ._plots import Plots


@dataclass(frozen=True)
class Comparison:
    """The users' mean waits in one run against another, at one capacity."""

    policy: str
    against: str
    capacity: str
    #: The ids of the two runs.
    run: str
    against_run: str
    #: Users whose mean wait is lower, higher and the same, of those who started tasks in both runs.
    users_better: int
    users_worse: int
    users_same: int
    #: Columns `user`, `mean_wait_s`, `against_mean_wait_s` and `difference_s`, below 0 where the policy is better. With repeats,
    #: where `against` is what the study compares with, also `difference_low_s` and `difference_high_s`, between which the
    #: difference lies in another repeat with 95 % probability, and `beyond_noise`.
    users: Table
    #: Users whose difference is beyond the noise; None where the table has no intervals.
    users_better_beyond_noise: int | None = None
    users_worse_beyond_noise: int | None = None
    #: Differences of means over all tasks and over users, each with `mean` and `interval`, as in summary.json.
    noise: Mapping[str, Any] | None = None


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
        """A row for each run and user: counts, waits, slowdown; with repeats also the intervals of users.csv."""
        repeated: dict[str, object] = {}
        if "repeats" in self.summary:
            # Of a run with which others are compared, and of users who waited in fewer than two repeats, there are none.
            repeated = {**dict.fromkeys(_INTERVALS), "beyond_noise": False}
        rows = []
        for run_record in self.summary["runs"]:
            columns = _run_columns(run_record)
            for user in run_record["users"]:
                rows.append({**columns, "user": user["name"], **repeated, **flat(user, leave_out=("name",))})
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
            if path.with_suffix(".csv").exists():
                raise InputError(
                    f"run {run} has its tasks in {path.with_suffix('.csv')}, which is not read here, expected a study without"
                    " tasks_csv=True"
                )
            raise InputError(f"run {run} has no tasks: the study was made without them, expected tasks=True")
        return _native.read_tasks(str(path), run)

    def compare(
        self,
        policy: str,
        against: str | None = None,
        capacity: str | float | None = None,
        *,
        half_life: str | None = None,
        delta: str | float | None = None,
    ) -> Comparison:
        """Compares the users' mean waits under a policy with those under another one, the first of the study by default.

        policy, against: names of policies, or ids of runs, as `runs["run"]` has them.
        half_life, delta: which run of a policy with a memory, if the study has several.

        >>> import evenhand as eh
        >>> s = eh.study(eh.generate(tasks=300, users=5, days=1), policies=["fifo", "drf"], capacity=0.5)
        >>> c = s.compare("drf", against="fifo")
        >>> c.users_better + c.users_worse + c.users_same == len(c.users)
        True
        """
        select = RunSelection(self.summary["runs"], capacity, half_life, delta)
        run = select.run(policy)
        other = select.run(against or self.summary["runs"][0]["policy"], like=run)
        if run["capacity_name"] != other["capacity_name"]:
            raise InputError(f"runs {run['id']} and {other['id']} have different capacities, expected two runs at one")
        # Intervals are of pairs, repeat by repeat, and the program measures only those with one policy.
        compared = (record for record in self.summary["comparisons"] if record["run"] == run["id"])
        record = next((record for record in compared if record["against"] == other["id"] and record.get("noise")), None)
        others = {user["name"]: user["mean_wait_s"] for user in other["users"]}
        rows: list[dict[str, object]] = []
        differences: list[float] = []
        for user in run["users"]:
            wait, against_wait = user["mean_wait_s"], others.get(user["name"])
            if wait is None or against_wait is None:
                continue
            differences.append(wait - against_wait)
            row = {
                "user": user["name"],
                "mean_wait_s": wait,
                "against_mean_wait_s": against_wait,
                "difference_s": differences[-1],
            }
            if record is not None:
                low, high = user.get("difference_interval_s") or (None, None)
                beyond = user.get("beyond_noise", False)
                row |= {"difference_low_s": low, "difference_high_s": high, "beyond_noise": beyond}
            rows.append(row)
        better, worse = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
        beyond_noise = record or {}
        return Comparison(
            policy=run["policy"],
            against=other["policy"],
            capacity=run["capacity_name"],
            run=run["id"],
            against_run=other["id"],
            users_better=better,
            users_worse=worse,
            users_same=len(rows) - better - worse,
            users=table_of(rows),
            users_better_beyond_noise=beyond_noise.get("users_better_beyond_noise"),
            users_worse_beyond_noise=beyond_noise.get("users_worse_beyond_noise"),
            noise=beyond_noise.get("noise"),
        )

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
    repeat: how often the runs are simulated, with other ties each time, for intervals. By default 10 times where that takes
    seconds, and otherwise once; a policy in Python counts for 100 of the program's.
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
    files = [] if workload is None else workload.own_files
    kept = None
    if out is None:
        kept = KeptFolder()
        out = kept.name
        # As the program calls it by default.
        files.append(OwnFile(out, "evenhand-study", "the folder of the study"))
    with tempfile.TemporaryDirectory(prefix="evenhand-") as inputs:
        if capacity is not None:
            several = capacity if isinstance(capacity, Sequence) and not isinstance(capacity, str) else [capacity]
            each = [capacity_argument(c, inputs, i if len(several) > 1 else 0, files) for i, c in enumerate(several, 1)]
            arguments.append(f"--capacity={','.join(each)}")
        if isinstance(weights, Mapping):
            path = toml_file(Path(inputs, "weights.toml"), "weights", weights)
            files.append(OwnFile(path, "weights.toml", ", ".join(f"{user} = {weight}" for user, weight in weights.items())))
            weights = path
        names, registered = register(policies)
        forget_runs(Path(out), registered)
        named: dict[str, Option] = {"policy": names, "weights": weights, "no_tasks": not tasks, "out": out}
        named["scheduler"] = scheduler
        words = [*arguments, *option_arguments(named), *option_arguments(options)]
        finished = run(words, progress_bar(progress), registered, files)
    text = finished.output.split("\nReport: ")[0].strip()
    return Study(Path(out), text, finished.notes, kept)


#: What names a run.
_NAMED = ("id", "policy", "capacity_name")
#: What users have in studies with repeats, in the columns of users.csv.
_INTERVALS = ("wait_low_s", "wait_high_s", "difference_low_s", "difference_high_s")


def _run_columns(run: Mapping[str, Any]) -> dict[str, object]:
    """What names a run, in the columns of users.csv."""
    return {"run": run["id"], "policy": run["policy"], "capacity": run["capacity_name"]}
