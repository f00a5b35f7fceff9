"""The examples run, and print what their descriptions promise."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_a_policy_is_learned_and_compared() -> None:
    command = [sys.executable, str(EXAMPLES / "learn_a_policy.py"), "--generations", "2", "--tests", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^weight of .*: [+-]\d", done.stdout, re.M)) == 4
    waits = dict(re.findall(r"^(drf|fair-tree|learned) +([0-9.]+) h  \[", done.stdout, re.M))
    assert set(waits) == {"drf", "fair-tree", "learned"}
    # Not worse than twice what drf reaches, even after two generations.
    assert float(waits["learned"]) < 2 * float(waits["drf"])


def test_every_way_to_write_drf_starts_the_same_tasks() -> None:
    command = [sys.executable, str(EXAMPLES / "decision_rates.py"), "--tasks", "2000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(\S+) +(\d+) decisions +[\d,]+ a second, (.*)$", done.stdout, re.M)
    ways = [way for way, _, _ in rows if not way.startswith("numba")]
    assert ways == ["drf", "c-key", "c-user-key", "python-key", "python-user-key"]
    assert {same for _, _, same in rows} == {"the same starts"}
    assert len({decisions for _, decisions, _ in rows}) == 1
