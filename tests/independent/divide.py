"""What `evenhand allocate` computes, once more: exact fractions, no cleverness, no shared code.

A problem is {"capacity": [C_r], "users": [{"weight", "demand": [d_r], "tasks" or None, "commitment": [c_r]}]},
all Fractions. Mechanisms return tasks per user.
"""

from fractions import Fraction
from itertools import combinations, product

ZERO, ONE = Fraction(0), Fraction(1)


def shares(problem):
    """Demands per task in shares of capacity."""
    capacity = problem["capacity"]
    return [[d / c if d else ZERO for d, c in zip(u["demand"], capacity)] for u in problem["users"]]


def loads(problem, tasks):
    rows = shares(problem)
    return [sum((x * row[r] for x, row in zip(tasks, rows)), ZERO) for r in range(len(problem["capacity"]))]


def fill(problem, begin, speed):
    """Progressive filling, event by event: user i rises at `speed[i]` tasks a level from level `begin[i]`
    until he has all he wants or a resource he demands is used up."""
    users, rows = problem["users"], shares(problem)
    n, m = len(users), len(problem["capacity"])
    level, tasks = ZERO, [ZERO] * n
    full, stopped = set(), [u["tasks"] == 0 for u in users]
    while not all(stopped):
        moving = [i for i in range(n) if not stopped[i] and begin[i] <= level]
        slope = [sum((speed[i] * rows[i][r] for i in moving), ZERO) for r in range(m)]
        used = loads(problem, tasks)
        steps = [(ONE - used[r]) / slope[r] for r in range(m) if slope[r] > 0 and r not in full]
        steps += [(users[i]["tasks"] - tasks[i]) / speed[i] for i in moving if users[i]["tasks"] is not None]
        steps += [begin[i] - level for i in range(n) if not stopped[i] and begin[i] > level]
        step = min(steps)
        level += step
        for i in moving:
            tasks[i] += step * speed[i]
        full = {r for r, load in enumerate(loads(problem, tasks)) if load == 1}
        for i in range(n):
            done = users[i]["tasks"] is not None and tasks[i] == users[i]["tasks"]
            stopped[i] = stopped[i] or done or any(rows[i][r] for r in full)
    return tasks


def drf(problem):
    speed = [u["weight"] / max(row) for u, row in zip(problem["users"], shares(problem))]
    return fill(problem, [ZERO] * len(speed), speed)


def asset(problem):
    speed = [u["weight"] / sum(row) for u, row in zip(problem["users"], shares(problem))]
    return fill(problem, [ZERO] * len(speed), speed)


def sdrf(problem):
    speed = [u["weight"] / max(row) for u, row in zip(problem["users"], shares(problem))]
    return fill(problem, [max(u["commitment"]) / u["weight"] for u in problem["users"]], speed)


def solve(matrix, right):
    """The one solution of a square system, or None."""
    n = len(matrix)
    rows = [list(row) + [b] for row, b in zip(matrix, right)]
    for c in range(n):
        pivot = next((r for r in range(c, n) if rows[r][c] != 0), None)
        if pivot is None:
            return None
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [v / rows[c][c] for v in rows[c]]
        for r in range(n):
            if r != c and rows[r][c] != 0:
                rows[r] = [a - rows[r][c] * b for a, b in zip(rows[r], rows[c])]
    return [row[n] for row in rows]


def wants_more(user, x):
    return user["tasks"] is None or x < user["tasks"]


def is_bmf(problem, tasks):
    users, rows, load = problem["users"], shares(problem), loads(problem, tasks)
    if any(v > 1 for v in load) or any(x < 0 or (u["tasks"] is not None and x > u["tasks"]) for u, x in zip(users, tasks)):
        return False
    normal = [[x * d / u["weight"] for d in row] for u, x, row in zip(users, tasks, rows)]
    full = [r for r, v in enumerate(load) if v == 1]
    return all(
        not wants_more(u, x) or any(rows[i][r] > 0 and normal[i][r] == max(o[r] for o in normal) for r in full)
        for i, (u, x) in enumerate(zip(users, tasks))
    )


def all_bmf(problem):
    """Every bottleneck max fair point that one assignment of users to resources (or to "has all") fixes."""
    users, rows = problem["users"], shares(problem)
    choices = [
        ([None] if u["tasks"] is not None else []) + [r for r, d in enumerate(row) if d > 0] for u, row in zip(users, rows)
    ]
    found = []
    for assigned in product(*choices):
        on = sorted({r for r in assigned if r is not None})
        matrix, right = [], []
        for j in on:
            line, rest = dict.fromkeys(on, ZERO), ONE
            for u, row, r in zip(users, rows, assigned):
                if r is None:
                    rest -= u["tasks"] * row[j]
                else:
                    line[r] += u["weight"] * row[j] / row[r]
            matrix.append([line[k] for k in on])
            right.append(rest)
        levels = solve(matrix, right) if on else []
        if levels is None:
            continue
        level = dict(zip(on, levels))
        tasks = [
            u["tasks"] if r is None else u["weight"] * level[r] / row[r] for u, row, r in zip(users, rows, assigned)
        ]
        if is_bmf(problem, tasks) and tasks not in found:
            found.append(tasks)
    return found


def worst_first(problem, tasks):
    """Dominant shares for weight, least first: what the choice among several points goes by."""
    return sorted(x * max(row) / u["weight"] for u, x, row in zip(problem["users"], tasks, shares(problem)))


class Baa:
    """The linear program of bottleneck-aware allocation over the classes' levels, users without limits."""

    def __init__(self, problem, sharing_incentive):
        users, rows = problem["users"], shares(problem)
        m = len(problem["capacity"])
        self.dominant = [max(range(m), key=lambda r: (row[r], -r)) for row in rows]
        self.classes = sorted(set(self.dominant))
        self.rows = []  # factors over classes, "<=" right side
        at = {b: k for k, b in enumerate(self.classes)}
        self.load = [[ZERO] * len(self.classes) for _ in range(m)]
        for u, row, b in zip(users, rows, self.dominant):
            for r in range(m):
                self.load[r][at[b]] += u["weight"] * row[r] / row[b]
        for line in self.load:
            self.rows.append((line, ONE))
        for u, row, b in zip(users, rows, self.dominant):
            for other in self.classes:
                # On `other`, this user's share for his weight stays within the level of `other`.
                if other != b:
                    line = [ZERO] * len(self.classes)
                    line[at[b]] += row[other] / row[b]
                    line[at[other]] -= ONE
                    self.rows.append((line, ZERO))
        least = ONE / sum(u["weight"] for u in users) if sharing_incentive else ZERO
        for k in range(len(self.classes)):
            line = [ZERO] * len(self.classes)
            line[k] = -ONE
            self.rows.append((line, -least))
        self.objective = [sum(line[k] for line in self.load) for k in range(len(self.classes))]

    def holds(self, levels):
        return all(sum(a * x for a, x in zip(line, levels)) <= right for line, right in self.rows)

    def vertices(self):
        for chosen in combinations(self.rows, len(self.classes)):
            levels = solve([line for line, _ in chosen], [right for _, right in chosen])
            if levels is not None and self.holds(levels):
                yield levels

    def value(self, levels):
        return sum(a * x for a, x in zip(self.objective, levels))

    def levels_of(self, problem, tasks):
        """The classes' levels an allocation has, or None if a class has several."""
        seen = {}
        for u, row, x, b in zip(problem["users"], shares(problem), tasks, self.dominant):
            if seen.setdefault(b, x * row[b] / u["weight"]) != x * row[b] / u["weight"]:
                return None
        return [seen[b] for b in self.classes]


def properties(problem, tasks, slack=ZERO):
    """Each property, yes or no, `slack` being how much counts as equal."""
    users, rows, load = problem["users"], shares(problem), loads(problem, tasks)
    total = sum(u["weight"] for u in users)
    n = len(users)
    low = ONE - slack
    wants = [u["tasks"] is None or x < u["tasks"] * low for u, x in zip(users, tasks)]
    full = [v >= low for v in load]
    fits = [u["weight"] / total / max(row) for u, row in zip(users, rows)]
    fits = [f if u["tasks"] is None else min(f, u["tasks"]) for f, u in zip(fits, users)]

    def from_bundle(i, k):
        scale = users[i]["weight"] / users[k]["weight"]
        runs = min(rows[k][r] * tasks[k] * scale / rows[i][r] for r in range(len(full)) if rows[i][r])
        return runs if users[i]["tasks"] is None else min(runs, users[i]["tasks"])

    return {
        "feasible": all(v * low <= 1 for v in load)
        and all(x >= 0 and (u["tasks"] is None or x * low <= u["tasks"]) for u, x in zip(users, tasks)),
        "pareto": all(not wants[i] or any(f and rows[i][r] for r, f in enumerate(full)) for i in range(n)),
        "sharing_incentive": all(tasks[i] >= fits[i] * low for i in range(n)),
        "envy_free": all(from_bundle(i, k) * low <= tasks[i] for i in range(n) for k in range(n) if i != k),
        "no_justified_complaint": all(
            not wants[i] or any(f and tasks[i] * rows[i][r] >= users[i]["weight"] / total - slack for r, f in enumerate(full))
            for i in range(n)
        ),
    }
