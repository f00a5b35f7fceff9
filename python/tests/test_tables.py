"""Tables go to other libraries, and those of other libraries come in as workloads."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import evenhand

import evenhand as eh


def test_libraries_take_results(study: eh.Study) -> None:
    table = study.users
    expected = {name: table[name] for name in table.columns}
    assert pl.DataFrame(table).to_dict(as_series=False) == expected
    assert pa.table(table).to_pydict() == expected
    assert pa.RecordBatchReader.from_stream(table).read_all().num_rows == len(table)
    frame = pd.DataFrame.from_arrow(table)
    assert list(frame.columns) == table.columns
    assert frame["submitted"].tolist() == expected["submitted"]
    users = table
    counted = duckdb.sql("select run, count(*) from users group by run order by run").fetchall()
    assert len(users) == 80
    assert counted == [(run, 20) for run in sorted(study.runs["run"])]
    assert pl.DataFrame(study.tasks).height == len(study.tasks)
    assert pa.schema(table).names == table.columns


def test_the_export_is_not_a_copy(workload: eh.Workload) -> None:
    table = workload.table
    first, second = (pa.table(table).column("submit_ns").chunk(0) for _ in range(2))
    assert first.buffers()[1].address == second.buffers()[1].address


def frames(workload: eh.Workload) -> list[Any]:
    return [
        pl.DataFrame(workload),
        pl.DataFrame(workload).with_columns(pl.col("user").cast(pl.Categorical)),
        pd.DataFrame.from_arrow(workload),
        pd.DataFrame.from_arrow(workload).astype({"user": "category"}),
        pa.table(workload),
        pa.table(workload).to_batches(max_chunksize=100)[0].schema.empty_table().from_batches(
            pa.table(workload).to_batches(max_chunksize=100)
        ),
        duckdb.from_arrow(pa.table(workload)),
        workload.table,
        workload,
    ]


def test_tables_of_any_library_are_workloads(workload: eh.Workload) -> None:
    expected = workload.describe()
    for frame in frames(workload):
        read = eh.read(frame, units={"cpu": "share", "mem": "share"} if "units" in expected else None)
        assert pa.table(read).equals(pa.table(workload)), type(frame)


def columns(**changed: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "submit": [0, 5, 5],
        "duration": [60, 30.5, 1],
        "user": ["ann", "bob", "ann"],
        "cpu": [2, 0.5, 1],
    }
    base.update(changed)
    return {name: values for name, values in base.items() if values is not None}


def store(**changed: Any) -> dict[str, list[Any]]:
    table = eh.read(pa.table(columns(**changed))).table
    return {name: table[name] for name in table.columns}


def test_times_may_be_numbers_timestamps_and_durations() -> None:
    second = 1_000_000_000
    plain = store()
    assert plain["submit_ns"] == [0, 5 * second, 5 * second]
    assert plain["duration_ns"] == [60 * second, 30_500_000_000, second]
    begin = dt.datetime(2026, 3, 1, 12)
    stamps = [begin, begin + dt.timedelta(seconds=5), begin + dt.timedelta(seconds=5)]
    zone = dt.timezone(dt.timedelta(hours=2))
    for times in (
        pa.array(stamps, pa.timestamp("s")),
        pa.array(stamps, pa.timestamp("us")),
        pa.array(stamps, pa.timestamp("ns", "UTC")),
        pa.array([stamp.replace(tzinfo=dt.timezone.utc).astimezone(zone) for stamp in stamps], pa.timestamp("ms", "+02:00")),
    ):
        found = store(submit=times)["submit_ns"]
        assert found[0] == int(begin.replace(tzinfo=dt.timezone.utc).timestamp()) * second
        assert found[1] - found[0] == 5 * second
    spans = pa.array([dt.timedelta(seconds=60), dt.timedelta(seconds=30.5), dt.timedelta(seconds=1)], pa.duration("ms"))
    assert store(duration=spans) == plain
    assert store(submit=None, submit_ns=[0, 5 * second, 5 * second]) == plain
    ended = store(duration=None, start=[0, 5, 6], end=[60, 35.5, 7])
    assert ended["duration_ns"] == plain["duration_ns"]
    assert ended["start_ns"] == [0, 5 * second, 6 * second]


def test_what_is_not_known_may_be_null() -> None:
    found = store(start=[0, None, float("nan")], account=["x", None, "y"], requested=[None, 60, None], count=[1, 2, 1])
    assert found["start_ns"] == [0, None, None]
    assert found["account"] == ["x", None, "y"]
    assert found["requested_ns"] == [None, 60_000_000_000, None]
    assert found["count"] == [1, 2, 1]


def test_amounts_are_exact() -> None:
    decimals = pa.array([Decimal("0.100"), Decimal("2"), Decimal("0.125")], pa.decimal128(12, 3))
    assert store(cpu=decimals)["cpu"] == [0.1, 2.0, 0.125]
    assert store(cpu=np.array([0.1, 0.25, 3], dtype=np.float64))["cpu"] == [0.1, 0.25, 3.0]
    assert store(cpu=pa.array([1, 2, 3], pa.uint64()))["cpu"] == [1.0, 2.0, 3.0]


NOW = dt.datetime(2026, 1, 1)
UTC = dt.timezone.utc

INVALID: list[tuple[dict[str, Any], str]] = [
    ({"user": None}, 'no column "user", expected names of users; its columns: submit, duration, cpu'),
    ({"submit": None}, 'no column "submit"'),
    ({"duration": None}, 'no column "duration"'),
    ({"cpu": None}, 'at least one column of numbers'),
    ({"user": ["a", None, "b"]}, 'column "user", row 1: found null, expected a name'),
    ({"user": [1.5, 2.0, 3.0]}, 'column "user" holds Float64, expected a name'),
    ({"submit": ["a", "b", "c"]}, 'column "submit" holds Utf8, expected a time'),
    ({"submit": [0, None, 1]}, 'column "submit", row 1: found null'),
    ({"submit": [0, float("nan"), 1]}, 'column "submit", row 1: found null'),
    ({"submit": [0, -1, 1]}, 'column "submit", row 1: found -1, expected a time'),
    ({"submit": [0, float("inf"), 1]}, 'column "submit", row 1: found inf'),
    ({"duration": [1, 2, -3.5]}, 'column "duration", row 2: found -3.5'),
    ({"duration": pa.array([NOW] * 3)}, 'column "duration" holds Timestamp'),
    ({"cpu": ["1", "2", "3"]}, 'column "cpu" holds Utf8, expected an amount'),
    ({"cpu": [1, None, 1]}, 'column "cpu", row 1: found null, expected an amount'),
    ({"cpu": [1.0, float("nan"), 1]}, 'column "cpu", row 1: found NaN'),
    ({"cpu": [1, -2, 1]}, 'column "cpu", row 1: found -2'),
    ({"cpu": [1, 1e-10, 1]}, 'column "cpu", row 1: found 1e-10'),
    ({"cpu": [True, False, True]}, 'column "cpu" holds Boolean'),
    ({"cpu": pa.array([Decimal("0.00000000001")] * 3)}, 'column "cpu", row 0'),
    ({"count": [1, 0, 1]}, 'column "count", row 1: found 0, expected a count'),
    ({"count": [1, 1.5, 1]}, 'column "count", row 1: found 1.5'),
    ({"submit_ns": [0, 1, 2]}, 'columns "submit" and "submit_ns", expected one of them'),
    ({"end": [1, 2, 3]}, 'run times and a column "end", expected one of them'),
    ({"duration": None, "start": [0, 5, 5], "end": [1, 4, 6]}, 'column "end", row 1: found an end 1 s before the start'),
    ({"duration": None, "start": [0, None, 5], "end": [1, 4, 6]}, 'column "start", row 1: found null, expected a time'),
    ({"duration": None, "wait": [0, None, 5], "end": [1, 4, 6]}, "row 1: found a row that is no task: never started"),
    ({"start": [0, 3, 5]}, 'column "start", row 1: found a start 2 s before submission'),
    ({"nodes": [1, 0, 1]}, 'column "nodes", row 1: found 0, expected a count'),
    ({"per_node": [1, 0, 1]}, 'column "per_node", row 1: found "0.000000000", expected an amount on each node'),
    ({"chunks": ["1:cpu=2", "x", None]}, 'column "chunks", row 1: found "x", expected chunks such as'),
    ({"eligible": ["a", "b", "c"]}, 'column "eligible" holds Utf8, expected a time'),
    ({"qos": [1.5, 2.5, 3.5]}, 'column "qos" holds Float64, expected a name'),
    ({"gpu_requested": [1, 1, 1]}, 'found "gpu_requested", expected the allocated amount beside the requested one'),
    ({"cpu_requested": [1, -1, None]}, 'column "cpu_requested", row 1: found -1, expected an amount'),
    ({"wait": [1, -1, None]}, 'column "wait", row 1: found -1'),
    (
        {"submit": pa.array([NOW] * 3), "start": pa.array([NOW.replace(tzinfo=UTC)] * 3, pa.timestamp("us", "UTC"))},
        'column "start" has a time zone and column "submit" has none',
    ),
    ({"start": pa.array([NOW] * 3)}, 'column "start" holds timestamps and column "submit" numbers'),
]


@pytest.mark.parametrize(("changed", "sentence"), INVALID, ids=[sentence for _, sentence in INVALID])
def test_invalid_tables_are_refused_with_column_and_row(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(eh.InputError) as caught:
        eh.read(pa.table(columns(**changed)))
    assert sentence in str(caught.value)


def test_other_invalid_sources_are_refused() -> None:
    twice = pa.table([[0], [1], ["a"], [1], [1]], names=["submit", "duration", "user", "cpu", "cpu"])
    with pytest.raises(eh.InputError, match='two columns "cpu", expected each once'):
        eh.read(twice)
    with pytest.raises(eh.InputError, match="found int, expected a path, a list of paths, a table"):
        eh.read(1)  # type: ignore[arg-type]
    with pytest.raises(eh.InputError, match="found 1 in a list, expected the paths of one trace"):
        eh.read([1, 2])  # type: ignore[list-item]
    with pytest.raises(eh.InputError, match='no resource "gpu"'):
        eh.read(pa.table(columns()), units={"gpu": ""})
    with pytest.raises(eh.InputError, match="options of files"):
        eh.read(pa.table(columns()), lenient=True)
    with pytest.raises(TypeError, match='column "a" has 1 values and column "b" 2'):
        eh.Table.from_columns([("a", [1]), ("b", [1, 2])])
    with pytest.raises(KeyError, match="expected one of: a"):
        eh.Table.from_columns([("a", [1])])["b"]


def test_a_workload_written_by_pyarrow_is_read_by_the_program(tmp_path: Path) -> None:
    """What the page on workload files promises, in pure Python."""
    second = 1_000_000_000
    table = pa.table(
        {
            "submit_ns": pa.array([0, 5 * second, 5 * second], pa.int64()),
            "duration_ns": pa.array([60 * second, 30 * second, second], pa.int64()),
            "user": pa.array(["ann", "bob", "ann"], pa.string()),
            "start_ns": pa.array([0, None, 7 * second], pa.int64()),
            "requested_ns": pa.array([None, 60 * second, None], pa.int64()),
            "account": pa.array(["physics", None, "physics"], pa.string()),
            "queue": pa.array([None, "short", None], pa.string()),
            "count": pa.array([1, 2, 1], pa.uint32()),
            "cpu": pa.array([Decimal("2.0"), Decimal("0.5"), Decimal("1.0")], pa.decimal128(18, 1)),
            "mem": pa.array([4, 2, 1], pa.int64()),
        },
        metadata={"evenhand.units": '{"cpu": "cores", "mem": "GiB"}', "evenhand.header": '[["Computer", "test"]]'},
    )
    path = tmp_path / "w.parquet"
    pq.write_table(table, path)
    done = evenhand("workload", "describe", path, "--format", "json")
    assert done.returncode == 0, done.stderr
    read = eh.read(path)
    assert read.describe()["tasks"] == 4
    back = pa.table(read).to_pydict()
    for name in ("submit_ns", "duration_ns", "user", "start_ns", "requested_ns", "account", "queue", "count"):
        assert back[name] == table.column(name).to_pylist(), name
    assert back["cpu"] == [2.0, 0.5, 1.0]
    stored = read.store(tmp_path / "again.parquet")
    metadata = pq.read_schema(stored.path).metadata
    assert metadata[b"evenhand.units"] == b'{"cpu": "cores", "mem": "GiB"}'
    assert pa.table(stored).equals(pa.table(read))


def test_whole_numbers_are_names_of_users() -> None:
    jobs = pl.DataFrame({"submit": [0, 0], "duration": [5, 5], "user": [17, 4], "account": [1, None], "cpu": [1, 1]})
    workload = eh.read(jobs)
    assert workload.users == ["17", "4"]
    assert workload.table["account"] == ["1", None]


#: Every column of --csv-columns, in two tables: with run times, and with ends in their place.
FULL: dict[str, list[Any]] = {
    "submit": [0, 5, 5, 9],
    "start": [10, None, 7.25, 9],
    "duration": [60, 30.5, 1, 2],
    "requested": [120, None, 60, 60],
    "user": ["ann", "bob", "ann", "no one"],
    "account": ["physics", None, "optics", "physics"],
    "queue": ["long", "short", None, "long"],
    "count": [1, 2, 1, 1],
    "nodes": [2, 1, None, 1],
    "eligible": [3, 5, None, 9],
    "chunks": ["2:cpu=1", None, None, "1:cpu=1+1:cpu=2"],
    "requires": ["ssd,#excl", None, "a|b", None],
    "gpu_type": [None, "V100|A100", None, "h100"],
    "qos": ["normal", None, "high", "normal"],
    "machines": ["n[1-2]", None, "n3", None],
    "outcome": ["completed", "failed", None, "limit"],
    "reservation": [None, "course", None, None],
    "licences": ["matlab:2", None, None, "ansys:1"],
    "array": ["100%5", None, "100", None],
    "nice": ["100", None, "-5", None],
    "cpu": [2, 0.5, 1, 3],
    "gpu": [0, 1, 0, 2],
    "cpu_requested": [4, None, 1, 3],
}
ENDS: dict[str, list[Any]] = {
    "submit": [0, 5, 5],
    "wait": [1, 2.5, 0],
    "end": [61, 20, 6],
    "user": ["ann", "bob", "ann"],
    "per_node": [2, None, 0.5],
    "cpu": [3, 1, 1],
}


def csv_of(table: dict[str, list[Any]]) -> str:
    """The table as text, whose texts are in quotation marks."""
    field = lambda value: "" if value is None else f'"{value}"' if isinstance(value, str) else str(value)
    rows = zip(*table.values(), strict=True)
    return "\n".join([",".join(table), *(",".join(field(value) for value in row) for row in rows)]) + "\n"


@pytest.mark.parametrize("table", [FULL, ENDS], ids=["run times", "ends"])
def test_a_table_has_every_column_that_a_file_has(table: dict[str, list[Any]], tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(csv_of(table))
    # The header has no units: those of the file are in the option, those of the table in the argument.
    named = ",".join(f"{name}:cores={name}" if name == "cpu" else f"{name}={name}" for name in table)
    of_file = eh.read(path, csv_columns=named)
    for of_library in (pa.table(table), pl.DataFrame(table, strict=False), pd.DataFrame(table)):
        of_table = eh.read(of_library, units={"cpu": "cores"})
        expected, found = pa.table(of_file), pa.table(of_table)
        assert found.column_names == expected.column_names
        for name in expected.column_names:
            assert found.column(name).to_pylist() == expected.column(name).to_pylist(), name
    # The stored files are the same too, with their metadata, and a workload that is taken as a table again.
    stored = [pq.read_table(w.store(tmp_path / f"{i}.parquet").path) for i, w in enumerate((of_file, of_table))]
    assert stored[0].equals(stored[1], check_metadata=True)
    again = eh.read(of_table, units={"cpu": "cores"})
    assert pa.table(again).equals(pa.table(of_table))


def test_every_documented_column_of_a_table_is_compared_with_that_of_a_file() -> None:
    page = (Path(__file__).parents[2] / "docs/src/reference/workload-files.md").read_text()
    cells = [line.split("|")[1] for line in page.split("## Tables")[1].splitlines() if line.startswith("|")]
    documented = set(re.findall(r"`([a-z][a-z_]*)`", " ".join(cells)))
    assert documented | {"cpu", "gpu"} == {*FULL, *ENDS}


def test_texts_of_a_table_are_names_whatever_they_say() -> None:
    """In a file NA and the like are words for what is unknown; a table has nulls."""
    assert eh.read(pa.table(columns(user=["NA", "-", " x"]))).users == ["NA", "-", " x"]


def test_a_table_is_iterated_by_rows() -> None:
    table = eh.Table.concatenate([eh.Table.from_columns([("user", ["ann", "bob"]), ("wait", [1, None])])] * 2)
    rows = list(table)
    assert rows == [{"user": "ann", "wait": 1}, {"user": "bob", "wait": None}] * 2
    assert list(eh.Table.from_columns([])) == []
