"""Settings of policies: a grid of them on one workload, and the best one held against the others."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

from ._capacity import Capacity, capacity_argument
from ._commands import MakeBar, progress_bar, run
from ._errors import InputError
from ._files import toml
from ._native import Table
from ._study import Study, study
from ._tables import flat, table_of
from ._workload import Source, Workload, read

#: What an axis of a grid lists.
Value = Union[str, int, float, bool]

#: Of a point of the grid: what the program reports about it, and not what was chosen for it.
_RESULTS = frozenset(
    {
        "mean_wait_s",
        "users_mean_wait_s",
        "jain_wait",
        "max_min_wait_ratio",
        "makespan_s",
        "submitted",
        "rejected",
        "started",
        "completed",
        "decisions",
        "order_events",
    }
)


@dataclass(frozen=True)
class Tuning:
    """The points of a grid: each policy with each setting on one workload."""

    #: The metric by which points are compared, and whether its lowest value is the best one.
    metric: str
    lowest: bool
    #: A row for each point: the policy, its settings, and its results.
    points: Table
    #: The number of the best point's row; the first one of several that are equally good.
    best_row: int
    _capacity: Capacity
    _options: Mapping[str, Value]
    _axes: tuple[str, ...]

    @property
    def best(self) -> dict[str, Any]:
        """The policy and the settings of the best point, with the value of the metric."""
        return {**self._chosen(self.best_row), self.metric: self.points[self.metric][self.best_row]}

    def check(self, workload: Source | Workload, against: str | None = None) -> Study:
        """Studies another workload under the best point's policy and settings, and under another policy.

        The best of many points is partly the luckiest of them: what it is worth shows on jobs that did not choose it.
        `against` is the policy to compare with, the first of the grid by default, with its own default settings.

        >>> import evenhand as eh
        >>> t = eh.tune(eh.generate(tasks=300, users=5, days=1), policies=["fifo", "drf"], capacity=0.5)
        >>> t.check(eh.generate(tasks=300, users=5, days=1, seed=2), against="drf").runs["policy"][0]
        'drf'
        """
        settings = self._chosen(self.best_row)
        policy = settings.pop("policy")
        against = against or self.points["policy"][0]
        options = {name.replace("-", "_"): value for name, value in {**self._options, **settings}.items()}
        policies = [policy] if policy == against else [against, policy]
        return study(workload, policies=policies, capacity=self._capacity, **options)

    def _chosen(self, row: int) -> dict[str, Any]:
        values = {axis: self.points[axis][row] for axis in self._axes}
        return {axis: value for axis, value in values.items() if value is not None}

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name} {value}" for name, value in self.best.items())
        return f"<evenhand.Tuning: {len(self.points)} points, best: {chosen}>"


def tune(
    workload: Source | Workload,
    *,
    policies: str | Sequence[str],
    settings: Mapping[str, Value | Sequence[Value]] | None = None,
    capacity: Capacity | None = None,
    metric: str = "users_mean_wait_s",
    lowest: bool | None = None,
    progress: bool | MakeBar = False,
    **options: Value,
) -> Tuning:
    """Replays a workload under a grid of policies and settings, and finds the best point.

    policies: their names; policies in Python or machine code have no settings that a grid could list.
    settings: values by axis, one or a list, such as {"half_life": ["1d", "7d"]}; an axis counts for the policies that have it.
    capacity: one, as of `study`.
    metric: the column of `points` that decides; lowest: whether its lowest value is the best one. By default the lowest
    is, but for columns of which more is better: `jain_wait`, `completed` and utilization.
    options: any other axis of `evenhand sweep`, with one value: no_blocking=True.

    >>> import evenhand as eh
    >>> w = eh.generate(tasks=300, users=5, days=1)
    >>> t = eh.tune(w, policies=["drf", "sdrf"], settings={"half_life": ["1h", "1d"]}, capacity=0.5)
    >>> len(t.points)
    3
    >>> sorted(t.best) in (["policy", "users_mean_wait_s"], ["half-life", "policy", "users_mean_wait_s"])
    True
    """
    workload = workload if isinstance(workload, Workload) else read(workload)
    policies = [policies] if isinstance(policies, str) or not isinstance(policies, Sequence) else list(policies)
    if own := [policy for policy in policies if not isinstance(policy, str)]:
        name = getattr(own[0], "__name__", type(own[0]).__name__)
        raise InputError(
            f"policies: found {name}, a policy of your own, which cannot be tuned: it has no settings that the program knows;"
            " expected names of policies. Compare variants of it by `study`"
        )
    axes = {name.replace("_", "-"): _values(name, values) for name, values in (settings or {}).items()}
    fixed = {name.replace("_", "-"): _value(name, value) for name, value in options.items()}
    if double := sorted(set(axes) & set(fixed)):
        raise InputError(f"{double[0]}: found in settings and as an option, expected it once")
    if not policies:
        raise InputError("policies: found none, expected at least one name")
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        grid: dict[str, Any] = {"workload": [workload._store_path()], "policy": policies, **axes}
        if capacity is None:
            raise InputError('capacity: found none, expected one, such as 0.5 or {"cpu": 100}')
        if isinstance(capacity, Sequence) and not isinstance(capacity, str):
            raise InputError(f"capacity: found {len(capacity)}, expected one")
        grid["capacity"] = [_number(capacity_argument(capacity, folder, 0, []))]
        grid.update({name: [value] for name, value in fixed.items()})
        path = Path(folder, "grid.toml")
        path.write_text("".join(f"{name} = {toml(values)}\n" for name, values in grid.items()), encoding="utf-8")
        out = Path(folder, "sweep")
        run(["sweep", str(path), f"--out={out}"], progress_bar(progress))
        records = json.loads(Path(out, "sweep.json").read_bytes())["points"]
    rows = [_row(record, axes) for record in records]
    points = table_of(rows)
    values = {i: value for i, row in enumerate(rows) if isinstance(value := row.get(metric), int | float)}
    if not values:
        known = ", ".join(sorted(name for name in rows[0] if name in _RESULTS or name.startswith("utilization")))
        raise InputError(f"metric: found {metric!r}, expected one of: {known}")
    if lowest is None:
        lowest = not (metric in ("jain_wait", "completed", "started") or metric.startswith("utilization"))
    sign = 1 if lowest else -1
    best = min(values, key=lambda i: sign * values[i])
    return Tuning(metric, lowest, points, best, capacity, fixed, ("policy", *axes))


def _values(name: str, values: object) -> list[Value]:
    """The values of an axis: a text or a number is one."""
    if isinstance(values, str | int | float):
        return [values]
    if isinstance(values, Mapping) or not isinstance(values, Iterable):
        raise InputError(f"settings: {name}: found {values!r}, expected a value or a list of values")
    return [_value(f"settings: {name}", value) for value in values]


def _value(name: str, value: object) -> Value:
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    raise InputError(f"{name}: found {value!r}, expected a text or a number")


def _row(record: Mapping[str, Any], axes: Mapping[str, Sequence[Value]]) -> dict[str, object]:
    """The row of a point: its policy, its axes as they were typed, its results."""
    row: dict[str, object] = {"policy": record["policy"]}
    for axis in axes:
        row[axis] = record.get("decay") if axis == "half-life" else record.get(axis.replace("-", "_"))
    results = {name: value for name, value in record.items() if name in _RESULTS or name == "utilization"}
    return {**row, **flat(results)}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
