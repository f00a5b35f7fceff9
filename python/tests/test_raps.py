"""The scheduler for RAPS, in an engine with the interface that RAPS' engine and resource manager have.

RAPS is in no package index, so this is not RAPS itself: what is tested is the scheduler, and that it does what its
interface asks for.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import evenhand as eh

NODES = 40
EXAMPLE = Path(__file__).parents[1] / "examples" / "raps_scheduler.py"


class PolicyType(Enum):
    FCFS = "fcfs"
    REPLAY = "replay"


class BackfillType(Enum):
    NONE = None
    EASY = "easy"


@dataclass(eq=False)
class Job:
    id: int
    account: str
    nodes_required: int
    submit_time: int
    run_time: int
    time_limit: int
    start_time: int = -1
    end_time: int | None = None
    scheduled_nodes: list[int] = field(default_factory=list)


class ResourceManager:
    def __init__(self) -> None:
        self.available_nodes = list(range(NODES))

    def assign_nodes_to_job(self, job: Job, current_time: int, policy: object) -> None:
        if len(self.available_nodes) < job.nodes_required:
            raise ValueError("not enough nodes")
        if not job.scheduled_nodes:
            job.scheduled_nodes = self.available_nodes[: job.nodes_required]
        self.available_nodes = [node for node in self.available_nodes if node not in job.scheduled_nodes]
        job.start_time, job.end_time = current_time, current_time + job.run_time


def run(jobs: list[Job], backfill: BackfillType, running: list[Job] | None = None) -> dict[int, int]:
    """Simulates as RAPS does: ends, submissions, and one call of the scheduler if there were any. Returns the starts."""
    spec = importlib.util.spec_from_file_location("raps_scheduler", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    manager = ResourceManager()
    before = running or []
    scheduler = module.Scheduler(
        config={"TOTAL_NODES": NODES}, policy=PolicyType.FCFS, bfpolicy=backfill, jobs=jobs + before, resource_manager=manager
    )
    # Jobs that run when the simulation begins are replayed, each in a queue of its own.
    now_running: list[Job] = []
    scheduler.policy, scheduler.bfpolicy = PolicyType.REPLAY, None
    for job in before:
        scheduler.schedule([job], now_running, job.start_time, accounts=None, sorted=True)
    scheduler.policy, scheduler.bfpolicy = PolicyType.FCFS, backfill
    assert now_running == before
    queue: list[Job] = []
    later = sorted(jobs, key=lambda job: job.submit_time)
    while later or now_running:
        ends = [job.end_time for job in now_running if job.end_time is not None]
        now = min(ends + [job.submit_time for job in later[:1]])
        for job in [job for job in now_running if job.end_time == now]:
            now_running.remove(job)
            manager.available_nodes = sorted({*manager.available_nodes, *job.scheduled_nodes})
        new = [job for job in later if job.submit_time == now]
        later = later[len(new) :]
        queue += new
        scheduler.schedule(queue, now_running, now, accounts=None, sorted=not new)
        used = [node for job in now_running for node in job.scheduled_nodes]
        assert len(used) == len(set(used)) == NODES - len(manager.available_nodes)
    assert not queue
    return {job.id: job.start_time for job in jobs}


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    table = pl.DataFrame(eh.generate("metacentrum", tasks=500, users=8, days=3, seed=6))
    second = 1_000_000_000
    return table.select(
        pl.col("submit_ns") // second * second,
        (pl.col("duration_ns") // second + 1) * second,
        "user",
        pl.col("cpu").clip(1, NODES).cast(pl.Int64),
        requested_ns=2 * (pl.col("duration_ns") // second + 1) * second,
    )


def jobs_of(table: pl.DataFrame) -> list[Job]:
    rows = table.iter_rows(named=True)
    second = 1_000_000_000
    return [
        Job(i, r["user"], r["cpu"], r["submit_ns"] // second, r["duration_ns"] // second, 2 * r["duration_ns"] // second)
        for i, r in enumerate(rows)
    ]


@pytest.mark.parametrize("policy", ["fifo", "drf", "sdrf", "cpu-time", "penalty"])
def test_without_backfill_it_starts_what_a_study_starts(
    table: pl.DataFrame, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_POLICY", policy)
    options: dict[str, Any] = {} if policy in ("fifo", "drf") else {"half_life": "8d"}
    study = eh.study(table, policies=[policy], capacity={"cpu": NODES}, scheduler="strict", **options)
    [record] = study.summary["runs"]
    expected = [start // 1_000_000_000 for start in study.tasks_of(record["id"])["start_ns"]]
    assert list(run(jobs_of(table), BackfillType.NONE).values()) == expected


def test_backfill_starts_more_and_delays_nobody_who_waits_for_nodes(
    table: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_POLICY", "drf")
    strict, easy = (run(jobs_of(table), backfill) for backfill in (BackfillType.NONE, BackfillType.EASY))
    jobs = jobs_of(table)
    wait = [sum(starts[job.id] - job.submit_time for job in jobs) for starts in (strict, easy)]
    assert wait[1] < 0.9 * wait[0]
    # 30 nodes are held until 100, and the first in the queue needs 35. Of those behind it, one would end too late, and
    # another ends in time.
    held = Job(9, "cat", 30, 0, 100, 100, start_time=0, end_time=None, scheduled_nodes=list(range(30)))
    three = [Job(0, "ann", 35, 1, 10, 10), Job(1, "bob", 6, 2, 200, 200), Job(2, "dan", 9, 3, 50, 97)]
    assert run(three, BackfillType.EASY, [held]) == {0: 100, 1: 110, 2: 3}


def test_jobs_that_run_at_the_beginning_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_POLICY", "drf")
    held = Job(9, "ann", 30, -50, 150, 200, start_time=-50, scheduled_nodes=list(range(30)))
    # Of the same instant: bob's goes first, because ann holds 30 nodes.
    two = [Job(0, "ann", 6, 5, 10, 10), Job(1, "bob", 6, 5, 10, 10)]
    assert run(two, BackfillType.NONE, [held]) == {0: 15, 1: 5}
