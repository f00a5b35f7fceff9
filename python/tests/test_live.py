"""Policies of the program in a simulator of the test's own: they decide as in a study."""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

import polars as pl
import pytest

import evenhand as eh
from evenhand._commands import run_json

CPUS = 40


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    """Whole processors, of which a pool of 40 is scarce."""
    table = pl.DataFrame(eh.generate("metacentrum", tasks=600, users=9, days=3, seed=4))
    # From the run time to three times as much.
    requested = pl.col("duration_ns") * (1 + pl.int_range(pl.len()) % 3)
    cpus = pl.col("cpu").clip(1, CPUS).cast(pl.Int64)
    return table.select("submit_ns", "duration_ns", requested.alias("requested_ns"), "user", cpus)


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
        requested = row["requested_ns"] / 1e9
        policy.waits(user, {"cpu": row["cpu"]}, submitted=row["submit_ns"] / 1e9, position=position, requested=requested)

    while begin < len(rows) or running:
        now = min([row["submit_ns"] for row in rows[begin : begin + 1]] + [end for end, _ in running[:1]])
        while running and running[0][0] == now:
            _, i = heapq.heappop(running)
            free += rows[i]["cpu"]
            user, demand, requested = rows[i]["user"], {"cpu": rows[i]["cpu"]}, rows[i]["requested_ns"] / 1e9
            policy.finished(user, demand, now=now / 1e9, started=starts[i] / 1e9, requested=requested)
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


POLICIES = [policy["name"] for policy in run_json(["policies"])[1]]


@pytest.mark.parametrize("options", [{}, {"half_life": "1d"}], ids=str)
@pytest.mark.parametrize("name", POLICIES)
def test_another_simulator_with_a_policy_starts_what_a_study_starts(
    jobs: pl.DataFrame, name: str, options: dict[str, Any]
) -> None:
    users = list(dict.fromkeys(jobs["user"]))
    weights = {user: 1 + i % 3 for i, user in enumerate(users)}
    policy = eh.LivePolicy(name, capacity={"cpu": CPUS}, users=weights, **options)
    study = eh.study(jobs, policies=[name], capacity={"cpu": CPUS}, scheduler="strict", weights=weights, **options)
    [run] = study.summary["runs"]
    assert simulated(policy, jobs) == study.tasks_of(run["id"])["start_ns"]


@pytest.mark.parametrize("name", ["cpu-time", "penalty"])
def test_running_tasks_are_charged_what_they_requested(name: str) -> None:
    policy = eh.LivePolicy(name, capacity={"cpu": 2}, users=["ann", "eve", "bob"], half_life=86_400)
    policy.waits("ann", {"cpu": 1}, submitted=0, requested=3600)
    policy.waits("eve", {"cpu": 1}, submitted=0, position=1, requested=2)
    for user in ("ann", "eve"):
        policy.started(user, {"cpu": 1}, now=0)
        policy.waits(user, None)
    policy.waits("ann", {"cpu": 1}, submitted=1, requested=60)
    policy.waits("bob", {"cpu": 1}, submitted=2, requested=60)
    policy.finished("eve", {"cpu": 1}, now=2, started=0)
    assert policy.next(now=2) == "bob"
    assert policy.key("ann", now=2) > 1000 > policy.key("eve", now=2) > 0
    # Two tasks that started together: the end takes back the charge of the one that ended.
    policy.started("bob", {"cpu": 1}, now=2, requested=10)
    policy.started("bob", {"cpu": 1}, now=2, requested=7200)
    policy.finished("bob", {"cpu": 1}, now=2, started=2, requested=7200)
    few = policy.key("bob", now=2)
    policy.finished("bob", {"cpu": 1}, now=2, started=2)
    assert 0 == policy.key("bob", now=2) < few < 100


def test_defaults_are_those_of_a_study() -> None:
    def key(**options: Any) -> float:
        policy = eh.LivePolicy("half-life", capacity={"cpu": 2}, users=["ann", "bob"], **options)
        policy.started("ann", {"cpu": 1}, now=0)
        policy.finished("ann", {"cpu": 1}, now=50_000, started=0)
        return policy.key("ann", now=400_000)

    assert key() == key(delta=0.999999) == key(delta="0.999999") != key(delta=0.99999)
    assert key(half_life="1d") == key(half_life=86_400) == key(half_life=86_400.0) != key()


def test_wrong_notifications_are_refused() -> None:
    drf = eh.LivePolicy("drf", capacity={"cpu": 4}, users=["ann"])
    drf.started("ann", {"cpu": 3}, now=5)
    assert drf.key("ann", now=5) == 0.75 and drf.next(now=5) is None
    calls: list[tuple[Any, str]] = [
        (lambda: drf.finished("ann", {"cpu": 4}, now=6, started=5), r"found an end of \[4\], expected .*at most what is held, \[3\]"),
        (lambda: drf.waits("bob", {"cpu": 1}), "found user 'bob', expected one of those"),
        (lambda: drf.waits("ann", {"gpu": 1}), "found resource 'gpu', expected one of: cpu"),
        (lambda: drf.waits("ann", {"cpu": 0.5}), "cpu: found 0.5, expected a whole number"),  # type: ignore[dict-item]
        (lambda: drf.waits("ann", {"cpu": -1}), "cpu: found -1, expected a whole number"),
        (lambda: drf.waits("ann", {"cpu": 1}, submitted=float("nan")), "found the submission NaN, expected seconds"),
        (lambda: drf.next(now=4), "found the time 4 s, expected none before the last one, 5 s"),
        (lambda: drf.next(now=float("inf")), "found the time inf, expected seconds"),
        (lambda: eh.LivePolicy("dfr", capacity={"cpu": 4}, users=["ann"]), 'did you mean "drf"?'),
        (lambda: drf.finished("ann", {"cpu": 1}, now=6, started=5), "expected that of a task that runs"),
        (lambda: drf.finished("ann", {"cpu": 3}, now=6, started=5, requested=9), r"\[3\] that requested 9 s, expected"),
        (lambda: drf.waits("ann", {"cpu": 1}, position=-1), "position: found -1, expected a whole number of at least 0"),
        (lambda: eh.LivePolicy("sdrf", capacity={"cpu": 4}, users=["ann"], half_life="8x"), "half_life 8x: .*8d"),
        (lambda: eh.LivePolicy("sdrf", capacity={"cpu": 4}, users=["ann"], half_life=0), "the half-life is 0"),
        (lambda: eh.LivePolicy("sdrf", capacity={"cpu": 4}, users=["ann"], half_life=True), "half_life: found True"),
        (lambda: eh.LivePolicy("sdrf", capacity={"cpu": 4}, users=["ann"], delta=2), "delta is 2, expected"),
        (
            lambda: eh.LivePolicy("sdrf", capacity={"cpu": 4}, users=["ann"], delta=0.9, half_life="1d"),
            "found delta and half_life",
        ),
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


@pytest.mark.parametrize("name", ["cpu-time", "penalty"])
def test_processors_are_charged_wherever_they_stand(name: str) -> None:
    def key(capacity: dict[str, int]) -> float:
        policy = eh.LivePolicy(name, capacity=capacity, users=["ann"], half_life="1d")
        policy.started("ann", {"cpu": 1, "mem": 1}, now=0, requested=100)
        return policy.key("ann", now=0)

    assert key({"mem": 1000, "cpu": 2}) == key({"cpu": 2, "mem": 1000}) == 100
