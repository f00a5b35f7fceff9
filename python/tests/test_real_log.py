"""A real log gives the number that other simulators give."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import evenhand as eh

LOG = Path(__file__).parents[3] / "shared" / "data" / "swf" / "KTH-SP2-1996-2.1-cln.swf.zst"


@pytest.mark.skipif(not LOG.exists(), reason=f"{LOG.name} is not here")
def test_fifo_on_kth_has_the_mean_wait_of_accasim_and_batsim() -> None:
    """Jobs with a run time, on 100 processors, in strict order: AccaSim and Batsim have 389,861.06 s."""
    log = pl.DataFrame(eh.read(LOG, processors="requested"))
    jobs = log.filter(pl.col("duration_ns") > 0).select("submit_ns", "duration_ns", "user", "cpu")
    assert jobs.height < log.height
    study = eh.study(jobs, policies=["fifo"], capacity={"cpu": 100}, scheduler="strict")
    [run] = study.summary["runs"]
    assert run["mean_wait_s"] == pytest.approx(389_861.06, abs=0.005)
