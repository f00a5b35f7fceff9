"""The other verbs give what the program prints."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from conftest import EXAMPLES, evenhand

import evenhand as eh

PROBLEM = {
    "capacity": {"cpu": 9, "mem": 18},
    "user": [{"name": "A", "demand": {"cpu": 1, "mem": 4}}, {"name": "B", "demand": {"cpu": 3, "mem": 1}}],
}


def printed(*arguments: object, status: int = 0) -> object:
    done = evenhand(*arguments, "--format", "json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(PROBLEM))
    return path


def test_allocations_and_their_audit(problem: Path, tmp_path: Path) -> None:
    drf = eh.allocate(PROBLEM, ["drf", "asset"])
    assert drf == printed("allocate", problem, "--mechanism", "drf,asset")
    exact = eh.allocate({**PROBLEM, "capacity": {"cpu": Fraction(9, 2), "mem": 18}}, "drf", exact=True)
    assert isinstance(exact[0]["users"][0]["tasks"], str)
    assert eh.audit(problem, drf[:1], property="pareto").holds
    bad = {"users": [{"name": "A", "tasks": 3}, {"name": "B", "tasks": 1}]}
    found = eh.audit(PROBLEM, bad)
    path = tmp_path / "allocation.json"
    path.write_text(json.dumps(bad))
    assert not found.holds
    assert found.record == printed("audit", problem, path, status=1)
    with pytest.raises(eh.InputError, match="expected one"):
        eh.audit(PROBLEM, drf)
    with pytest.raises(eh.InputError, match="did you mean"):
        eh.allocate(PROBLEM, "dfr")
    with pytest.raises(eh.InputError, match="problem.json"):
        eh.allocate({"capacity": {"cpu": "many"}, "user": []})
    with pytest.raises(eh.InputError, match="found <object"):
        eh.allocate({"capacity": object()})
    lies = eh.audit(PROBLEM, mechanism="asset", search_lies=True, tries=50)
    assert lies.record is not None


def test_the_audit_of_a_history(tmp_path: Path) -> None:
    history = EXAMPLES / "two-weeks.sacct"
    done = evenhand("audit", "--history", history, "--format", "json")
    found = eh.audit(history=history)
    assert found.holds == (done.returncode == 0)
    assert found.record == json.loads(done.stdout)


def test_timelines_processes_and_prices() -> None:
    scenario = {
        "capacity": {"cpu": 4},
        "user": [{"name": "A", "demand": {"cpu": 1}, "arrive": 0, "leave": 10}],
    }
    assert eh.timeline(scenario)["mechanism"] == "drf"
    programs = sorted(EXAMPLES.glob("*.prog"))
    assert eh.processes(programs[0], runs=2, seed=3) == printed("processes", programs[0], "--runs", 2, "--seed", 3)
    site = EXAMPLES / "site.toml"
    assert eh.price("2:cpu=4:mem=8GiB", site) == printed("price", "2:cpu=4:mem=8GiB", "--cluster", site)
    with pytest.raises(eh.InputError):
        eh.price("cpu=", site)


def test_traces_are_read_described_stored_and_exported(tmp_path: Path) -> None:
    trace = EXAMPLES / "two-weeks.sacct"
    read = eh.read(trace)
    assert read.describe() == printed("workload", "describe", trace)
    stored = read.store(tmp_path / "w.parquet")
    assert evenhand("workload", "import", trace, "-o", tmp_path / "theirs.parquet").returncode == 0
    assert stored.path.read_bytes() == (tmp_path / "theirs.parquet").read_bytes()
    assert read.table["user"] == stored.table["user"]
    stored.export("swf", tmp_path / "w.swf")
    evenhand("workload", "export", stored.path, "--to", "swf", "-o", tmp_path / "theirs.swf")
    assert (tmp_path / "w.swf").read_bytes() == (tmp_path / "theirs.swf").read_bytes()
    generated = eh.generate("metacentrum", tasks=100, users=5, days=2, seed=9)
    options = ["--like", "metacentrum", "--tasks", 100, "--users", 5, "--days", 2, "--seed", 9]
    evenhand("workload", "generate", *options, "-o", tmp_path / "g.parquet")
    assert generated.path.read_bytes() == (tmp_path / "g.parquet").read_bytes()


def test_documents_of_another_type_are_refused() -> None:
    with pytest.raises(eh.InputError, match="problem: found int, expected a path or a dict"):
        eh.allocate(3)  # type: ignore[arg-type]
    with pytest.raises(eh.InputError, match="cluster: found list, expected a path or a dict"):
        eh.price("cpu=1", [])  # type: ignore[arg-type]


def test_a_workload_is_audited_as_a_history() -> None:
    workload = eh.read(EXAMPLES / "two-weeks.sacct")
    assert eh.audit(workload).record == eh.audit(history=workload).record
    with pytest.raises(eh.InputError, match="found a history and a problem"):
        eh.audit(workload, history=workload)


def test_a_history_has_a_capacity_as_a_study_has(tmp_path: Path) -> None:
    history = EXAMPLES / "two-weeks.sacct"
    resources = eh.read(history).table.columns
    pool: dict[str, float | str] = {name: "100Ti" if name == "mem" else 10_000 for name in resources if name in ("cpu", "mem", "gpu")}
    path = tmp_path / "pool.toml"
    path.write_text("[pool]\n" + "".join(f"{name} = {json.dumps(amount)}\n" for name, amount in pool.items()))
    assert eh.audit(history=history, capacity=pool).record == eh.audit(history=history, capacity=path).record
    with pytest.raises(eh.InputError, match="weights: found a dict, expected a path"):
        eh.audit(history=history, weights={"ann": 1})  # type: ignore[arg-type]


def test_a_trace_of_several_files_and_a_format(tmp_path: Path) -> None:
    text = "; UnixStartTime: 0\n"
    job = "{i} {submit} 0 60 1 -1 -1 1 60 -1 1 {user} 1 1 1 1 -1 -1\n"
    paths = [tmp_path / "a.swf", tmp_path / "b.swf"]
    for i, path in enumerate(paths):
        path.write_text(text + job.format(i=1, submit=100 * i, user=i + 1))
    parts = [eh.read(path, from_="swf") for path in paths]
    assert [len(part) for part in parts] == [1, 1]
    with pytest.raises(eh.InputError, match="swff"):
        eh.read(paths[0], from_="swff")
    with pytest.raises(eh.InputError, match="found no path"):
        eh.read([])
    with pytest.raises(eh.InputError, match="found 3 in a list, expected the paths of one trace"):
        eh.read([paths[0], 3])  # type: ignore[list-item]
    whole = tmp_path / "whole.parquet"
    assert evenhand("workload", "import", *paths, "-o", whole).returncode == 0
    both = eh.read(paths, from_="swf")
    assert both.path.read_bytes() == whole.read_bytes()
    assert len(both) == 2
    summary = eh.study(both, policies="fifo", capacity=0.5, tasks=False).summary
    assert summary["workload"]["source"] == f"{paths[0]}, {paths[1]}"


def test_errors_in_documents_of_a_call_do_not_name_temporary_folders() -> None:
    twice = [{"name": "A", "demand": {"cpu": 1}}] * 2
    with pytest.raises(eh.InputError, match=r'^problem.json:1:\d+: name of the user: found "A" a second time'):
        eh.allocate({"capacity": {"cpu": 9}, "user": twice})
    with pytest.raises(eh.InputError, match=r'^pool.toml:2:9: capacity of cpu: found "nan"'):
        eh.study(capacity={"cpu": float("nan")})


def test_names_of_users_may_have_any_letters() -> None:
    names = ["a🙂\x7f\"\\\\", "b"]
    jobs = eh.Table.from_columns([("submit", [0, 0, 0, 0]), ("duration", [5] * 4), ("user", names * 2), ("cpu", [1] * 4)])
    weights = {names[0]: 3, names[1]: 1}
    assert eh.study(jobs, policies=["drf"], capacity={"cpu": 1}, weights=weights).users["user"] == names
