"""Loads a CSV that `export --to evalys-csv` wrote into evalys and draws it.

    pip install evalys pandas
    python evalys_load.py JOBS.csv OUT.png

Drawing takes a minute for ten thousand jobs: give it a few hundred. Prints `ok` if evalys accepts the file, agrees with it, and draws it.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from evalys.jobset import JobSet


def main(jobs_csv: str, out_png: str) -> None:
    raw = pd.read_csv(jobs_csv)
    jobs = JobSet.from_csv(jobs_csv)
    assert len(jobs.df) == len(raw) > 0, "every job is there"
    # One allocated processor for each requested one, and never two jobs on one processor.
    assert (jobs.df.proc_alloc == jobs.df.requested_number_of_resources).all(), "processors as requested"
    events = []
    for job in jobs.df.itertuples():
        if job.finish_time > job.starting_time:
            events += [(job.starting_time, 1, job.allocated_resources), (job.finish_time, 0, job.allocated_resources)]
    used = set()
    for _, begins, processors in sorted(events, key=lambda e: e[:2]):
        processors = set(processors)
        if begins:
            assert not used & processors, "no processor runs two jobs"
            used |= processors
        else:
            used -= processors
    assert jobs.utilisation.load.max() <= jobs.MaxProcs, "no more is used than there is"
    jobs.plot(with_details=True)
    plt.savefig(out_png)
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
