"""Waits against use and resource waste of a run, from docs/src/reference/metrics.md alone: exact fractions, no code shared with evenhand."""

from fractions import Fraction

NS_PER_S = 1_000_000_000


def areas(trace, capacity, starts):
    """By user: started tasks, total wait, squashed area by CPU and by PE, in seconds. Resource 0 is processors."""
    users = [[0, Fraction(0), Fraction(0), Fraction(0)] for _ in trace.users]
    for task, start in enumerate(starts):
        if not isinstance(start, int):
            continue
        run = Fraction(trace.duration[task], NS_PER_S)
        part = max(amount / c for amount, c in zip(trace.amounts[task], capacity))
        sums = users[trace.user[task]]
        sums[0] += 1
        sums[1] += Fraction(start - trace.submit[task], NS_PER_S)
        sums[2] += run * trace.amounts[task][0]
        sums[3] += run * part * capacity[0]
    return users


def spread(nuwt):
    """Mean, variance and F of the users' NUWT."""
    if not nuwt:
        return None
    mean = sum(nuwt) / len(nuwt)
    variance = sum((x - mean) ** 2 for x in nuwt) / len(nuwt)
    return {"users": len(nuwt), "mean": mean, "variance": variance, "fairness": sum((1 + mean - x) ** 2 for x in nuwt)}


def smallest_part(trace, resource):
    """The power of ten that all amounts of a resource are whole multiples of, at most 1."""
    part = Fraction(1)
    while any((amounts[resource] / part).denominator != 1 for amounts in trace.amounts):
        part /= 10
    return part


def waste(trace, capacity, starts, end):
    """How long something waited; idle meanwhile by resource; stranded by ordered pair: amounts times seconds."""
    width = len(capacity)
    # What tasks can hold of a fraction: whole smallest parts.
    parts = [smallest_part(trace, r) for r in range(width)]
    has = [c // part * part for c, part in zip(capacity, parts)]
    changes = {}
    for task, start in enumerate(starts):
        submit = trace.submit[task]
        if start == "rejected" or submit > end:
            continue
        begun = end if start is None else start
        for t, sign in ((submit, 1), (begun, -1)):
            changes.setdefault(t, []).append((sign, None))
        if start is not None:
            for t, sign in ((start, -1), (start + trace.duration[task], 1)):
                changes.setdefault(t, []).append((sign, trace.amounts[task]))
    queued, idle = 0, [Fraction(0)] * width
    stranded = {(a, b): Fraction(0) for a in range(width) for b in range(width) if a != b}
    free, waiting, before = list(has), 0, None
    for t in sorted(changes):
        if t > end:
            break
        if waiting:
            length = t - before
            queued += length
            for a in range(width):
                idle[a] += free[a] * length
            for a, b in stranded:
                stranded[a, b] += max(0, free[a] - free[b] * has[a] / has[b]) * length
        for sign, amounts in changes[t]:
            if amounts is None:
                waiting += sign
            else:
                free = [f + sign * amount for f, amount in zip(free, amounts)]
        before = t
    return queued, idle, stranded


def measure(trace, capacity, starts, end):
    """All of it, as in summary.json."""
    users = areas(trace, capacity, starts)
    nuwt = {
        name: [wait / max(1, area[which]) if started else None for started, wait, *area in users]
        for which, name in enumerate(("nuwt_per_cpu", "nuwt_per_pe"))
    }
    queued, idle, stranded = waste(trace, capacity, starts, end)
    period = end - trace.submit[0]
    share = lambda r, area: area / (capacity[r] * period) if period else Fraction(0)
    return {
        "users": [
            {
                "total_wait_s": float(wait),
                "squashed_area_cpu_s": float(cpu),
                "squashed_area_pe_s": float(pe),
                **{name: None if x[user] is None else float(x[user]) for name, x in nuwt.items()},
            }
            for user, (_, wait, cpu, pe) in enumerate(users)
        ],
        "spreads": {name: spread([x for x in of if x is not None]) for name, of in nuwt.items()},
        "queued_s": queued / NS_PER_S,
        "idle": [float(share(r, area)) for r, area in enumerate(idle)],
        "stranded": {
            pair: (float(area / NS_PER_S), float(share(pair[0], area))) for pair, area in stranded.items()
        },
    }


def differences(ours, record, names, close):
    """Sentences where `record`, a run of summary.json, says something else; `close` compares two numbers."""
    for user, theirs in zip(ours["users"], record["users"], strict=True):
        for name, value in user.items():
            if not close(value, theirs[name]):
                yield f"{name} of {theirs['name']} is {theirs[name]}, expected {value}"
    for name, spread in ours["spreads"].items():
        theirs = record[name]
        if spread is None or theirs is None:
            if theirs is not spread:
                yield f"{name} is {theirs}, expected {spread}"
            continue
        # A variance near 0 is the difference of numbers that are not.
        least = float(spread["mean"]) ** 2 * 1e-12
        near = abs(theirs["variance"] - float(spread["variance"])) <= least
        if not near and not close(float(spread["variance"]), theirs["variance"]):
            yield f"variance of {name} is {theirs['variance']}, expected {float(spread['variance'])}"
        if not close(theirs["standard_deviation"] ** 2, theirs["variance"]):
            yield f"standard deviation of {name} is {theirs['standard_deviation']}, of a variance of {theirs['variance']}"
        for field in ("users", "mean", "fairness"):
            if not close(float(spread[field]), theirs[field]):
                yield f"{field} of {name} is {theirs[field]}, expected {float(spread[field])}"
    theirs = record["waste"]
    if not close(ours["queued_s"], theirs["queued_s"]):
        yield f"queued_s is {theirs['queued_s']}, expected {ours['queued_s']}"
    for value, name in zip(ours["idle"], names):
        if not close(value, theirs["idle_while_queued"][name]):
            yield f"idle {name} is {theirs['idle_while_queued'][name]}, expected {value}"
    pairs = {(names.index(p["resource"]), names.index(p["lacking"])): (p["amount_s"], p["share"]) for p in theirs["stranded"]}
    if pairs.keys() != ours["stranded"].keys():
        yield f"stranded pairs are {sorted(pairs)}"
        return
    for pair, values in ours["stranded"].items():
        if not all(close(a, b) for a, b in zip(values, pairs[pair])):
            yield f"stranded {names[pair[0]]} for want of {names[pair[1]]} is {pairs[pair]}, expected {values}"
