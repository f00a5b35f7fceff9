"""A simulated schedule against the starts that the log itself has.

    starts.py LOG.swf TASKS.csv [--edges 2,9,33] [--processors 128]

LOG.swf is a Standard Workload Format log with waits (`evenhand workload export WORKLOAD --to swf` writes one), TASKS.csv
what `evenhand study --tasks-csv` leaves of a run on it. Rows are matched by their place in the order of submission, and
submission and run time must agree. With --processors it also says for how long, by its own starts, the log ran more than that:
what no simulation on that machine can do.
"""

import argparse
import csv
import statistics


def jobs_of(path):
    """(submission, wait, run time, processors) by submission, ties as in the file; without a run time: none."""
    jobs = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith(";") or not line.strip():
                continue
            fields = line.split()
            submit, wait, run, used, asked = (float(fields[i]) for i in (1, 2, 3, 4, 7))
            if run >= 0:
                jobs.append((submit, wait, run, used if used > 0 else asked))
    jobs.sort(key=lambda job: job[0])
    return jobs


def ranks(values):
    """Places from 0, the mean place for equal values."""
    order = sorted(range(len(values)), key=values.__getitem__)
    places = [0.0] * len(values)
    first = 0
    while first < len(order):
        end = first
        while end < len(order) and values[order[end]] == values[order[first]]:
            end += 1
        for at in order[first:end]:
            places[at] = (first + end - 1) / 2
        first = end
    return places


def correlation(a, b):
    """Pearson's; nothing if one is constant."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return float("nan")
    return statistics.correlation(a, b)


def percentile(ordered, part):
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def slowdown(waits, runs):
    """Mean bounded slowdown, threshold 10 s."""
    return statistics.fmean(max(1.0, (w + r) / max(10.0, r)) for w, r in zip(waits, runs))


def over(jobs, processors):
    """Part of the time in which the log's jobs together hold more than `processors`, and the most they hold."""
    events = sorted(
        event for submit, wait, run, size in jobs if wait >= 0 for event in ((submit + wait, size), (submit + wait + run, -size))
    )
    held = most = above = 0.0
    last = first = events[0][0]
    for time, change in events:
        if held > processors:
            above += time - last
        held, last = held + change, time
        most = max(most, held)
    return above / (last - first), most


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("log")
    arguments.add_argument("tasks")
    arguments.add_argument("--edges", default="2,9,33", help="where classes of processors begin, after 1")
    arguments.add_argument("--processors", type=float, help="how many the machine has")
    arguments = arguments.parse_args()
    jobs = jobs_of(arguments.log)
    with open(arguments.tasks, encoding="utf-8", newline="") as file:
        tasks = list(csv.DictReader(file))
    assert len(jobs) == len(tasks), f"{len(jobs)} jobs in the log, {len(tasks)} in the run"
    pairs, lacking = [], 0
    for job, task in zip(jobs, tasks):
        assert abs(job[0] - float(task["submit_s"])) < 1 and abs(job[2] - float(task["duration_s"])) < 1, (job, task)
        if task["wait_s"] == "" or job[1] < 0:
            lacking += 1
        else:
            pairs.append((job, float(task["wait_s"])))
    real = [job[1] for job, _ in pairs]
    ours = [wait for _, wait in pairs]
    runs = [job[2] for job, _ in pairs]
    late = sorted(o - r for o, r in zip(ours, real))
    n = len(pairs)
    part = lambda holds: 100 * sum(map(holds, late)) / n
    print(f"{n} jobs compared, {lacking} without a start in either")
    for name, waits in (("log", real), ("run", ours)):
        print(
            f"{name}: mean wait {statistics.fmean(waits):.0f} s, median {statistics.median(waits):.0f} s, "
            f"bounded slowdown {slowdown(waits, runs):.1f}"
        )
    print(f"within a minute {part(lambda d: abs(d) <= 60):.0f} %, within an hour {part(lambda d: abs(d) <= 3600):.0f} %,",
          f"more than an hour earlier {part(lambda d: d < -3600):.0f} %, later {part(lambda d: d > 3600):.0f} %")
    print("run less log, percentiles 5, 25, 50, 75, 95:", ", ".join(f"{percentile(late, p):.0f}" for p in (0.05, 0.25, 0.5, 0.75, 0.95)))
    print(f"correlation of waits {correlation(real, ours):.2f}, of their ranks {correlation(ranks(real), ranks(ours)):.2f}")
    end = lambda waits: max(job[0] + wait + job[2] for (job, _), wait in zip(pairs, waits))
    print(f"last job finishes {end(ours) - end(real):.0f} s after the log's")
    if arguments.processors:
        above, most = over(jobs, arguments.processors)
        print(f"the log itself holds more than {arguments.processors:.0f} processors for {100 * above:.2f} % of the time, at most {most:.0f}")
    edges = [1.0, *map(float, arguments.edges.split(",")), float("inf")]
    for low, high in zip(edges, edges[1:]):
        of = [(job[1], wait) for job, wait in pairs if low <= max(job[3], 1) < high]
        if of:
            print(f"processors {low:.0f} to {high - 1:.0f}: {len(of)} jobs, mean wait run {statistics.fmean(w for _, w in of):.0f} s, log {statistics.fmean(w for w, _ in of):.0f} s")


if __name__ == "__main__":
    main()
