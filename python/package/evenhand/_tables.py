"""Tables of what the program prints as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ._native import Table


def flat(record: Mapping[str, Any], prefix: str = "", leave_out: Sequence[str] = ()) -> dict[str, object]:
    """Makes columns of a record: those of an inner record get its name. Lists are left out, but for intervals, which are
    two columns.

    >>> flat({"wait_interval_s": [1, 3], "noise": {"wait": {"mean": 2, "interval": [1, 3]}}, "users": ["ann"]})
    {'wait_low_s': 1, 'wait_high_s': 3, 'noise_wait_mean': 2, 'noise_wait_low': 1, 'noise_wait_high': 3}
    >>> flat({"id": "a", "wait": 1, "used": {"cpu": 2}, "totals": {"jobs": 3}}, leave_out=("id",))
    {'wait': 1, 'used_cpu': 2, 'jobs': 3}
    """
    columns: dict[str, object] = {}
    for name, value in record.items():
        if name in leave_out:
            continue
        if isinstance(value, list):
            if "interval" in name:
                low, high = value
                columns[prefix + name.replace("interval", "low")] = low
                columns[prefix + name.replace("interval", "high")] = high
            continue
        if isinstance(value, Mapping):
            columns.update(flat(value, "" if name == "totals" else f"{prefix}{name}_"))
        else:
            columns[prefix + name] = value
    return columns


def table_of(rows: Sequence[Mapping[str, object]]) -> Table:
    """Makes a table of rows, with every column that one of them has."""
    names = dict.fromkeys(name for row in rows for name in row)
    return Table.from_columns([(name, [row.get(name) for row in rows]) for name in names])
