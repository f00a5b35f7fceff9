"""Which run of a study a caller means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import InputError

#: The record of a run in summary.json.
Run = Mapping[str, Any]


class RunSelection:
    """Finds runs by their ids, or by policy, capacity and memory."""

    def __init__(
        self, runs: Sequence[Run], capacity: str | float | None, half_life: str | None, delta: str | float | None
    ) -> None:
        if half_life is not None and delta is not None:
            raise InputError("found half_life and delta, expected one of them")
        self._runs = runs
        self._capacity = None if capacity is None else str(capacity)
        self._memory = half_life if delta is None else float(delta)
        if self._memory is not None and not any(self._has_memory(run) for run in runs if run["delta"] is not None):
            memories = [run.get("half_life") or run["delta"] for run in runs if run["delta"] is not None]
            known = ", ".join(dict.fromkeys(map(str, memories))) or "none, because no policy has a memory"
            name = "half_life" if delta is None else "delta"
            raise InputError(f"{name}: found {self._memory!r}, expected one of the study's: {known}")

    def run(self, name: str, like: Run | None = None) -> Run:
        """The run of this id or policy; `like` has the capacity if none was chosen."""
        if by_id := [run for run in self._runs if run["id"] == name]:
            return by_id[0]
        capacity = self._capacity_of(like)
        found = [run for run in self._runs if run["policy"] == name and run["capacity_name"] == capacity]
        if not found:
            known = ", ".join(dict.fromkeys(f"{run['policy']} at {run['capacity_name']}" for run in self._runs))
            raise InputError(f"no run of {name} at capacity {capacity}, expected one of: {known}")
        if self._memory is not None:
            # Policies without a memory have one run.
            found = [run for run in found if run["delta"] is None or self._has_memory(run)]
        if len(found) > 1:
            ids = ", ".join(run["id"] for run in found)
            raise InputError(
                f"{name} has {len(found)} runs at capacity {capacity}, which differ in their memory: give half_life or delta, or"
                f" in place of the policy the id of the run, one of: {ids}"
            )
        return found[0]

    def _capacity_of(self, like: Run | None) -> str:
        if self._capacity is not None:
            return self._capacity
        if like is not None:
            return str(like["capacity_name"])
        capacities = list(dict.fromkeys(run["capacity_name"] for run in self._runs))
        if len(capacities) > 1:
            raise InputError(f"capacity: the study has several, expected one of: {', '.join(capacities)}")
        return str(capacities[0])

    def _has_memory(self, run: Run) -> bool:
        return self._memory in (run.get("half_life"), run["delta"])
