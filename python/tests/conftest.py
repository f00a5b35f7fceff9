"""What several tests use."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from evenhand.__main__ import program

import evenhand as eh

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture(scope="session")
def workload() -> eh.Workload:
    return eh.generate(tasks=2000, users=20, days=2, seed=3)


@pytest.fixture(scope="session")
def study(workload: eh.Workload) -> eh.Study:
    return eh.study(workload, policies=["fifo", "drf"], capacity=[0.5, 0.8])


def evenhand(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs the program that the wheel carries."""
    return subprocess.run([program(), *map(str, arguments)], capture_output=True, text=True, check=False)


def without_times(summary: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what differs from run to run: the wall time, and names of temporary files."""
    summary = json.loads(json.dumps(summary))
    del summary["method"]["command"]
    for run in summary["runs"]:
        del run["elapsed_s"]
    return summary
