"""Measures decisions a second of drf as the built-in policy, in Python, in C and, where it is installed, in numba.

All are in one study, one after another on one thread, and start every task at the same time. Needs `cc`, or a library
compiled from compiled_policy.c: --library FILE.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import evenhand as eh
from evenhand.compiled import CompiledPolicy, include, numba_signature

SOURCE = Path(__file__).with_name("compiled_policy.c")


class PythonKey:
    """A key at every decision, of all who wait."""

    def key(self, view: eh.View) -> Any:
        return view.shares.max(axis=1) / view.weight


class PythonUserKey:
    """A key of those who changed."""

    def user_key(self, view: eh.View) -> Any:
        return view.shares.max(axis=1) / view.weight


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", nargs="?", help="a workload; a generated one by default")
    parser.add_argument("--tasks", type=int, default=200_000, help="tasks of the generated workload")
    parser.add_argument("--users", type=int, default=20, help="users of the generated workload")
    parser.add_argument("--capacity", type=float, default=0.5, help="multiple of the mean use")
    parser.add_argument("--library", help="compiled_policy.c, compiled")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        library = Path(arguments.library) if arguments.library else Path(folder, "compiled_policy.so")
        if not arguments.library:
            command = ["cc", "-O2", "-shared", "-fPIC", f"-I{include()}", "-o", str(library), str(SOURCE)]
            subprocess.run(command, check=True)
        drf = ctypes.CDLL(str(library)).drf
        policies: list[Any] = ["drf"]
        policies += [CompiledPolicy(drf, name="c-key"), CompiledPolicy(drf, name="c-user-key", method="user_key")]
        policies += numba_policies()
        policies += [PythonKey, PythonUserKey]
        workload: Any = arguments.log or eh.generate(tasks=arguments.tasks, users=arguments.users, days=5)
        study = eh.study(workload, policies=policies, capacity=arguments.capacity, scheduler="strict", threads=1)
    runs = study.summary["runs"]
    expected = study.tasks_of(runs[0]["id"])["start_ns"]
    about = study.summary["workload"]
    print(f"{about['tasks']} tasks, {about['users']} users")
    for run in runs:
        is_same = study.tasks_of(run["id"])["start_ns"] == expected
        rate = f"{run['decisions'] / run['elapsed_s']:,.0f}"
        print(f"{run['policy']:15}{run['decisions']:8} decisions {rate:>10} a second, {'the same' if is_same else 'OTHER'} starts")


def numba_policies() -> list[CompiledPolicy]:
    """drf, compiled by numba; nothing without numba."""
    try:
        import numba
    except ImportError:
        return []

    @numba.cfunc(numba_signature())
    def drf(now, users, resources, user, shares, demand, weight, submitted, position, requested, keys, data):  # type: ignore
        held = numba.carray(shares, (users, resources))
        for row in range(users):
            keys[row] = held[row].max() / weight[row]
        return 0

    return [CompiledPolicy(drf, name="numba-key"), CompiledPolicy(drf, name="numba-user-key", method="user_key")]


if __name__ == "__main__":
    main()
