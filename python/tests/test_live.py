"""Policies of the program in a simulator of the test's own: they decide as in a study."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

import polars as pl
import pytest

import evenhand as eh

CPUS = 40


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    """Whole processors, of which a pool of 40 is scarce."""
    table = pl.DataFrame(eh.generate("metacentrum", tasks=600, users=9, days=3, seed=4))
    return table.select("submit_ns", "duration_ns", "user", pl.col("cpu").clip(1, CPUS).cast(pl.Int64))


def simulated(policy: eh.LivePolicy, jobs: pl.DataFrame) -> list[int]:
    """Starts, in nanoseconds, in the order of the jobs: one pool, and nothing starts while the next does not fit."""
    rows = list(jobs.iter_rows(named=True))
    first_of_instant = {row["submit_ns"]: i for i, row in reversed(list(enumerate(rows)))}
    starts = [0] * len(rows)
    waiting: dict[str, deque[int]] = {user: deque() for user in policy.users}
    running: list[tuple[int, int]] = []
    free, begin = CPUS, 0

    def show(user: str) -> None:
        if not waiting[user]:
            policy.waits(user, None)
            return
        row = rows[waiting[user][0]]
        position = waiting[user][0] - first_of_instant[row["submit_ns"]]
        policy.waits(user, {"cpu": row["cpu"]}, submitted=row["submit_ns"] / 1e9, position=position)

    while begin < len(rows) or running:
        now = min([row["submit_ns"] for row in rows[begin : begin + 1]] + [end for end, _ in running[:1]])
        while running and running[0][0] == now:
            _, i = heapq.heappop(running)
            free += rows[i]["cpu"]
            policy.finished(rows[i]["user"], {"cpu": rows[i]["cpu"]}, now=now / 1e9, started=starts[i] / 1e9)
        while begin < len(rows) and rows[begin]["submit_ns"] == now:
            waiting[rows[begin]["user"]].append(begin)
            show(rows[begin]["user"])
            begin += 1
        while (user := policy.next(now=now / 1e9)) is not None:
            i = waiting[user][0]
            if rows[i]["cpu"] > free:
                break
            waiting[user].popleft()
            free -= rows[i]["cpu"]
            starts[i] = now
            heapq.heappush(running, (now + rows[i]["duration_ns"], i))
            policy.started(user, {"cpu": rows[i]["cpu"]}, now=now / 1e9)
            show(user)
    return starts


@pytest.mark.parametrize(("name", "half_life"), [("fifo", None), ("drf", None), ("sdrf", 86_400.0), ("half-life", 86_400.0)])
def test_another_simulator_with_a_policy_starts_what_a_study_starts(
    jobs: pl.DataFrame, name: str, half_life: float | None
) -> None:
    users = list(dict.fromkeys(jobs["user"]))
    weights = {user: 1 + i % 3 for i, user in enumerate(users)}
    policy = eh.LivePolicy(name, capacity={"cpu": CPUS}, users=weights, half_life=half_life)
    options: dict[str, Any] = {} if half_life is None else {"half_life": "1d"}
    study = eh.study(jobs, policies=[name], capacity={"cpu": CPUS}, scheduler="strict", weights=weights, **options)
    [run] = study.summary["runs"]
    assert simulated(policy, jobs) == study.tasks_of(run["id"])["start_ns"]


def test_wrong_notifications_are_refused() -> None:
    drf = eh.LivePolicy("drf", capacity={"cpu": 4}, users=["ann"])
    drf.started("ann", {"cpu": 3}, now=5)
    assert drf.key("ann", now=5) == 0.75 and drf.next(now=5) is None
    calls: list[tuple[Any, str]] = [
        (lambda: drf.finished("ann", {"cpu": 4}, now=6, started=5), r"found an end of \[4\], expected at most what is held"),
        (lambda: drf.waits("bob", {"cpu": 1}), "found user 'bob', expected one of those"),
        (lambda: drf.waits("ann", {"gpu": 1}), "found resource 'gpu', expected one of: cpu"),
        (lambda: drf.waits("ann", {"cpu": 0.5}), "cpu: found 0.5, expected a whole number"),  # type: ignore[dict-item]
        (lambda: drf.waits("ann", {"cpu": -1}), "cpu: found -1, expected a whole number"),
        (lambda: drf.waits("ann", {"cpu": 1}, submitted=float("nan")), "found the submission NaN, expected seconds"),
        (lambda: drf.next(now=4), "found the time 4 s, expected none before the last one, 5 s"),
        (lambda: drf.next(now=float("inf")), "found the time inf, expected seconds"),
        (lambda: eh.LivePolicy("dfr", capacity={"cpu": 4}, users=["ann"]), 'did you mean "drf"?'),
        (lambda: eh.LivePolicy("sdrf", capacity={"cpu": 4}, users=["ann"]), "sdrf"),
        (lambda: eh.LivePolicy("drf", capacity={"cpu": 0}, users=["ann"]), "the capacity of cpu is 0"),
        (lambda: eh.LivePolicy("drf", capacity={}, users=["ann"]), "found no resource or no user"),
        (lambda: eh.LivePolicy("drf", capacity={"cpu": 4}, users=["ann", "ann"]), "users: found 'ann' twice"),
        (lambda: eh.LivePolicy("drf", capacity={"cpu": 4}, users={"ann": -1}), "weights: "),
    ]
    for call, sentence in calls:
        with pytest.raises(eh.InputError, match=sentence):
            call()
    # As before.
    assert drf.key("ann", now=5) == 0.75
