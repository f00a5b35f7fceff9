"""A scheduler for ExaDigiT's RAPS that starts jobs in the order of a policy of evenhand: drf, sdrf, fair-tree, …

Copy this file to `raps/schedulers/evenhand_policy.py` and run RAPS with the scheduler `evenhand_policy`. RAPS' own
policy has to be another than `replay`; whose job starts next is up to EVENHAND_POLICY (default `sdrf`), and
EVENHAND_HALF_LIFE is the half-life of past use in seconds (default 8 days). Backfill `easy` starts later jobs that do not
delay the one that waits for nodes; without backfill nothing passes it.

The users are the jobs' accounts, and shares are of nodes. Written against the interface of the schedulers of RAPS (its
constructor, `schedule`, `sort_jobs`, `assign_nodes_to_job` of the resource manager): RAPS itself is in no package index,
so the tests run this file with a resource manager and an engine of the same interface, and not with RAPS.
"""

from __future__ import annotations

import os
from typing import Any

import evenhand as eh


def account_of(job: Any) -> str:
    """Whose job it is."""
    return str(getattr(job, "account", None) or "unknown")


class Scheduler:
    """What RAPS loads: it sorts nothing, and asks the policy for every start."""

    def __init__(self, config: Any, policy: Any, bfpolicy: Any = None, jobs: Any = None, resource_manager: Any = None):
        if resource_manager is None:
            raise ValueError("the scheduler needs RAPS' resource manager")
        self.config = config
        # RAPS sets both to replay jobs that run when the simulation begins, and prints them.
        self.policy, self.bfpolicy = policy, bfpolicy
        self.resource_manager = resource_manager
        accounts = sorted({account_of(job) for job in jobs or []}) or ["unknown"]
        name = os.environ.get("EVENHAND_POLICY", "sdrf")
        half_life = float(os.environ.get("EVENHAND_HALF_LIFE", 8 * 86_400))
        nodes = int(config["TOTAL_NODES"])
        self.order = eh.LivePolicy(name, capacity={"nodes": nodes}, users=accounts, half_life=half_life)
        #: Jobs that run, by id, with their start, their nodes and their time limits.
        self._running: dict[Any, tuple[str, float, int, float]] = {}

    def sort_jobs(self, queue: list[Any], accounts: Any = None) -> list[Any]:
        """The order in which one account's jobs start."""
        return sorted(queue, key=lambda job: job.submit_time)

    def schedule(
        self, queue: list[Any], running: list[Any], current_time: float, accounts: Any = None, sorted: bool = False
    ) -> None:
        """Starts jobs of `queue` and moves them to `running`."""
        if not sorted:
            queue[:] = self.sort_jobs(queue, accounts)
        if name_of(self.policy) == "replay":
            # Of a time before the simulation begins: these jobs are noticed by the first call after it.
            self._replay(queue, running, current_time)
            return
        self._notice(running, current_time)
        waiting: dict[str, list[Any]] = {}
        for place, job in enumerate(queue):
            waiting.setdefault(account_of(job), []).append((place, job))
        for account in waiting:
            self._show(account, waiting)
        reserved: tuple[float, int] | None = None
        while (account := self.order.next(now=current_time)) is not None:
            _, job = waiting[account].pop(0)
            fits = job.nodes_required <= len(self.resource_manager.available_nodes)
            if fits and (reserved is None or self._may_pass(job, current_time, reserved)):
                if reserved is not None and current_time + job.time_limit > reserved[0]:
                    reserved = (reserved[0], reserved[1] - job.nodes_required)
                self._start(job, queue, running, current_time)
            elif name_of(self.bfpolicy) != "easy":
                break
            elif reserved is None:
                reserved = self._reservation(job, running)
            self._show(account, waiting)
        for account in waiting:
            self.order.waits(account, None)

    def _show(self, account: str, waiting: dict[str, list[Any]]) -> None:
        """Sets an account's first waiting job."""
        if not waiting[account]:
            self.order.waits(account, None)
            return
        place, job = waiting[account][0]
        submitted, demand = max(0.0, job.submit_time), {"nodes": job.nodes_required}
        self.order.waits(account, demand, submitted=submitted, position=place, requested=limit_of(job))

    def _notice(self, running: list[Any], now: float) -> None:
        """Notifies of jobs that ended since the last call, and of those that RAPS placed itself."""
        present = {job.id for job in running}
        for ended in [job for job in self._running if job not in present]:
            account, started, nodes, limit = self._running.pop(ended)
            self.order.finished(account, {"nodes": nodes}, now=now, started=started, requested=limit)
        for job in running:
            if job.id not in self._running:
                self._count(job, now)

    def _count(self, job: Any, now: float) -> None:
        # Some policies charge a running job by its time limit. RAPS placed some itself, which never waited here.
        account, nodes, limit = account_of(job), job.nodes_required, limit_of(job)
        self._running[job.id] = (account, now, nodes, limit)
        self.order.started(account, {"nodes": nodes}, now=now, requested=limit)

    def _start(self, job: Any, queue: list[Any], running: list[Any], now: float) -> None:
        job.scheduled_nodes = []
        self.resource_manager.assign_nodes_to_job(job, now, self.policy)
        running.append(job)
        queue.remove(job)
        self._count(job, now)

    def _replay(self, queue: list[Any], running: list[Any], now: float) -> None:
        """Starts jobs when and where they started in the log: RAPS asks for that before the simulation begins."""
        for job in queue[:]:
            free = set(self.resource_manager.available_nodes)
            if job.start_time <= now and free.issuperset(job.scheduled_nodes or []) and job.nodes_required <= len(free):
                self.resource_manager.assign_nodes_to_job(job, now, self.policy)
                running.append(job)
                queue.remove(job)

    def _reservation(self, job: Any, running: list[Any]) -> tuple[float, int]:
        """When the job has enough nodes if all others use their time limits, and how many are left over then."""
        free = len(self.resource_manager.available_nodes)
        for other in sorted_by_end(running):
            free += other.nodes_required
            if free >= job.nodes_required:
                return other.start_time + other.time_limit, free - job.nodes_required
        return float("inf"), 0

    @staticmethod
    def _may_pass(job: Any, now: float, reserved: tuple[float, int]) -> bool:
        """Whether the job ends before the reservation begins, or uses only nodes that it leaves over."""
        return now + job.time_limit <= reserved[0] or job.nodes_required <= reserved[1]


def limit_of(job: Any) -> float:
    """The job's time limit in seconds, 0 if it has none."""
    return max(0.0, float(job.time_limit or 0))


def sorted_by_end(running: list[Any]) -> list[Any]:
    """Running jobs by when they must have ended."""
    return sorted(running, key=lambda job: job.start_time + job.time_limit)


def name_of(choice: Any) -> str:
    """The name of a policy, which RAPS gives as a member of an enumeration, or of none."""
    return str(getattr(choice, "value", choice))
