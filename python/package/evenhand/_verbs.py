"""The other verbs of the program: divide, audit, simulate processes, price jobs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._capacity import Capacity, capacity_argument
from ._commands import Document, Option, document_path, option_arguments, run_json
from ._errors import InputError
from ._workload import Source, Workload, read


@dataclass(frozen=True)
class Audit:
    """The result of an audit."""

    #: Whether the properties hold.
    holds: bool
    #: What `evenhand audit --format json` prints: the findings, or the whole record of a history.
    record: Any


def allocate(
    problem: Document, mechanism: str | Sequence[str] = "drf", *, exact: bool = False, **options: Option
) -> list[dict[str, Any]]:
    """Divides one capacity among users, by one or several mechanisms.

    >>> import evenhand as eh
    >>> users = [{"name": "A", "demand": {"cpu": 1, "mem": 4}}, {"name": "B", "demand": {"cpu": 3, "mem": 1}}]
    >>> [drf] = eh.allocate({"capacity": {"cpu": 9, "mem": 18}, "user": users})
    >>> [round(user["tasks"], 6) for user in drf["users"]]
    [3.0, 2.0]
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        path = document_path(problem, folder, "problem")
        named: dict[str, Option] = {"mechanism": mechanism, "exact": exact}
        _, records = run_json(["allocate", path, *option_arguments(named), *option_arguments(options)])
    result: list[dict[str, Any]] = records
    return result


def audit(
    problem: Document | Workload | None = None,
    allocation: Document | Sequence[dict[str, Any]] | None = None,
    *,
    history: Source | Workload | None = None,
    capacity: Capacity | None = None,
    **options: Option,
) -> Audit:
    """Checks an allocation of a problem, or the history of a workload, against fairness properties.

    A workload may also be the first argument: `audit(workload)` is `audit(history=workload)`.

    capacity: of a history, one, as of `study`.

    >>> import evenhand as eh
    >>> users = [{"name": "A", "demand": {"cpu": 1, "mem": 4}}, {"name": "B", "demand": {"cpu": 3, "mem": 1}}]
    >>> problem = {"capacity": {"cpu": 9, "mem": 18}, "user": users}
    >>> eh.audit(problem, {"users": [{"name": "A", "tasks": 3}, {"name": "B", "tasks": 1}]}, property="pareto").holds
    False
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        arguments = ["audit"]
        if isinstance(problem, Workload) and history is None:
            problem, history = None, problem
        if history is not None:
            if problem is not None or allocation is not None:
                raise InputError("audit: found a history and a problem, expected one of them")
            workload = history if isinstance(history, Workload) else read(history)
            path, *trace = workload.arguments
            arguments += [f"--history={path}", *trace]
        elif problem is None or isinstance(problem, Workload):
            raise InputError("audit: found neither, expected a problem with its allocation, or a history")
        else:
            arguments.append(document_path(problem, folder, "problem"))
            if allocation is not None:
                if isinstance(allocation, Sequence) and not isinstance(allocation, str):
                    # What `allocate` returns: a list with one element a mechanism.
                    if len(allocation) != 1:
                        raise InputError(f"audit: found {len(allocation)} allocations, expected one")
                    allocation = allocation[0]
                arguments.append(document_path(allocation, folder, "allocation"))
        if capacity is not None:
            if isinstance(capacity, Sequence) and not isinstance(capacity, str):
                raise InputError(f"capacity: found {len(capacity)}, expected one")
            arguments.append(f"--capacity={capacity_argument(capacity, folder, 0, [])}")
        status, record = run_json([*arguments, *option_arguments(options)])
    return Audit(status == 0, record)


def timeline(scenario: Document, mechanism: str = "drf", **options: Option) -> dict[str, Any]:
    """Divides a capacity over time among users who arrive, change and leave.

    >>> import evenhand as eh
    >>> users = [{"name": "A", "demand": {"cpu": 1}, "arrive": 0, "leave": 10}]
    >>> record = eh.timeline({"capacity": {"cpu": 4}, "user": users})
    >>> record["mechanism"]
    'drf'
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        path = document_path(scenario, folder, "scenario")
        _, record = run_json(["timeline", path, f"--mechanism={mechanism}", *option_arguments(options)])
    result: dict[str, Any] = record
    return result


def processes(
    programs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], *, runs: int = 1, **options: Option
) -> Any:
    """Simulates processes that alternate between time-shared resources: programs (.prog), or one scenario (.toml)."""
    several = programs if isinstance(programs, Sequence) and not isinstance(programs, str) else [programs]
    paths = [os.fspath(path) for path in several]
    _, record = run_json(["processes", *paths, f"--runs={runs}", *option_arguments(options)])
    return record


def price(job: str, cluster: str | os.PathLike[str] | Document, **options: Option) -> Any:
    """Computes what a job costs on the machines of a cluster, in processor equivalents.

    >>> import evenhand as eh
    >>> machines = [{"name": "thin", "count": 2, "cpu": 16, "mem": "64Gi"}]
    >>> eh.price("cpu=4:mem=8Gi", {"machines": machines})["processors"]
    4.0
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-") as folder:
        path = document_path(cluster, folder, "cluster")
        _, record = run_json(["price", job, f"--cluster={Path(path)}", *option_arguments(options)])
    return record
