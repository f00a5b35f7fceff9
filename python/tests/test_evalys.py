"""Job sets of evalys become workloads, and workloads become job sets."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh

with warnings.catch_warnings():
    # Of the libraries that evalys draws with.
    warnings.simplefilter("ignore")
    evalys = pytest.importorskip("evalys.jobset")

COLUMNS = ("submit_ns", "start_ns", "duration_ns", "requested_ns", "user", "cpu")


@pytest.fixture(scope="module")
def workload() -> eh.Workload:
    return eh.generate("metacentrum", tasks=300, users=7, days=5, seed=2)


@pytest.fixture(scope="module")
def job_set(workload: eh.Workload) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return workload.to_evalys()


def test_a_workload_goes_to_evalys_and_back(workload: eh.Workload, job_set: Any) -> None:
    assert isinstance(job_set, evalys.JobSet) and len(job_set.df) == len(workload)
    again = eh.read(job_set)
    assert len(again) == len(workload) and again.users == workload.users
    for column in COLUMNS:
        before, after = workload.table[column] if column in workload.table.columns else None, again.table[column]
        if column == "start_ns" and before is None:
            before = workload.table["submit_ns"]
        assert after == before, column


def test_a_study_of_a_job_set_is_one_of_its_workload(workload: eh.Workload, job_set: Any, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    job_set.to_csv(str(path))
    waits = [
        eh.study(source, policies=["fifo", "drf"], capacity={"cpu": 64}).runs["mean_wait_s"]
        for source in (job_set, path, pathless(workload))
    ]
    assert waits[0] == waits[1] == waits[2]


def pathless(workload: eh.Workload) -> eh.Table:
    """The same tasks, only with processors."""
    return eh.Table.from_columns([(name, workload.table[name]) for name in ("submit_ns", "duration_ns", "user", "cpu")])


def test_what_is_no_job_set_is_refused() -> None:
    class Broken:
        df = None

        def to_csv(self, filename: str) -> None:
            raise AttributeError("no data")

    with pytest.raises(eh.InputError, match=r"the JobSet cannot be written: AttributeError\('no data'\)"):
        eh.read(Broken())

    class Empty(Broken):
        def to_csv(self, filename: str) -> None:
            Path(filename).write_text("job_id,submission_time\n")

    with pytest.raises(eh.InputError, match="jobs.csv"):
        eh.read(Empty())
