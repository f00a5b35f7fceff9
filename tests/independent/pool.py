#!/usr/bin/env python3
"""The pool simulation once more, from its description alone.

This program shares no code and no number format with evenhand. It was written from the text that
fixes what `evenhand study` must compute (the pool simulation's five rules, and the meaning of R),
so that two programs that agree are evidence that both read it right. Only the standard library.

Nothing here is rounded where an order depends on it: times are integer nanoseconds, amounts and
capacities are `Fraction`s, the keys of fifo, drf and asset are exact integers over one common
denominator. The keys of sdrf hold exponentials; they are kept as an exact rational part plus a
decimal part of DIGITS digits, so that keys that are equal by structure compare equal and keys that
differ by less than any double could show compare by their difference.

    pool.py TRACE.csv --policy drf --capacity 0.5 [--starts FILE]

prints the per-user numbers as one JSON document shaped like a run of `summary.json`.
"""

import argparse
import heapq
import json
import math
import sys
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import metrics

DIGITS = 80
# Two keys closer than this, relative to the parts they were computed from, are the same key: the
# parts carry DIGITS digits, so anything this close is the rounding of equal values.
TIE = Decimal(10) ** -60
# A program of some 36 digits cannot be asked to see a difference this small beside the commitments
# it is one of: two users alike in all but what one of them did a hundred half-lives ago. The time
# of the first choice that hangs on such a difference is reported.
HAIR = Decimal(10) ** -32
# How far apart two keys in doubles must be before the doubles are trusted.
DOUBLE_MARGIN = 1e-9

NS_PER_US = 1000
NS_PER_S = 1_000_000_000


class Trace:
    """Tasks in order of submission (ties in file order); users numbered by first appearance in it."""

    def __init__(self, rows):
        # rows: (submit_ns, start_ns, finish_ns, user, (amount, ...)) in file order.
        order = sorted(range(len(rows)), key=lambda i: rows[i][0])
        numbers = {}
        for i in order:
            numbers.setdefault(rows[i][3], len(numbers))
        self.users = list(numbers)
        self.submit = [rows[i][0] for i in order]
        self.start = [rows[i][1] for i in order]
        self.duration = [rows[i][2] - rows[i][1] for i in order]
        self.user = [numbers[rows[i][3]] for i in order]
        self.amounts = [rows[i][4] for i in order]
        self.resources = len(self.amounts[0]) if rows else 0

    def mean_use(self):
        """R: what ran on average between the first original start and the last original finish."""
        first = min(self.start)
        last = max(s + d for s, d in zip(self.start, self.duration))
        period = last - first
        use = [Fraction(0)] * self.resources
        for amounts, duration in zip(self.amounts, self.duration):
            for r, amount in enumerate(amounts):
                use[r] += amount * duration
        return [u / period if period else Fraction(0) for u in use]

    def last_event(self):
        """The last original event: a submission or a finish."""
        return max(max(self.submit), max(s + d for s, d in zip(self.start, self.duration)))


def read_trace(path):
    """Reads submit,start,finish (us),user,task,cpu,mem; a header is skipped."""
    rows = []
    parsed = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\r\n").split(",")
            if not rows and fields[0] == "submit_us":
                continue
            times = [int(t) * NS_PER_US for t in fields[:3]]
            # Traces repeat few amounts: a Fraction a text, not a Fraction a row.
            amounts = tuple(parsed.setdefault(t, Fraction(t)) for t in fields[5:7])
            rows.append((*times, fields[3], amounts))
    return Trace(rows)


def read_weights(path, users):
    """Reads lines of user,weight; users who are not named weigh 1."""
    weights = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            user, weight = line.rstrip("\n").rsplit(",", 1)
            weights[user] = Fraction(weight)
    return [weights.get(user, Fraction(1)) for user in users]


class Fifo:
    """fifo: the user whose first waiting task was submitted earliest."""

    def __init__(self, trace, capacity, weights, decay):
        del trace, capacity, weights, decay

    def started(self, user, amounts, now):
        pass

    finished = started

    def least(self, candidates, now):
        # The place of the first waiting task is the key and decides ties.
        return min(candidates)[1]


class Instantaneous:
    """A key of what is held now: drf and asset."""

    combine = None

    def __init__(self, trace, capacity, weights, decay):
        del decay
        users, mean = len(trace.users), sum(weights) / len(weights)
        # o_r / w = held_r * scale[user][r]. One common denominator makes all of them integers.
        scale = [[mean / (c * w) for c in capacity] for w in weights]
        amounts = {a for task in trace.amounts for a in task}
        whole = math.lcm(*(x.denominator for row in scale for x in row))
        self.unit = math.lcm(*(a.denominator for a in amounts))
        self.scale = [[int(x * whole) for x in row] for row in scale]
        self.held = [[0] * len(capacity) for _ in range(users)]
        self.keys = [0] * users

    def change(self, user, amounts, sign):
        held = self.held[user]
        for r, amount in enumerate(amounts):
            held[r] += sign * amount.numerator * (self.unit // amount.denominator)
        self.keys[user] = self.combine(h * s for h, s in zip(held, self.scale[user]))

    def started(self, user, amounts, now):
        self.change(user, amounts, 1)

    def finished(self, user, amounts, now):
        self.change(user, amounts, -1)

    def least(self, candidates, now):
        keys = self.keys
        return min((keys[user], task, user) for task, user in candidates)[2]


class Drf(Instantaneous):
    """drf: max over resources of o_r / w."""

    combine = staticmethod(max)


class Asset(Instantaneous):
    """asset: sum over resources of o_r / w."""

    combine = staticmethod(sum)


class Value:
    """A number: an exact rational plus a decimal that may be far smaller.

    `scale` is the size of what was rounded to get there: the commitment, or its distance to the
    overuse it moves to, whichever is less.
    """

    __slots__ = ("exact", "small", "scale")

    def __init__(self, exact, small, scale):
        self.exact = exact
        self.small = small
        self.scale = scale

    def is_a_hair_from(self, other):
        """Whether the two differ, but hardly."""
        total = to_decimal(self.exact - other.exact) + self.small - other.small
        return self.compare(other) != 0 and abs(total) < HAIR * max(self.scale, other.scale)

    def compare(self, other):
        """-1, 0 or 1."""
        exact = self.exact - other.exact
        small = self.small - other.small
        noise = TIE * max(abs(self.small), abs(other.small))
        if not exact:
            return 0 if abs(small) <= noise else (1 if small > 0 else -1)
        exact = to_decimal(exact)
        total = exact + small
        if abs(total) <= TIE * max(abs(exact), abs(small), abs(self.small), abs(other.small)):
            return 0
        return 1 if total > 0 else -1


def to_decimal(fraction):
    return Decimal(fraction.numerator) / Decimal(fraction.denominator)


def largest(values):
    best = None
    for value in values:
        if best is None or value.compare(best) > 0:
            best = value
    return best


class Sdrf:
    """sdrf: max over resources of (o_r + c_r) / w, or (max o + max c) / w.

    Between changes of what a user holds its overuse b = max(o - entitlement, 0) is constant and its
    commitment is c(t) = b + (c(t0) - b) exp(-(t - t0) / tau): paper 001, Eq. 6.
    """

    dominant = False

    def __init__(self, trace, capacity, weights, decay):
        users, total = len(trace.users), sum(weights)
        self.capacity = capacity
        self.entitlement = [w / total for w in weights]
        self.weight = [w * users / total for w in weights]
        self.weight_f = [float(w) for w in self.weight]
        width = range(len(capacity))
        self.tau_ns = decay
        self.tau_ns_f = float(decay)
        self.held = [[Fraction(0)] * len(capacity) for _ in range(users)]
        self.share = [[Fraction(0) for _ in width] for _ in range(users)]
        self.overuse = [[Fraction(0) for _ in width] for _ in range(users)]
        # c at `since` is `base` + `rest`: the overuse in force until then, exactly, and the rest to
        # DIGITS digits. During one instant c stands still however much starts and finishes.
        self.base = [[Fraction(0) for _ in width] for _ in range(users)]
        self.rest = [[Decimal(0) for _ in width] for _ in range(users)]
        # c - b at `since`.
        self.gap = [[Decimal(0) for _ in width] for _ in range(users)]
        self.since = [trace.submit[0] if trace.submit else 0] * users
        self.doubles = [([0.0] * len(capacity), [0.0] * len(capacity), [0.0] * len(capacity)) for _ in range(users)]
        self.hair = None
        self.now = None
        self.factors = {}
        self.values = {}
        self.keys_f = {}

    def factor(self, since, now):
        """exp(-(now - since) / tau)."""
        if self.now != now:
            self.now = now
            self.factors.clear()
            self.values.clear()
            self.keys_f.clear()
        elapsed = now - since
        if elapsed not in self.factors:
            self.factors[elapsed] = (-Decimal(elapsed) / self.tau_ns).exp()
        return self.factors[elapsed]

    def settle(self, user, amounts, now, sign):
        """Brings the commitment of `user` up to now, then changes what it holds."""
        factor = self.factor(self.since[user], now)
        held, share, overuse, gap = self.held[user], self.share[user], self.overuse[user], self.gap[user]
        base, rest = self.base[user], self.rest[user]
        for r, amount in enumerate(amounts):
            if now > self.since[user]:
                base[r], rest[r] = overuse[r], gap[r] * factor
            held[r] += sign * amount
            share[r] = held[r] / self.capacity[r]
            overuse[r] = max(share[r] - self.entitlement[user], Fraction(0))
            gap[r] = rest[r] + to_decimal(base[r] - overuse[r])
        self.since[user] = now
        self.doubles[user] = ([float(x) for x in share], [float(x) for x in overuse], [float(x) for x in gap])
        self.values.pop(user, None)
        self.keys_f.pop(user, None)

    def started(self, user, amounts, now):
        self.settle(user, amounts, now, 1)

    def finished(self, user, amounts, now):
        self.settle(user, amounts, now, -1)

    def key_f(self, user, now):
        share, overuse, gap = self.doubles[user]
        factor = math.exp((self.since[user] - now) / self.tau_ns_f)
        commitment = [max(b + g * factor, 0.0) for b, g in zip(overuse, gap)]
        if self.dominant:
            key = max(share) + max(commitment)
        else:
            key = max(o + c for o, c in zip(share, commitment))
        return key / self.weight_f[user]

    def value(self, user, now):
        factor = self.factor(self.since[user], now)
        share, overuse, gap = self.share[user], self.overuse[user], self.gap[user]
        gap = [g * factor for g in gap]
        scale = [min(abs(g), abs(to_decimal(b) + g)) for b, g in zip(overuse, gap)]
        if self.dominant:
            commitment = largest(Value(b, g, s) for b, g, s in zip(overuse, gap, scale))
            key = Value(max(share) + commitment.exact, commitment.small, commitment.scale)
        else:
            key = largest(Value(o + b, g, s) for o, b, g, s in zip(share, overuse, gap, scale))
        weight = self.weight[user]
        return Value(key.exact / weight, key.small / to_decimal(weight), key.scale / to_decimal(weight))

    def least(self, candidates, now):
        self.factor(now, now)
        near, bound = [], math.inf
        keys = self.keys_f
        for candidate in candidates:
            user = candidate[1]
            key = keys.get(user)
            if key is None:
                key = keys[user] = self.key_f(user, now)
            if key <= bound:
                near.append((key, candidate))
                bound = min(bound, key + DOUBLE_MARGIN * (abs(key) + 1e-300))
        near = [candidate for key, candidate in near if key <= bound]
        if len(near) == 1:
            return near[0][1]
        best = None
        for candidate in sorted(near):
            user = candidate[1]
            value = self.values.get(user)
            if value is None:
                value = self.values[user] = self.value(user, now)
            if best is None:
                best = (value, user)
                continue
            if self.hair is None and value.is_a_hair_from(best[0]):
                self.hair = now
            if value.compare(best[0]) < 0:
                best = (value, user)
        return best[1]


class SdrfDominant(Sdrf):
    dominant = True


POLICIES = {"fifo": Fifo, "drf": Drf, "asset": Asset, "sdrf": Sdrf, "sdrf-dominant": SdrfDominant}


def tau_ns(delta=None, half_life_s=None):
    """The time constant in nanoseconds: -1 s / ln(delta), or the half-life over ln 2."""
    if half_life_s is not None:
        return to_decimal(half_life_s) * NS_PER_S / Decimal(2).ln()
    return Decimal(-NS_PER_S) / to_decimal(delta).ln()


def simulate(trace, capacity, policy, blocking=True, end=None):
    """Start times in ns (None: not started, "rejected": larger than the pool), and the last instant."""
    rejected = [any(a > c for a, c in zip(task, capacity)) for task in trace.amounts]
    starts = [None] * len(trace.submit)
    queues = [[] for _ in trace.users]
    heads = [0] * len(trace.users)
    waiting = set()
    free = list(capacity)
    running = []
    arrived, last = 0, trace.submit[0] if trace.submit else 0
    fits = lambda task: all(a <= f for a, f in zip(trace.amounts[task], free))
    while True:
        times = ([trace.submit[arrived]] if arrived < len(trace.submit) else []) + ([running[0][0]] if running else [])
        now = min(times, default=None)
        if now is None:
            break
        if end is not None and now > end:
            # Stopped while something was running or still to come: the run lasts until its end.
            last = end
            break
        last = now
        while running and running[0][0] == now:
            _, task = heapq.heappop(running)
            free = [f + a for f, a in zip(free, trace.amounts[task])]
            policy.finished(trace.user[task], trace.amounts[task], now)
        while arrived < len(trace.submit) and trace.submit[arrived] == now:
            if rejected[arrived]:
                starts[arrived] = "rejected"
            else:
                queues[trace.user[arrived]].append(arrived)
                waiting.add(trace.user[arrived])
            arrived += 1
        while waiting:
            # Tasks are numbered by submission, then by place in the file: a task's number decides ties.
            candidates = [(queues[u][heads[u]], u) for u in waiting]
            if not blocking:
                candidates = [c for c in candidates if fits(c[0])]
                if not candidates:
                    break
            user = policy.least(candidates, now)
            task = queues[user][heads[user]]
            if not fits(task):
                break
            heads[user] += 1
            if heads[user] == len(queues[user]):
                waiting.discard(user)
            free = [f - a for f, a in zip(free, trace.amounts[task])]
            starts[task] = now
            heapq.heappush(running, (now + trace.duration[task], task))
            policy.started(user, trace.amounts[task], now)
    return starts, last


def seconds(ns):
    """A rational number of nanoseconds as seconds, rounded once."""
    return float(Fraction(ns) / NS_PER_S)


def measure(trace, capacity, starts, end):
    """The numbers of one run, as in summary.json."""
    origin = trace.submit[0]
    users = [{"name": name, "submitted": 0, "rejected": 0, "started": 0, "completed": 0} for name in trace.users]
    waits = [[] for _ in trace.users]
    slowdowns = [Fraction(0)] * len(trace.users)
    held = [Fraction(0)] * len(capacity)
    ten = 10 * NS_PER_S
    for task, start in enumerate(starts):
        if trace.submit[task] > end:
            continue
        user = users[trace.user[task]]
        user["submitted"] += 1
        user["rejected"] += start == "rejected"
        if start is None or start == "rejected":
            continue
        wait, run = start - trace.submit[task], trace.duration[task]
        user["started"] += 1
        user["completed"] += start + run <= end
        waits[trace.user[task]].append(wait)
        slowdowns[trace.user[task]] += max(Fraction(1), Fraction(wait + run, max(run, ten)))
        for r, amount in enumerate(trace.amounts[task]):
            held[r] += amount * (min(start + run, end) - start)
    means = []
    for user, mine, slowdown in zip(users, waits, slowdowns):
        mine.sort()
        n = len(mine)
        mean = Fraction(sum(mine), n) if n else None
        if n:
            means.append(mean)
        user["mean_wait_s"] = seconds(mean) if n else None
        # The least wait that at least 95 % of the tasks do not exceed.
        user["p95_wait_s"] = seconds(mine[-(-95 * n // 100) - 1]) if n else None
        user["mean_bounded_slowdown"] = float(slowdown / n) if n else None
        user["completion_ratio"] = user["completed"] / user["submitted"] if user["submitted"] else 0.0
    all_waits = [w for mine in waits for w in mine]
    squares = sum(m * m for m in means)
    period = end - origin
    return {
        "users": users,
        "mean_wait_s": seconds(Fraction(sum(all_waits), len(all_waits))) if all_waits else None,
        "users_mean_wait_s": seconds(sum(means) / len(means)) if means else None,
        "jain_wait": (float(sum(means) ** 2 / (len(means) * squares)) if squares else 1.0) if means else None,
        "utilization": [float(h / (c * period)) if period else 0.0 for h, c in zip(held, capacity)],
        "makespan_s": seconds(period),
    }


def run(trace, policy, capacity, weights=None, delta=None, half_life_s=None, blocking=True, until_trace_end=False):
    """Simulates `trace` once. `policy` is a key of POLICIES; capacity and weights are Fractions."""
    with localcontext(Context(prec=DIGITS, Emin=-(10**15), Emax=10**15)):
        weights = weights or [Fraction(1)] * len(trace.users)
        decay = tau_ns(delta, half_life_s) if policy.startswith("sdrf") else None
        ordering = POLICIES[policy](trace, capacity, weights, decay)
        end = trace.last_event() if until_trace_end else None
        starts, last = simulate(trace, capacity, ordering, blocking, end)
        ours = {**measure(trace, capacity, starts, last), "hair_ns": getattr(ordering, "hair", None)}
        return starts, {**ours, "metrics": metrics.measure(trace, capacity, starts, last)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--policy", choices=["fifo", "drf", "asset", "sdrf"], default="drf")
    parser.add_argument("--capacity", required=True, help="a multiple of R, or cpu,mem in the trace's units")
    parser.add_argument("--delta", type=Fraction, default=Fraction("0.999999"))
    parser.add_argument("--half-life", type=Fraction, help="seconds; instead of --delta")
    parser.add_argument("--sdrf-key", choices=["sum", "dominant"], default="sum")
    parser.add_argument("--weights", help="a file of user,weight")
    parser.add_argument("--no-blocking", action="store_true")
    parser.add_argument("--until", choices=["finished", "trace-end"], default="finished")
    parser.add_argument("--starts", help="also write each task's start in ns, one a line, in order of submission")
    args = parser.parse_args()
    trace = read_trace(args.trace)
    asked = [Fraction(x) for x in args.capacity.split(",")]
    capacity = asked if len(asked) > 1 else [asked[0] * r for r in trace.mean_use()]
    policy = "sdrf-dominant" if (args.policy, args.sdrf_key) == ("sdrf", "dominant") else args.policy
    weights = read_weights(args.weights, trace.users) if args.weights else None
    starts, record = run(
        trace, policy, capacity, weights, args.delta, args.half_life, not args.no_blocking, args.until == "trace-end"
    )
    if args.starts:
        with open(args.starts, "w", encoding="utf-8") as file:
            file.writelines(f"{'' if start is None else start}\n" for start in starts)
    # Exact fractions by pair, which JSON has not.
    del record["metrics"]
    record = {"policy": args.policy, "capacity": [float(c) for c in capacity], **record}
    json.dump(record, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
