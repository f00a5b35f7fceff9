"""A grid of settings gives the numbers of studies, and the best of them."""

from __future__ import annotations

from typing import Any

import pytest

import evenhand as eh


@pytest.fixture(scope="module")
def workload() -> eh.Workload:
    return eh.generate(tasks=600, users=8, days=1, seed=5)


def test_points_are_those_of_studies(workload: eh.Workload) -> None:
    tuning = eh.tune(workload, policies=["fifo", "sdrf"], settings={"half_life": ["1h", "1d"]}, capacity=0.5)
    assert tuning.points["policy"] == ["fifo", "sdrf", "sdrf"]
    assert tuning.points["half-life"] == [None, "1h", "1d"]
    waits = [
        eh.study(workload, policies=[policy], capacity=0.5, tasks=False, **options).runs["users_mean_wait_s"][0]
        for policy, options in (("fifo", {}), ("sdrf", {"half_life": "1h"}), ("sdrf", {"half_life": "1d"}))
    ]
    assert tuning.points["users_mean_wait_s"] == waits
    assert tuning.best["users_mean_wait_s"] == min(waits)
    assert tuning.best_row == waits.index(min(waits))


def test_more_is_better_for_some_metrics(workload: eh.Workload) -> None:
    policies = ["fifo", "drf", "sdrf"]
    tuning = eh.tune(workload, policies=policies, capacity=0.5, metric="jain_wait")
    assert not tuning.lowest
    assert tuning.best["jain_wait"] == max(tuning.points["jain_wait"])
    most = eh.tune(workload, policies=policies, capacity=0.5, metric="jain_wait", lowest=True)
    assert most.best["jain_wait"] == min(tuning.points["jain_wait"])


def test_the_best_is_checked_on_other_jobs(workload: eh.Workload) -> None:
    tuning = eh.tune(workload, policies=["fifo", "sdrf"], settings={"sdrf_key": ["dominant"]}, capacity={"cpu": 2, "mem": 1})
    study = tuning.check(eh.generate(tasks=300, users=5, days=1, seed=6), against="fifo")
    expected = ["fifo"] if tuning.best["policy"] == "fifo" else ["fifo", "sdrf"]
    assert study.runs["policy"] == expected
    assert tuning.check(workload, against="drf").runs["policy"][0] == "drf"


def test_an_option_for_all_points(workload: eh.Workload) -> None:
    waiting = eh.tune(workload, policies=["drf"], capacity=0.5, no_blocking=True)
    study = eh.study(workload, policies=["drf"], capacity=0.5, no_blocking=True)
    assert waiting.points["mean_wait_s"] == study.runs["mean_wait_s"]


def test_a_text_is_one_value(workload: eh.Workload) -> None:
    tuning = eh.tune(workload, policies="sdrf", settings={"half_life": "1h"}, capacity=0.5)
    assert tuning.points["half-life"] == ["1h"]


class Own:
    def key(self, view: eh.View) -> Any:
        return view.submitted


def test_bad_grids_are_typed_errors(workload: eh.Workload) -> None:
    with pytest.raises(eh.InputError, match="at least one name"):
        eh.tune(workload, policies=[])
    with pytest.raises(eh.InputError, match='did you mean "drf"'):
        eh.tune(workload, policies=["dfr"], capacity=0.5)
    with pytest.raises(eh.InputError, match="metric: found 'waits', expected one of: .*users_mean_wait_s"):
        eh.tune(workload, policies=["drf"], capacity=0.5, metric="waits")
    with pytest.raises(eh.InputError, match="until: found in settings and as an option"):
        eh.tune(workload, policies=["drf"], settings={"until": ["finished"]}, until="finished")
    with pytest.raises(eh.InputError, match="policies: found Own, a policy of your own, which cannot be tuned"):
        eh.tune(workload, policies=["drf", Own], capacity=0.5)  # type: ignore[list-item]
    with pytest.raises(eh.InputError, match="settings: half_life: found {'a': 1}, expected a value or a list"):
        eh.tune(workload, policies=["sdrf"], settings={"half_life": {"a": 1}}, capacity=0.5)  # type: ignore[dict-item]
    with pytest.raises(eh.InputError, match="weights: found {'ann': 1}, expected a text or a number"):
        eh.tune(workload, policies=["sdrf"], weights={"ann": 1}, capacity=0.5)  # type: ignore[arg-type]
    with pytest.raises(eh.InputError, match="capacity: found 2, expected one"):
        eh.tune(workload, policies=["drf"], capacity=[0.5, 1])  # type: ignore[arg-type]


def test_a_grid_needs_a_capacity(workload: eh.Workload) -> None:
    with pytest.raises(eh.InputError, match="capacity: found none, expected one, such as 0.5"):
        eh.tune(workload, policies=["drf"])
