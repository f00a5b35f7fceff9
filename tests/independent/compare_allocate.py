#!/usr/bin/env python3
"""Holds `evenhand allocate` and `evenhand audit` against divide.py.

    compare_allocate.py EVENHAND --cases 300 [--seed 1] [--first N]

Random small problems with ties, zeros, equal users, limits at the break and extreme ratios, as TOML and
JSON. Exact answers must be equal; bbf must leave no complaint, bmf must be the point the documentation
promises of all there are, baa must reach the optimum of its linear program, ceei the conditions of
Karush, Kuhn and Tucker within 1e-6; f64 answers must lie within 1e-9 of exact ones. Exit status 1 if
anything differs.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import divide

EXACT = ["max-min", "drf", "sdrf", "asset", "bmf", "baa", "bbf"]
PROPERTIES = ["feasible", "pareto", "sharing_incentive", "envy_free", "no_justified_complaint"]


def draw(rng):
    """A problem; which awkwardness it has is drawn too."""
    n, m = rng.randint(1, 5), rng.choice([1, 2, 2, 2, 3, 3])
    capacity = [Fraction(rng.randint(1, 40), rng.choice([1, 1, 2, 3])) for _ in range(m)]
    zeros = rng.random() < 0.5
    weights = rng.random() < 0.4
    limits = rng.choice(["none", "some", "small", "all"])
    extreme = rng.random() < 0.15
    users = []
    while len(users) < n:
        if users and rng.random() < 0.2:
            users.append(dict(rng.choice(users)))
            continue
        demand = [Fraction(rng.randint(1, 10), 10) for _ in range(m)]
        if zeros:
            demand = [Fraction(0) if rng.random() < 0.3 else d for d in demand]
        if not any(demand):
            continue
        if extreme:
            demand = [d * Fraction(10) ** rng.choice([-6, 0, 6]) for d in demand]
        tasks = None
        if limits == "all" or (limits != "none" and rng.random() < 0.5):
            most = min(c / d for c, d in zip(capacity, demand) if d)
            # At the break, that is, what an equal split gives; a part of it; more than there is; nothing.
            parts = [Fraction(1, n), Fraction(1, 7 * n), Fraction(3, 2 * n), Fraction(2), Fraction(0)]
            tasks = most * rng.choice(parts[:2] if limits == "small" else parts)
        users.append(
            {
                "weight": Fraction(rng.randint(1, 8), 4) if weights else Fraction(1),
                "demand": demand,
                "tasks": tasks,
                "commitment": [Fraction(rng.choice([0, 0, 1, 2, 5]), 20) for _ in range(m)],
            }
        )
    return {"capacity": capacity, "users": users}


def written(problem, as_json, commitments):
    """The problem as a file, numbers as fractions in strings."""
    names = [f"r{r}" for r in range(len(problem["capacity"]))]

    def table(values):
        return {name: str(v) for name, v in zip(names, values) if v != 0}

    users = []
    for i, u in enumerate(problem["users"]):
        user = {"name": f"u{i}", "weight": str(u["weight"]), "demand": table(u["demand"])}
        if u["tasks"] is not None:
            user["tasks"] = str(u["tasks"])
        if commitments:
            user["commitment"] = table(u["commitment"])
        users.append(user)
    if as_json:
        return json.dumps({"capacity": {n: str(c) for n, c in zip(names, problem["capacity"])}, "user": users})
    lines = ["[capacity]"] + [f'{n} = "{c}"' for n, c in zip(names, problem["capacity"])]
    for user in users:
        lines.append("[[user]]")
        for key, value in user.items():
            if isinstance(value, dict):
                inner = ", ".join(f'{k} = "{v}"' for k, v in value.items())
                lines.append(f"{key} = {{ {inner} }}")
            else:
                lines.append(f'{key} = "{value}"')
    return "\n".join(lines) + "\n"


def allocate(evenhand, file, mechanisms, *more):
    command = [evenhand, "allocate", str(file), "--mechanism", ",".join(mechanisms), "--format", "json", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return {found["mechanism"]: found for found in json.loads(done.stdout)}


def tasks_of(found, problem):
    assert [u["name"] for u in found["users"]] == [f"u{i}" for i in range(len(problem["users"]))]
    return [Fraction(u["tasks"]) for u in found["users"]]


def wrong(evenhand, problem, file):
    """Sentences about what differs."""
    errors = []
    unlimited = all(u["tasks"] is None for u in problem["users"])
    wide = len(problem["capacity"]) > 1
    mechanisms = [m for m in EXACT if not (wide and m == "max-min")]
    exact = allocate(evenhand, file, mechanisms, "--exact")
    float_names = mechanisms + ["ceei"]
    floats = allocate(evenhand, file, float_names)
    for name, expected in [("drf", divide.drf), ("max-min", divide.drf), ("asset", divide.asset), ("sdrf", divide.sdrf)]:
        if name in exact and tasks_of(exact[name], problem) != expected(problem):
            errors.append(f"{name}: {exact[name]['users']}, expected {expected(problem)}")
    bmf, points = tasks_of(exact["bmf"], problem), divide.all_bmf(problem)
    if not divide.is_bmf(problem, bmf):
        errors.append(f"bmf: {bmf} is not bottleneck max fair")
    best = max(divide.worst_first(problem, p) for p in points)
    if divide.worst_first(problem, bmf) != best:
        errors.append(f"bmf: {bmf} where {points} have a better worst {best}")
    if unlimited:
        program = divide.Baa(problem, sharing_incentive=len(problem["capacity"]) > 2)
        levels = program.levels_of(problem, tasks_of(exact["baa"], problem))
        vertices = list(program.vertices())
        most = max(program.value(v) for v in vertices)
        if levels is None or not program.holds(levels) or program.value(levels) != most:
            errors.append(f"baa: levels {levels}, optimum {most}")
        elif min(levels) < max(min(v) for v in vertices if program.value(v) == most):
            errors.append(f"baa: levels {levels} where a better least one is possible")
    if not divide.properties(problem, tasks_of(exact["bbf"], problem))["no_justified_complaint"]:
        errors.append(f"bbf: {exact['bbf']['users']} leaves a complaint")
    errors += market(problem, floats["ceei"])
    for name, found in exact.items():
        tasks = tasks_of(found, problem)
        for key, value in divide.properties(problem, tasks).items():
            if found["properties"][key] != value:
                errors.append(f"{name}: {key} is {value}, evenhand has {found['properties'][key]}")
        used = [Fraction(r["used"]) for r in found["resources"]]
        if used != [load * c for load, c in zip(divide.loads(problem, tasks), problem["capacity"])]:
            errors.append(f"{name}: used {used}")
        # Which of several points of bbf the f64 answer is, is not promised; and baa's jumps where a limit is just
        # reached, which f64 may see as reached or not.
        promised = name != "bbf" and (name != "baa" or unlimited)
        for x, near in zip(tasks, floats[name]["users"] if promised else []):
            if abs(float(x) - near["tasks"]) > 1e-9 * max(float(x), 1e-300) + 1e-300:
                errors.append(f"{name}: exact {float(x)}, f64 {near['tasks']}")
    return errors


def market(problem, found):
    """What is wrong with prices and tasks of ceei, in floating point."""
    errors = []
    users, rows = problem["users"], [[float(d) for d in row] for row in divide.shares(problem)]
    prices = [float(found["prices"][f"r{r}"]) for r in range(len(problem["capacity"]))]
    total = float(sum(u["weight"] for u in users))
    load = [0.0] * len(prices)
    for u, row, given in zip(users, rows, found["users"]):
        x = given["tasks"]
        load = [a + x * d for a, d in zip(load, row)]
        if u["tasks"] == 0:
            continue
        cost = sum(p * x * d for p, d in zip(prices, row))
        money = float(u["weight"]) / total
        if cost > money * (1 + 1e-6) or (cost < money * (1 - 1e-6) and not given["satisfied"]):
            errors.append(f"ceei: {given['name']} pays {cost} of {money}")
    for price, used in zip(prices, load):
        if used > 1 + 1e-9 or (price > 1e-6 and used < 1 - 1e-5):
            errors.append(f"ceei: price {price} of a resource used to {used}")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evenhand")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in range(arguments.first, arguments.first + arguments.cases):
            rng = random.Random(f"{arguments.seed}/{case}")
            problem = draw(rng)
            as_json = rng.random() < 0.5
            file = Path(folder) / ("problem.json" if as_json else "problem.toml")
            file.write_text(written(problem, as_json, commitments=True))
            errors = wrong(arguments.evenhand, problem, file)
            if errors:
                differing += 1
                print(f"case {case} differs:\n{file.read_text()}")
                for line in errors[:6]:
                    print("  " + line)
    print(f"{arguments.cases} compared, {differing} differ")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
