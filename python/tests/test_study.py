"""Studies equal those of the program."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from conftest import evenhand, without_times
from evenhand.__main__ import program

import evenhand as eh


def test_a_study_writes_what_the_program_writes_byte_by_byte(workload: eh.Workload, tmp_path: Path) -> None:
    stored = workload.store(tmp_path / "w.parquet")
    ours = eh.study(stored, policies=["fifo", "drf", "sdrf"], capacity=[0.5, 0.8], out=tmp_path / "ours", half_life="8d")
    theirs = tmp_path / "theirs"
    options = ["--policy=fifo,drf,sdrf", "--capacity=0.5,0.8", "--half-life=8d"]
    done = evenhand("study", stored.path, *options, "--out", theirs)
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in theirs.iterdir() if path.is_file())
    assert names == sorted(path.name for path in ours.folder.iterdir() if path.is_file())
    same = [name for name in names if name.endswith((".csv", ".parquet"))]
    assert len(same) >= 6 + 2
    for name in same:
        assert (theirs / name).read_bytes() == (ours.folder / name).read_bytes(), name
    summary = json.loads((theirs / "summary.json").read_text())
    assert without_times(ours.summary) == without_times(summary)
    # The program's table, but for the last column: tasks a second.
    lines = [line.rsplit(maxsplit=1)[0] for line in str(ours).splitlines() if line.startswith(("0.5 R", "0.8 R"))][:6]
    assert lines == [line.rsplit(maxsplit=1)[0] for line in done.stdout.splitlines() if line.startswith(("0.5 R", "0.8 R"))][:6]
    assert len(lines) == 6
    assert ours.summary["method"]["command"].startswith("evenhand study ")


def test_tables_have_a_row_for_each_run_user_and_task(study: eh.Study, workload: eh.Workload) -> None:
    assert study.runs["run"] == ["fifo-0.5", "drf-0.5", "fifo-0.8", "drf-0.8"]
    assert study.runs["mean_wait_s"] == [run["mean_wait_s"] for run in study.summary["runs"]]
    assert study.runs["capacity_cpu"][0] == study.summary["runs"][0]["capacity"]["cpu"]
    users = study.summary["workload"]["users"]
    assert len(study.users) == 4 * users
    assert study.users["user"][:users] == [user["name"] for user in study.summary["runs"][0]["users"]]
    assert study.users["submitted"][:users] == [user["submitted"] for user in study.summary["runs"][0]["users"]]
    tasks = study.tasks_of("drf-0.8")
    assert len(study.tasks) == 4 * len(tasks) == 4 * len(workload)
    waits = [wait for wait in tasks["wait_ns"] if wait is not None]
    assert sum(waits) / len(waits) / 1e9 == pytest.approx(study.summary["runs"][3]["mean_wait_s"])


def test_a_comparison_agrees_with_the_program_s(study: eh.Study) -> None:
    for record in study.summary["comparisons"]:
        policy, capacity = record["run"].split("-")
        found = study.compare(policy, against="fifo", capacity=capacity)
        counts = (found.users_better, found.users_worse, found.users_same)
        assert counts == (record["users_better"], record["users_worse"], record["users_same"])
        assert len(found.users) == sum(counts) > 0
    with pytest.raises(eh.InputError, match=r"several, expected one of: 0.5, 0.8"):
        study.compare("drf")
    with pytest.raises(eh.InputError, match=r"no run of sdrf at capacity 0.5, expected one of: fifo at 0.5"):
        study.compare("sdrf", capacity=0.5)


def test_a_comparison_names_the_run_it_means(workload: eh.Workload) -> None:
    study = eh.study(workload, policies=["fifo", "sdrf"], capacity=[0.5, 0.8], half_life=["1h", "1d"], tasks=False, repeat=1)
    waits = {run["id"]: [user["mean_wait_s"] for user in run["users"]] for run in study.summary["runs"]}
    assert "sdrf-0.5-1h" in waits
    found = study.compare("sdrf", capacity=0.5, half_life="1d")
    assert (found.run, found.against_run, found.users["mean_wait_s"]) == ("sdrf-0.5-1d", "fifo-0.5", waits["sdrf-0.5-1d"])
    assert study.compare("sdrf-0.5-1d").users["difference_s"] == found.users["difference_s"]
    two = study.compare("sdrf-0.5-1h", against="sdrf-0.5-1d")
    assert two.users["against_mean_wait_s"] == waits["sdrf-0.5-1d"] != waits["sdrf-0.5-1h"]
    assert two.noise is None and "difference_low_s" not in two.users.columns
    for options, sentence in (
        ({"policy": "sdrf"}, "sdrf has 2 runs at capacity 0.5, .*half_life or delta, .*one of: sdrf-0.5-1h, sdrf-0.5-1d"),
        ({"policy": "sdrf", "half_life": "8d"}, "half_life: found '8d', expected one of the study's: 1h, 1d"),
        ({"policy": "sdrf", "half_life": "1d", "delta": 0.9}, "found half_life and delta"),
        ({"policy": "sdrf-0.8-1h", "against": "fifo-0.5"}, "runs sdrf-0.8-1h and fifo-0.5 have different capacities"),
    ):
        with pytest.raises(eh.InputError, match=sentence):
            study.compare(**{"capacity": 0.5, **options})  # type: ignore[arg-type]


def test_repeats_have_intervals_in_tables(workload: eh.Workload) -> None:
    study = eh.study(workload, policies=["fifo", "drf"], capacity=0.5, repeat=4, tasks=False)
    lines = (study.folder / "users.csv").read_text().splitlines()
    header, *rows = [line.split(",") for line in lines]
    for name in ("wait_low_s", "wait_high_s", "difference_low_s", "difference_high_s", "beyond_noise"):
        at = header.index(name)
        texts = ["" if value is None else value for value in study.users[name]]
        theirs = [row[at] if row[at] in ("", "true", "false") else float(row[at]) for row in rows]
        assert [str(value).lower() if isinstance(value, bool) else value for value in texts] == theirs, name
    found = study.compare("drf")
    [record] = study.summary["comparisons"]
    assert found.noise == record["noise"]
    assert found.users_better_beyond_noise == record["users_better_beyond_noise"]
    assert sum(found.users["beyond_noise"]) == found.users_better_beyond_noise + record["users_worse_beyond_noise"]
    assert found.users["difference_low_s"] == study.users["difference_low_s"][len(found.users) :]
    # The program has none of the reverse.
    assert study.compare("fifo", against="drf").noise is None


def test_records_have_no_temporary_paths() -> None:
    def summary() -> dict[str, Any]:
        workload = eh.generate(tasks=300, users=3, days=1, seed=2)
        weights = {user: 1 + i for i, user in enumerate(workload.users)}
        pools: list[Any] = [{"cpu": 0.2, "mem": 0.3}, 0.5, {"cpu": 1, "mem": "1"}]
        study = eh.study(workload, policies=["fifo", "drf"], capacity=pools, weights=weights)
        page = (study.folder / "index.html").read_text()
        assert "tmp" not in study.summary["method"]["command"] and "/evenhand-" not in page
        for run in study.summary["runs"]:
            del run["elapsed_s"]
        return study.summary

    first = summary()
    assert first == summary()
    assert first["workload"]["source"] == "generated like google2011: 300 tasks of 3 users over 1 days, seed 2"
    users = eh.generate(tasks=300, users=3, days=1, seed=2).users
    parameters = dict(map(tuple, first["method"]["parameters"]))
    assert parameters["weights"] == ", ".join(f"{user} = {i}" for i, user in enumerate(users, 1))
    assert parameters["capacities"] == "cpu=0.2,mem=0.3, 0.5, cpu=1,mem=1"
    assert first["method"]["command"] == (
        "evenhand workload generate --like=google2011 --tasks=300 --users=3 --days=1 --seed=2 --output=workload.parquet"
        " && evenhand study --list-all-users workload.parquet --capacity=cpu=0.2,mem=0.3,0.5,cpu=1,mem=1 --policy=fifo,drf"
        " --weights=weights.toml --out=evenhand-study"
    )
    jobs = eh.Table.from_columns([("submit", [0]), ("duration", [5]), ("user", ["ann"]), ("cpu", [1])])
    assert eh.study(jobs, policies="drf", capacity={"cpu": 1}).summary["workload"]["source"] == "a table in Python"


def test_the_recorded_command_repeats_the_study(tmp_path: Path) -> None:
    workload = eh.generate(tasks=300, users=3, days=1, seed=2)
    ours = eh.study(workload, policies=["fifo", "drf"], capacity=[{"cpu": 0.2, "mem": 0.3}, 0.5])
    command = ours.summary["method"]["command"].replace("evenhand ", f"{shlex.quote(str(program()))} ")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    theirs = json.loads((tmp_path / "evenhand-study" / "summary.json").read_text())
    assert [run["mean_wait_s"] for run in theirs["runs"]] == ours.runs["mean_wait_s"]


def test_tasks_as_csv_are_named(workload: eh.Workload) -> None:
    study = eh.study(workload, policies="fifo", capacity=0.5, tasks_csv=True)
    with pytest.raises(eh.InputError, match=r"has its tasks in .*tasks-fifo-0.5.csv, which is not read here"):
        study.tasks  # noqa: B018


def test_dicts_of_options_that_take_files_are_refused(workload: eh.Workload) -> None:
    with pytest.raises(eh.InputError, match="accounts: found a dict, expected a path"):
        eh.study(workload, policies="fifo", capacity=0.5, accounts={"ann": 1})  # type: ignore[arg-type]


def test_capacities_are_multiples_amounts_and_files(workload: eh.Workload, tmp_path: Path) -> None:
    pool = tmp_path / "small.toml"
    pool.write_text("[pool]\ncpu = 2\nmem = 2\n")
    study = eh.study(workload, policies="fifo", capacity=[Fraction(1, 2), {"cpu": 2, "mem": 2}, pool], tasks=False)
    runs = study.summary["runs"]
    assert [run["capacity_name"] for run in runs] == ["1/2", "pool-2", "small"]
    assert runs[1]["capacity"] == runs[2]["capacity"] == {"cpu": 2.0, "mem": 2.0}
    assert runs[1]["mean_wait_s"] == runs[2]["mean_wait_s"]
    with pytest.raises(eh.InputError, match="made without them"):
        study.tasks_of("fifo-pool-2")
    with pytest.raises(eh.InputError, match="expected amounts such as"):
        eh.study(workload, capacity={})


def test_weights_and_schedulers_reach_the_engine(workload: eh.Workload) -> None:
    def of(**options: object) -> list[float]:
        study = eh.study(workload, policies=["drf"], capacity=0.5, tasks=False, **options)  # type: ignore[arg-type]
        return list(study.runs["mean_wait_s"])

    plain = of()
    assert of(scheduler="strict") == plain
    assert of(weights={user: 50 for user in workload.users[::2]}) != plain
    assert of(scheduler="easy") != plain
    assert of(no_blocking=True) != plain


def test_errors_are_typed_and_have_the_program_s_sentences(workload: eh.Workload, tmp_path: Path) -> None:
    stored = workload.store(tmp_path / "w.parquet").path
    for options in (["--policy=dfr"], ["--capacity=0"], ["--half-life=8x"]):
        done = evenhand("study", stored, *options, "--out", tmp_path / "x")
        name, value = options[0].removeprefix("--").split("=")
        with pytest.raises(eh.InputError) as caught:
            eh.study(stored, **{name.replace("-", "_"): value}, out=tmp_path / "x")  # type: ignore[arg-type]
        assert done.returncode == 2
        assert done.stderr.strip().removeprefix("error: ") == str(caught.value), options
        assert isinstance(caught.value, ValueError)
    with pytest.raises(eh.InputError, match="unexpected argument '--polcy' found"):
        eh.study(stored, polcy="drf")
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(eh.EnvironmentFailure, match="is a file, not a folder"):
        eh.study(workload, policies="fifo", capacity=0.5, out=file / "out")
    with pytest.raises(eh.InputError, match="No such file"):
        eh.read(tmp_path / "missing.swf")


def test_a_folder_is_resumed_and_a_report_copied(workload: eh.Workload, tmp_path: Path) -> None:
    first = eh.study(workload, policies=["fifo"], capacity=0.5, out=tmp_path / "s")
    again = eh.study(workload, policies=["fifo"], capacity=0.5, out=tmp_path / "s")
    assert first.summary["runs"] == again.summary["runs"]
    report = again.report(tmp_path / "copy")
    assert report.read_text().startswith("<!")
    assert again.report(tmp_path / "s") == tmp_path / "s" / "index.html"


def test_progress_goes_to_a_bar_of_tqdm_s_kind(workload: eh.Workload) -> None:
    class Bar:
        def __init__(self, **keywords: object) -> None:
            self.total, self.done, self.closed = keywords["total"], 0, False
            bars.append(self)

        def update(self, n: int, /) -> None:
            assert n > 0
            self.done += n

        def close(self) -> None:
            self.closed = True

    bars: list[Bar] = []
    eh.study(workload, policies=["fifo", "drf"], capacity=0.5, tasks=False, progress=Bar)
    assert [(bar.total, bar.done, bar.closed) for bar in bars] == [(4000, 4000, True)]
    eh.study(workload, policies="fifo", capacity=0.5, tasks=False, progress=True)

    def broken(**_keywords: object) -> Bar:
        raise RuntimeError("no bar")

    with pytest.raises(RuntimeError, match="no bar"):
        eh.study(workload, policies="fifo", capacity=0.5, tasks=False, progress=broken)


LONG = "eh.generate(tasks=300_000, users=300, days=1)"


def test_ctrl_c_stops_a_study_and_the_interpreter_goes_on(tmp_path: Path) -> None:
    # A shell starts background jobs with SIGINT ignored, and Python then leaves it so.
    code = f"""
import signal
import evenhand as eh
signal.signal(signal.SIGINT, signal.default_int_handler)
w = {LONG}
print("begins", flush=True)
try:
    eh.study(w, policies=["fifo", "drf", "sdrf"], capacity=[0.4 + 0.01 * i for i in range(40)], out={str(tmp_path / "s")!r})
except KeyboardInterrupt:
    print("stopped", len(eh.generate(tasks=10, users=2, days=1)))
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    runs = tmp_path / "s" / "runs"
    while not (runs.is_dir() and any(runs.iterdir())):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert (process.returncode, output) == (0, "stopped 10\n")
    # What was finished is kept, and the summary says what is missing.
    summary = json.loads((tmp_path / "s" / "summary.json").read_text())
    assert summary["runs"] and summary["missing"]


def test_other_threads_run_during_a_study() -> None:
    workload = eh.generate(tasks=100_000, users=100, days=1)
    finished = threading.Event()

    def study() -> None:
        eh.study(workload, policies=["fifo", "drf"], capacity=0.5, tasks=False)
        finished.set()

    thread = threading.Thread(target=study)
    thread.start()
    counted = 0
    while not finished.is_set():
        counted += 1
        time.sleep(0.0005)
    thread.join()
    # With the lock held, this loop would have run only before the study.
    assert counted > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_studies_too(workload: eh.Workload) -> None:
    eh.study(workload, policies="fifo", capacity=0.5, tasks=False)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            study = eh.study(workload, policies="fifo", capacity=0.5)
            status = 0 if len(study.tasks) == 2000 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_figures_are_drawn(study: eh.Study, tmp_path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    axes = study.plot.waits(capacity=0.5)
    assert [line.get_label() for line in axes.get_lines()] == ["fifo-0.5", "drf-0.5"]
    assert len(study.plot.utilization().patches) == 4 * len(study.summary["runs"][0]["utilization"])
    axes.figure.savefig(tmp_path / "waits.svg")
    with pytest.raises(eh.InputError, match="expected one of: 0.5, 0.8"):
        study.plot.waits(capacity=3)


def test_the_wheel_carries_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "evenhand", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"evenhand {eh.__version__}\n"
