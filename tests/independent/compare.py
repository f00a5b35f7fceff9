#!/usr/bin/env python3
"""Holds `evenhand study` against the independent simulation in pool.py.

    compare.py EVENHAND --cases 400 [--seed 1] [--first N]     awkward generated traces
    compare.py EVENHAND --trace FILE [--rows 20000] [...]      a real one (.zst needs the zstd tool)

Every task's start must be the same nanosecond, every count the same, every mean within 1e-9
relative. A run may part from the other only at a choice between keys that differ by less than 32
digits of the commitments in them; such runs are counted. Prints the first differences of each case; exit status 1 if there are any.
"""

import argparse
import csv
import json
import math
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import metrics
import pool
import traces

RELATIVE = 1e-9
# Instead of sentences: the runs part where two keys differ by less than any program is asked to see.
HAIR = "a hair"
POLICIES = ["fifo", "drf", "asset", "sdrf"]


def nanoseconds(text):
    """Exactly what a decimal number of seconds says."""
    value = Fraction(text) * pool.NS_PER_S
    assert value.denominator == 1, text
    return value.numerator


def study(evenhand, case, trace_file, folder):
    """Runs the study and returns its summary."""
    out = folder / "out"
    command = [evenhand, "study", str(trace_file), "--from", "sdrf-csv", "--policy", ",".join(POLICIES)]
    command += ["--out", str(out), "--tasks-csv", "--format", "json", "--quiet", "--threads", "1"]
    if case.pool:
        pool_file = folder / "pool.toml"
        pool_file.write_text("[pool]\ncpu = {}\nmem = {}\n".format(*case.pool))
        command += ["--capacity", str(pool_file)]
    else:
        command += ["--capacity", ",".join(case.capacities)]
    if case.half_life:
        command += ["--half-life", case.half_life[0]]
    else:
        command += ["--delta", ",".join(case.deltas)]
    if case.weights:
        weights_file = folder / "weights.csv"
        weights_file.write_text("".join(f"{user},{weight}\n" for user, weight in case.weights.items()))
        command += ["--weights", str(weights_file)]
    command += ["--sdrf-key", "dominant"] if case.dominant_key else []
    command += [] if case.blocking else ["--no-blocking"]
    command += ["--until", "trace-end"] if case.until_trace_end else []
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"exit {done.returncode}: {done.stderr.strip()}\n  {' '.join(command)}")
    summary = json.loads(done.stdout)
    assert summary == json.loads((out / "summary.json").read_text()), "stdout and summary.json differ"
    return out, summary


def expected_runs(case, trace):
    """(policy, capacity, decay) in the order in which a study runs them."""
    if case.pool:
        capacities = [[Fraction(x) for x in case.pool]]
    else:
        capacities = [[Fraction(factor) * r for r in trace.mean_use()] for factor in case.capacities]
    decays = [{"half_life_s": Fraction(case.half_life[1])}] if case.half_life else [{"delta": Fraction(d)} for d in case.deltas]
    for capacity in capacities:
        for policy in POLICIES:
            for decay in decays if policy == "sdrf" else [{}]:
                key = "sdrf-dominant" if policy == "sdrf" and case.dominant_key else policy
                yield policy, key, capacity, decay


def close(ours, theirs):
    if ours is None or theirs is None:
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=RELATIVE, abs_tol=1e-300)


def differences(case, trace, out, summary, undecided):
    """Sentences; runs that cannot be compared are appended to `undecided`."""
    runs = list(expected_runs(case, trace))
    if [r["policy"] for r in summary["runs"]] != [policy for policy, *_ in runs]:
        yield f"runs are {[r['id'] for r in summary['runs']]}"
        return
    weights = [Fraction(case.weights.get(user, "1")) for user in trace.users]
    for (_, key, capacity, decay), record in zip(runs, summary["runs"]):
        starts, ours = pool.run(
            trace, key, capacity, weights, blocking=case.blocking, until_trace_end=case.until_trace_end, **decay
        )
        name = record["id"]
        tasks = list(task_differences(trace, starts, out / f"tasks-{name}.csv", ours["hair_ns"]))
        if HAIR in tasks:
            undecided.append(name)
            continue
        yield from (f"{name}: {text}" for text in tasks)
        yield from (f"{name}: {text}" for text in number_differences(capacity, ours, record))


def task_differences(trace, starts, path, hair):
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if len(rows) != len(starts):
        yield f"{len(rows)} tasks, expected {len(starts)}"
        return
    wrong = []
    for number, (row, start) in enumerate(zip(rows, starts)):
        theirs = nanoseconds(row["start_s"]) if row["start_s"] else None
        if row["state"] == "rejected":
            theirs = "rejected"
        same = theirs == start and row["user"] == trace.users[trace.user[number]]
        if not same or nanoseconds(row["submit_s"]) != trace.submit[number]:
            wrong.append((number, row, start))
    if wrong and hair is not None and all(min(times(row, start)) >= hair for _, row, start in wrong):
        yield HAIR
        return
    for number, row, start in wrong[:1]:
        yield f"{len(wrong)} tasks start elsewhere, first task {number} of {row['user']}: {row['start_s']} s ({row['state']}), expected {start} ns"


def times(row, start):
    """Both start times of a task, as far as it has them."""
    theirs = [nanoseconds(row["start_s"])] if row["start_s"] else []
    return theirs + ([start] if isinstance(start, int) else []) or [math.inf]


def number_differences(capacity, ours, record):
    for user, theirs in zip(ours["users"], record["users"], strict=True):
        for name, value in user.items():
            same = close(value, theirs[name]) if isinstance(value, float) or value is None else value == theirs[name]
            if not same:
                yield f"{name} of {user['name']} is {theirs[name]}, expected {value}"
    for name in ("mean_wait_s", "users_mean_wait_s", "jain_wait", "makespan_s"):
        if not close(ours[name], record[name]):
            yield f"{name} is {record[name]}, expected {ours[name]}"
    for r, name in enumerate(("cpu", "mem")):
        if not close(float(capacity[r]), record["capacity"][name]):
            yield f"capacity of {name} is {record['capacity'][name]}, expected {float(capacity[r])}"
        if not close(ours["utilization"][r], record["utilization"][name]):
            yield f"utilization of {name} is {record['utilization'][name]}, expected {ours['utilization'][r]}"
    yield from metrics.differences(ours["metrics"], record, ["cpu", "mem"], close)


def check(evenhand, case, trace_file=None, keep=None, undecided=None):
    """All differences of one case, as sentences."""
    undecided = [] if undecided is None else undecided
    with tempfile.TemporaryDirectory(prefix="evenhand-independent-") as temporary:
        folder = Path(keep or temporary)
        folder.mkdir(exist_ok=True)
        if trace_file is None:
            trace_file = folder / "trace.csv"
            trace_file.write_text(case.text())
        trace = pool.read_trace(trace_file)
        try:
            out, summary = study(evenhand, case, trace_file, folder)
        except RuntimeError as error:
            return [str(error)]
        return list(differences(case, trace, out, summary, undecided))


def real_trace(path, rows, folder):
    """The first `rows` tasks of a trace, as a file of their own."""
    target = folder / "slice.csv"
    with open(target, "w", encoding="utf-8") as out:
        if path.suffix == ".zst":
            source = subprocess.Popen(["zstd", "-dc", path], stdout=subprocess.PIPE, text=True, encoding="utf-8")
            lines = source.stdout
        else:
            source, lines = None, open(path, encoding="utf-8")
        with lines:
            kept = 0
            for line in lines:
                kept += line[0].isdigit()
                out.write(line)
                if kept == rows:
                    break
        if source:
            source.terminate()
            source.wait()
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("evenhand", help="the program to check")
    parser.add_argument("--cases", type=int, default=0, help="how many generated traces")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="stop after this long")
    parser.add_argument("--threads", type=int, default=1, help="studies run at once")
    parser.add_argument("--keep", help="leave trace and results of a single case in this folder")
    parser.add_argument("--trace", type=Path, help="a real trace instead: seven-column CSV, or .zst of one")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--capacity", default="0.5,1")
    parser.add_argument("--delta", default="0.999999")
    parser.add_argument("--sdrf-key", choices=["sum", "dominant"], default="sum")
    parser.add_argument("--no-blocking", action="store_true")
    parser.add_argument("--until", choices=["finished", "trace-end"], default="finished")
    args = parser.parse_args()
    begun, failed, done, undecided = time.monotonic(), 0, 0, []

    def report(name, found):
        for text in found[:5]:
            print(f"{name}\n  {text}" + (f"\n  and {len(found) - 5} more" if text is found[4:5] else ""), flush=True)

    if args.trace:
        with tempfile.TemporaryDirectory(prefix="evenhand-independent-") as folder:
            file = real_trace(args.trace, args.rows, Path(folder))
            case = traces.Case(
                name=str(args.trace),
                rows=[],
                capacities=args.capacity.split(","),
                deltas=args.delta.split(","),
                dominant_key=args.sdrf_key == "dominant",
                blocking=not args.no_blocking,
                until_trace_end=args.until == "trace-end",
            )
            found = check(args.evenhand, case, file, args.keep, undecided)
            report(case.name, found)
            failed, done = int(bool(found)), 1

    def one(number):
        if time.monotonic() - begun > args.seconds:
            return None
        case = traces.case(args.seed, number)
        return f"seed {args.seed}, case {case.name}", check(args.evenhand, case, keep=args.keep, undecided=undecided)

    with ThreadPoolExecutor(args.threads) as workers:
        for result in workers.map(one, range(args.first, args.first + args.cases)):
            if result is None:
                continue
            done += 1
            failed += bool(result[1])
            report(*result)
    hairs = f", {len(undecided)} runs part at a difference below 32 digits" if undecided else ""
    print(f"{done} compared, {failed} differ{hairs}, {time.monotonic() - begun:.1f} s")
    sys.exit(1 if failed or not done else 0)


if __name__ == "__main__":
    main()
