"""Policies written in Python: they decide as those of the program do, and their errors are exceptions."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh


class PyDrf:
    """Lowest dominant share over weight, at every decision."""

    name = "py-drf"

    def key(self, view: eh.View) -> Any:
        return view.shares.max(axis=1) / view.weight


class UserDrf:
    """The same, of the users who changed."""

    def user_key(self, view: eh.View) -> Any:
        return view.shares.max(axis=1) / view.weight


class NextDrf:
    """The same, as the next user."""

    def next(self, view: eh.View) -> int:
        key = view.shares.max(axis=1) / view.weight
        tied = np.flatnonzero(key <= key.min() * (1 + 1e-14))
        order = np.lexsort((view.position[tied], view.submitted[tied]))
        return int(view.users[tied[order[0]]])


class Fifo:
    """Earliest submission."""

    name = "py-fifo"

    def key(self, view: eh.View) -> list[float]:
        return list(view.submitted)


def starts(study: eh.Study, policy: str) -> dict[str, list[Any]]:
    return {
        record["id"].removeprefix(policy): study.tasks_of(record["id"])["start_ns"]
        for record in study.summary["runs"]
        if record["policy"] == policy
    }


@pytest.mark.parametrize("options", [{}, {"scheduler": "easy"}, {"no_blocking": True}], ids=str)
def test_drf_in_python_equals_the_built_in_in_every_start(workload: eh.Workload, options: Any) -> None:
    weights = {user: 1 + i % 3 for i, user in enumerate(workload.users)}
    policies = ["drf", "fifo", PyDrf, UserDrf, NextDrf(), Fifo]
    study = eh.study(workload, policies=policies, capacity=[0.4, 0.7], weights=weights, **options)
    expected = starts(study, "drf")
    assert len(expected) == 2 and expected != starts(study, "fifo")
    for name in ("py-drf", "user-drf", "next-drf"):
        assert starts(study, name) == expected, name
    assert starts(study, "py-fifo") == starts(study, "fifo")


def test_drawn_ties_are_those_of_the_built_in(workload: eh.Workload) -> None:
    study = eh.study(workload, policies=["drf", "fifo", PyDrf, UserDrf], capacity=0.5, repeat=5, tasks=False)
    for name in ("py-drf", "user-drf"):
        found = study.compare(name)
        assert found.noise is not None and found.users_same == len(found.users) > 0
        assert all(noise == {"mean": 0.0, "interval": [0.0, 0.0]} for key, noise in found.noise.items() if key.endswith("_s"))
        for column in ("difference_low_s", "difference_high_s"):
            assert set(found.users[column]) == {0.0}
    runs = {row["policy"]: row["noise_users_mean_wait_s_mean"] for row in study.runs}
    assert runs["drf"] == runs["py-drf"] == runs["user-drf"] != runs["fifo"]
    assert study.runs["noise_users_mean_wait_s_low"][0] < study.runs["noise_users_mean_wait_s_high"][0]


def test_repeats_by_default_take_into_account_that_python_is_slow() -> None:
    workload = eh.generate(tasks=20_000, users=20, days=20, seed=3)
    fast = eh.study(workload, policies=["drf", "fifo"], capacity=0.5, tasks=False)
    assert fast.summary["repeats"]["asked"] == 10
    slow = eh.study(workload, policies=["drf", PyDrf], capacity=0.5, tasks=False)
    assert "repeats" not in slow.summary
    assert eh.study(workload, policies=["drf", PyDrf], capacity=0.5, tasks=False, repeat=2).summary["repeats"]["asked"] == 2


def test_every_run_has_an_object_of_its_own(workload: eh.Workload) -> None:
    class Counts:
        def __init__(self) -> None:
            self.decisions = 0
            made.append(self)

        def prepare(self, view: eh.View) -> None:
            assert view.resources == ["cpu", "mem"] and len(view) == 0
            self.prepared = True

        def key(self, view: eh.View) -> Any:
            assert self.prepared
            self.decisions += 1
            assert len(view) == len(view.users) == len(view.demand) == len(view.requested) > 0
            assert view.shares.shape == view.demand.shape == (len(view), 2)
            assert (view.submitted <= view.now).all()
            return view.submitted

    made: list[Counts] = []
    study = eh.study(workload, policies=Counts, capacity=[0.4, 0.7], tasks=False)
    assert sorted(c.decisions for c in made) == sorted(run["decisions"] for run in study.summary["runs"]) or len(made) == 2
    given = Counts()
    eh.study(workload, policies=given, capacity=0.4, tasks=False)
    assert given.decisions == 0


class Raises:
    def key(self, view: eh.View) -> Any:
        raise ZeroDivisionError("of mine")


class NotANumber:
    def key(self, view: eh.View) -> Any:
        return np.full(len(view), np.nan)


class TooFew:
    def user_key(self, view: eh.View) -> Any:
        return np.zeros(len(view) + 1)


class Matrix:
    def key(self, view: eh.View) -> Any:
        return view.shares


class Texts:
    def key(self, view: eh.View) -> Any:
        return ["a"] * len(view)


class Stranger:
    def next(self, view: eh.View) -> int:
        return 99_999


class Negative:
    def next(self, view: eh.View) -> int:
        return -1


class Word:
    def next(self, view: eh.View) -> Any:
        return "ann"


class Unmade:
    def __init__(self) -> None:
        raise OSError("no model")

    def next(self, view: eh.View) -> int:
        return 0


FAILURES = [
    (Raises, ZeroDivisionError, "ZeroDivisionError: of mine"),
    (NotANumber, ValueError, "key returned NaN for user"),
    (TooFew, ValueError, "user_key returned 2 keys, expected 1, one for each user of the view"),
    (Matrix, TypeError, "key returned an array of another shape"),
    (Texts, ValueError, "could not convert string to float"),
    (Stranger, ValueError, "next returned user 99999, who does not wait, expected one of"),
    (Negative, ValueError, "next returned user -1, who does not wait"),
    (Word, TypeError, "next returned 'ann', expected the number of a waiting user"),
    (Unmade, OSError, "no model"),
]


@pytest.mark.parametrize(("policy", "cause", "sentence"), FAILURES, ids=lambda value: getattr(value, "__name__", "-"))
def test_a_policy_that_fails_is_an_exception(workload: eh.Workload, policy: Any, cause: Any, sentence: str) -> None:
    for _ in range(2):
        with pytest.raises(eh.PolicyError) as caught:
            eh.study(workload, policies=["fifo", policy], capacity=[0.5, 0.8])
        assert sentence in str(caught.value)
        assert str(caught.value).startswith("the policy ")
        assert isinstance(caught.value.__cause__, cause)
    # The interpreter and the engine go on.
    assert len(eh.study(workload, policies=["fifo", PyDrf], capacity=0.5, tasks=False).runs) == 2


def test_what_is_no_policy_is_refused(workload: eh.Workload) -> None:
    class Both(Raises):
        def next(self, view: eh.View) -> int:
            return 0

    class Named(PyDrf):
        name = "a, b"

    class Drf(PyDrf):
        name = "drf"

    for policy, sentence in [
        (object(), "object has none of the methods key, user_key, next"),
        (Both, "Both has key and next of the methods"),
        (Named, "Named has the name 'a, b', expected letters"),
        (Drf, 'two policies called "drf"'),
    ]:
        with pytest.raises(eh.InputError, match=sentence):
            eh.study(workload, policies=[policy], capacity=0.5)  # type: ignore[list-item]


def test_a_policy_that_changed_is_run_again(workload: eh.Workload, tmp_path: Path) -> None:
    class Mine(Fifo):
        name = "mine"

    eh.study(workload, policies=["fifo", Mine], capacity=0.5, out=tmp_path)

    class Changed(PyDrf):
        name = "mine"

    study = eh.study(workload, policies=["fifo", Changed], capacity=0.5, out=tmp_path)
    drf = eh.study(workload, policies=["drf"], capacity=0.5)
    assert study.tasks_of("mine-0.5")["start_ns"] == drf.tasks_of("drf-0.5")["start_ns"]


def test_a_slow_policy_is_stopped_by_ctrl_c() -> None:
    import _thread
    import signal
    import threading

    class Slow(Fifo):
        name = "slow"

        def key(self, view: eh.View) -> list[float]:
            begun.set()
            time.sleep(0.001)
            return super().key(view)

    begun = threading.Event()

    def interrupt() -> None:
        begun.wait()
        _thread.interrupt_main()

    # A shell starts background jobs with SIGINT ignored, and Python then leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            eh.study(eh.generate(tasks=100_000, users=20, days=5), policies=[Slow], capacity=0.5, tasks=False)
    finally:
        signal.signal(signal.SIGINT, before)
