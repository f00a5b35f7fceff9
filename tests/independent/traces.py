"""Small traces made to be awkward, and what to ask of them.

A pool simulation goes wrong where many things are equal, where one thing is far smaller than the
rest, or where nothing happens for long. Each case here leans on one of these on purpose; the rest
of its numbers are drawn at random from the seed.
"""

import random
from dataclasses import dataclass, field

US = 1_000_000
DELTAS = ["0.9", "0.99", "0.999999", "0.9999999"]


@dataclass
class Case:
    """A trace and one study of it."""

    name: str
    # (submit_us, start_us, finish_us, user, task, cpu, mem), amounts as text.
    rows: list
    capacities: list
    deltas: list
    # user -> weight as text
    weights: dict = field(default_factory=dict)
    dominant_key: bool = False
    blocking: bool = True
    until_trace_end: bool = False
    # --half-life instead of --delta, as (text, seconds).
    half_life: tuple = None
    # cpu and mem of an absolute pool as text, instead of multiples of R.
    pool: tuple = None

    def text(self):
        return "".join(",".join(map(str, row)) + "\n" for row in self.rows)


SIZES = {
    "quantised": ["0.0625", "0.125", "0.25", "0.5"],
    "binary_unfriendly": ["0.1", "0.2", "0.3", "0.4", "0.7"],
    "nine_decimals": ["0.333333333", "0.333333334", "0.111111111", "0.999999999", "0.000000001"],
    "whole": ["1", "2", "3", "5", "8"],
    "one_size": ["0.25"],
    "with_zero": ["0", "0.25", "0.5"],
    "wide": ["0.000000001", "0.001", "1", "1000", "1000000"],
}

ARRIVALS = ["at_zero", "few_instants", "microseconds", "seconds", "idle_gaps", "poisson"]
DURATIONS = ["equal", "quantised", "with_zero", "heavy", "microsecond_apart"]


def submit_us(rng, arrivals, at):
    if arrivals == "at_zero":
        return 0
    if arrivals == "few_instants":
        return rng.choice([0, 10, 20, 30]) * US
    if arrivals == "microseconds":
        return at + rng.choice([0, 0, 1, 1, 2])
    if arrivals == "seconds":
        return at + rng.choice([0, 0, 1, 2]) * US
    if arrivals == "idle_gaps":
        return at + (rng.choice([10, 1000, 100_000, 3_000_000]) * US if rng.random() < 0.05 else rng.choice([0, 0, US]))
    return at + int(rng.expovariate(1 / (2 * US)))


def duration_us(rng, durations):
    if durations == "equal":
        return 10 * US
    if durations == "quantised":
        return rng.choice([5, 10, 20, 40]) * US
    if durations == "with_zero":
        return rng.choice([0, 0, 1, 10 * US])
    if durations == "heavy":
        return int(US * 2 ** rng.uniform(-10, 12))
    return 10 * US + rng.choice([-1, 0, 0, 1])


def case(seed, number):
    """Case `number` of the series with this seed."""
    rng = random.Random(f"{seed}/{number}")
    sizes, arrivals, durations = rng.choice(sorted(SIZES)), rng.choice(ARRIVALS), rng.choice(DURATIONS)
    users = rng.choice([1, 2, 2, 3, 5, 8, 20])
    tasks = rng.choice([1, 2, 10, 60, 200, 400])
    tail = rng.choice([0.0, 1.0, 2.5])
    popularity = [(i + 1) ** -tail for i in range(users)]
    modes = [(rng.choice(SIZES[sizes]), rng.choice(SIZES[sizes])) for _ in range(users)]
    equal_users = rng.random() < 0.3
    own_mode = rng.random() < 0.5
    rows, at, n = [], 0, 0
    while n < tasks:
        at = submit_us(rng, arrivals, at)
        cpu, mem = rng.choice(SIZES[sizes]), rng.choice(SIZES[sizes])
        if "wide" == sizes and rng.random() < 0.8:
            cpu, mem = "1", "1"
        duration = duration_us(rng, durations)
        started = at + rng.choice([0, 0, 1, US, 100 * US])
        # Every user submits the same task at the same instant, so that all keys are tied.
        who = range(users) if equal_users else rng.choices(range(users), popularity)
        for user in who:
            c, m = modes[user] if own_mode and not equal_users else (cpu, mem)
            rows.append([at, started, started + duration, f"u{user}", f"t{n}", c, m])
            n += 1
    if rng.random() < 0.15:
        # File order is then not submission order.
        rng.shuffle(rows)
    if all(row[2] == row[1] for row in rows):
        # Without a run time there is no mean use to measure.
        rows[0][2] += 10 * US
    for resource in (5, 6):
        if all(float(row[resource]) * (row[2] - row[1]) == 0 for row in rows):
            row = max(rows, key=lambda r: r[2] - r[1])
            row[resource] = "0.25"
    if any(row[5] == "0" and row[6] == "0" for row in rows) and rng.random() < 0.5:
        rows[-1][6] = "0.5"
    weights = {}
    kind = rng.choice(["equal", "equal", "small", "thirds", "extreme"])
    if kind != "equal":
        choice = {
            "small": ["1", "2", "3"],
            "thirds": ["0.1", "0.3", "0.7", "1.1"],
            "extreme": ["0.000000001", "1", "1000000000"],
        }[kind]
        weights = {f"u{u}": rng.choice(choice) for u in range(users)}
    pool = None
    if rng.random() < 0.3:
        pool = tuple(rng.choice(["1", "0.5", "0.7", "0.3", "1.1", "3", "100"]) for _ in range(2))
    deltas = rng.sample(DELTAS, 2)
    half_life = None
    if rng.random() < 0.15:
        half_life = rng.choice([("8d", 8 * 86400), ("1h", 3600), ("7s", 7)])
    return Case(
        name=f"{number}: {sizes}, {arrivals}, {durations}, {users} users{', equal users' if equal_users else ''}, weights {kind}",
        rows=rows,
        capacities=[] if pool else rng.sample(["0.5", "0.75", "1", "1.3", "3", "0.01", "20"], 2),
        deltas=deltas,
        weights=weights,
        dominant_key=rng.random() < 0.4,
        blocking=rng.random() < 0.7,
        until_trace_end=rng.random() < 0.3,
        half_life=half_life,
        pool=pool,
    )
