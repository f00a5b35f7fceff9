#!/usr/bin/env python3
"""Holds each decision in a slurmctld's log against the rules of docs/src/reference/slurm-scheduler.md.

    tests/slurm/decisions.py DIR

DIR is what tests/slurm/fidelity.sh keeps of a run with --conf DebugFlags=Backfill,BackfillMap,Priority: slurm.conf, sacct.txt and
slurmctld.log. A schedule is chaotic: a job that starts a second later takes another node, and from
then on other jobs run. So nothing is simulated here but one decision at a time, from the state that the log shows before it:

    passes            which jobs the main scheduler starts (rule 6)
    runs of backfill  which jobs a run of backfill starts, and where (rules 7 to 13)
    planned starts    when and where a job can start on the nodes on which slurmctld tests it (rules 9 and 13)
    later starts      whether such a start is later than the instant up to which slurmctld puts the job off (rule 10)

Prints a line `name decisions same share` for each, and fails below 95 % of planned and later starts. Written from the rules,
and from slurmctld 22.05 and 24.11 (it reads the log of 26.05 too), without a look at the simulator. For jobs with a number of
nodes and as many processors on each, or with tasks on any nodes or on a number of them, without preemption, licences, features and reservations.
"""

import collections
import datetime
import re
import sys

DAY = 24 * 60 * 60
LIMIT_OF_TASKS = 20  # bf_max_job_array_resv
DEPTH = 100  # default_queue_depth


def seconds(text):
    return int(datetime.datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").timestamp())


class Cluster:
    """Nodes in their order, and the nodes of each partition."""

    def __init__(self, conf):
        self.names, self.processors, self.partitions, self.parameters = [], [], {}, {}
        for line in open(conf):
            words = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if line.startswith("NodeName=") and "CPUs" in words:
                self.names.append(words["NodeName"])
                self.processors.append(int(words["CPUs"]))
            elif line.startswith("SchedulerParameters="):
                pairs = words["SchedulerParameters"].split(",")
                self.parameters = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        for line in open(conf):
            words = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if line.startswith("PartitionName=") and "Nodes" in words:
                every = words["Nodes"] == "ALL"
                self.partitions[words["PartitionName"]] = list(range(len(self.names))) if every else self.list(words["Nodes"])
        self.resolution = int(self.parameters.get("bf_resolution", 60))

    def list(self, text):
        """The numbers of the nodes of a list such as a[1-3,7],b2."""
        found = []
        for prefix, several, one in re.findall(r"([a-z]+)(?:\[([0-9,-]+)\]|(\d+))", text):
            for part in (several or one).split(","):
                first, _, last = part.partition("-")
                found += [self.numbers[prefix + str(n)] for n in range(int(first), int(last or first) + 1)]
        return found


class Job:
    def __init__(self, row, cluster):
        self.id, self.partition = int(row["JobIDRaw"]), row["Partition"]
        self.array, _, self.task = row["JobID"].partition("_")
        requested = dict(pair.split("=") for pair in row["ReqTRES"].split(",") if "=" in pair)
        self.nodes = int(requested.get("node", 1))
        self.processors = int(requested["cpu"])
        self.each = self.processors // self.nodes
        self.limit = int(row["TimelimitRaw"]) * 60
        self.start, self.end = (seconds(row[key]) if row[key][0].isdigit() else None for key in ("Start", "End"))
        self.on = cluster.list(row["NodeList"]) if self.start else []
        held = sum(cluster.processors[n] for n in self.on)
        # Tasks of -n: on so many nodes with -N, else on any number.
        stated = re.search(r" -n (\d+) ", row.get("SubmitLine", "") + " ")
        self.tasks = int(stated[1]) if stated else 0
        self.has_nodes = " -N " in row.get("SubmitLine", "")
        # sacct has no column for --exclusive.
        self.is_exclusive = held == int(row["NCPUS"]) != self.processors


def read_jobs(path, cluster):
    lines = [line.rstrip("\n").split(";") for line in open(path)]
    return {job.id: job for job in (Job(dict(zip(lines[0], line)), cluster) for line in lines[1:])}


def consecutive(nodes):
    """Runs of nodes that follow each other."""
    runs = []
    for n in nodes:
        if runs and runs[-1][-1] + 1 == n:
            runs[-1].append(n)
        else:
            runs.append([n])
    return runs


class Rules:
    """What slurmctld decides in a state."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.by_interval = False

    def held(self, job, node):
        return self.cluster.processors[node] if job.is_exclusive else job.each

    def on(self, job, nodes, free):
        """How many processors a job holds on each of the nodes on which it starts, given what is free there."""
        if not job.tasks:
            return {n: self.held(job, n) for n in nodes}
        if job.has_nodes:
            # The nodes among which they were chosen are not known: those of the partition, or else only these.
            for among in (self.cluster.partitions[job.partition], nodes):
                found = self.choose_nodes(job, among, free)
                if found and set(found) == set(nodes):
                    return found
            return {n: job.processors // job.nodes for n in nodes}
        of_task, left, found = job.processors // job.tasks, job.tasks, {}
        # In the order in which nodes are chosen; as they come if these would not suffice by what is known.
        for n in self.order_for_tasks(job, nodes, free) or nodes:
            found[n] = min(free[n] // of_task, left) * of_task
            left -= found[n] // of_task
        return found

    def choose(self, job, nodes, free):
        """On which nodes a job starts with these free processors (_eval_nodes of select/cons_tres)."""
        if job.tasks and job.has_nodes:
            return sorted(self.choose_nodes(job, nodes, free) or []) or None
        if job.tasks:
            return sorted(self.order_for_tasks(job, nodes, free) or []) or None
        return self.choose_by_nodes(job, nodes, free)

    def order_for_tasks(self, job, nodes, free):
        able = {n: free[n] * job.tasks // job.processors for n in sorted(nodes)}
        runs, chosen, left = consecutive(n for n in able if able[n] > 0), [], job.tasks
        if sum(able.values()) < left:
            return None
        while left > 0:
            of_run = lambda run: sum(able[n] for n in run)
            sufficient = [run for run in runs if of_run(run) >= left]
            run = min(sufficient, key=of_run) if sufficient else max(runs, key=of_run)
            runs.remove(run)
            single = [n for n in run if able[n] >= left] if not chosen else []
            for n in [min(single, key=lambda n: (able[n], n))] if single else run:
                if left > 0:
                    chosen.append(n)
                    left -= able[n]
        return chosen

    def choose_nodes(self, job, nodes, free):
        """How many processors of tasks that have one each a job has on each of as many nodes as it names (choose_nodes)."""
        able = {n: free[n] for n in sorted(nodes) if free[n] > 0}
        found = self.eval_nodes(job, able)
        for least in range(1, max(able.values(), default=0)):
            if found or len(able) <= job.nodes:
                break
            for n in [n for n in able if able[n] <= least][: len(able) - job.nodes]:
                del able[n]
            found = self.eval_nodes(job, able)
        return found

    def eval_nodes(self, job, able):
        runs, found, wanted = consecutive(able), {}, job.processors
        while len(found) < job.nodes and runs:
            left = job.nodes - len(found)
            best = None
            for run in runs:
                processors = sum(able[n] for n in run)
                suffices = processors >= wanted and len(run) >= left
                if (
                    best is None
                    or (suffices and (not best[2] or processors < best[1]))
                    or (not suffices and processors > best[1])
                ):
                    best = (run, processors, suffices)
            runs.remove(best[0])
            run = best[0]
            if left == 1:
                run = sorted((n for n in run if able[n] >= wanted), key=lambda n: (able[n], n))[:1]
            for n in run:
                others = job.nodes - len(found) - 1
                if others < 0 or (others == 0 and able[n] < wanted):
                    continue
                found[n] = min(able[n], max(wanted - others, 1))
                wanted -= found[n]
        return found if len(found) == job.nodes and wanted <= 0 else None

    def choose_by_nodes(self, job, nodes, free):
        able = {n: free[n] for n in sorted(nodes) if free[n] >= (self.held(job, n) or 1)}
        if len(able) < job.nodes:
            return None
        runs = consecutive(able)
        chosen, wanted = [], job.processors
        while len(chosen) < job.nodes:
            left = job.nodes - len(chosen)
            best = None
            for run in runs:
                processors = sum(able[n] for n in run)
                suffices = processors >= wanted and len(run) >= left
                is_better = best is None or (
                    (not best[2] or processors < best[1]) if suffices else processors > best[1]
                )
                if is_better:
                    best = (run, processors, suffices)
            run = best[0]
            runs.remove(run)
            if left == 1:
                run = [min((n for n in run if able[n] >= wanted), key=lambda n: (able[n], n))]
            for n in run[:left]:
                rest = job.nodes - len(chosen) - 1
                wanted -= able[n] if job.is_exclusive else min(able[n], max(wanted - rest, job.each))
                chosen.append(n)
        return sorted(chosen)

    def will_run(self, job, nodes, now, state, begin, until):
        """When a job can start on these nodes and where, if running jobs end at their limits (_will_run_test).

        From 24.11 on what ends before begin is gone, and until, if there is such a time, no more ends.
        """
        free = list(state.free)
        found = self.choose(job, nodes, free)
        if found and (begin <= now or not self.by_interval):
            return now, found
        running = state.running.values()
        ends = sorted(((start + other.limit, other.id, other, on) for other, start, on in running), key=lambda end: end[:2])
        first, window, at = None, 30, 0
        if self.by_interval:
            while at < len(ends) and ends[at][0] < begin:
                for n, held in ends[at][3].items():
                    free[n] += held
                at += 1
            found = self.choose(job, nodes, free)
            if found:
                return now, found
        while True:
            last = None
            while at < len(ends) and not (self.by_interval and until and ends[at][0] > until):
                end, _, other, on = ends[at]
                at += 1
                if not set(on) & set(nodes):
                    continue
                first = first or end - end % 30 + 30
                last = end
                for n, held in on.items():
                    free[n] += held
                if at == len(ends) or ends[at][0] > first + window:
                    break
            if last is None:
                return None
            window *= 2
            while at < len(ends) and ends[at][0] > first + window:
                window *= 2
            found = self.choose(job, nodes, free)
            if found:
                return (last if last > now else max(last + 30, now + 1)), found

    def main_pass(self, state, is_full):
        """What a pass of the main scheduler starts: heads of arrays or jobs, with their nodes."""
        state, started, closed, looked = state.copy(), [], set(), 0
        shut = set()
        for head, pending in state.queue():
            job = pending.job
            nodes = self.cluster.partitions[job.partition]
            for _ in range(pending.left):
                looked += 1
                if not is_full and looked > DEPTH + 1:
                    return started
                if job.partition in closed:
                    break
                found = self.choose(job, [n for n in nodes if n not in shut], state.free)
                if not found:
                    closed.add(job.partition)
                    shut |= set(nodes)
                    break
                state.take(job, found)
                started.append((head, found))
        return started

    def backfill(self, state, now):
        """What a run of backfill starts."""
        state, table, started = state.copy(), Table(now, self.cluster.resolution), []
        for head, pending in state.queue():
            job, reserved, left = pending.job, 0, pending.left
            while left and reserved < min(left, LIMIT_OF_TASKS):
                plan = self.plan(job, now, state, table)
                if plan is None:
                    break
                start, nodes = plan
                if start <= now:
                    state.begin(-len(started) - 1, job, now, nodes)
                    if job.is_exclusive:
                        table.reserve(0, table.down(now + job.limit), nodes)
                    started.append((head, nodes))
                    left -= 1
                else:
                    table.reserve(table.down(start), table.down(start + job.limit), nodes)
                    reserved += 1
        return started

    def plan(self, job, now, state, table):
        at = now
        while True:
            of_partition = self.cluster.partitions[job.partition]
            nodes, later = table.look(at, at + job.limit, of_partition, self.by_interval)
            suffices = len(nodes) >= job.nodes
            found = self.will_run(job, nodes, now, state, at, later) if suffices else None
            start = found and max(found[0], at)
            if start is not None and start <= now:
                return found
            time = found and (table.down(start), table.down(start + job.limit))
            if self.by_interval and found and table.overlaps(*time, found[1]):
                at = start
            elif later and (start is None or start > later):
                at = later
            elif start is None or start > now + DAY:
                return None
            elif table.overlaps(*time, found[1]):
                at = start
            else:
                return start, found[1]


class Table:
    """Times with the nodes that are reserved (node_space of sched/backfill)."""

    def __init__(self, now, resolution):
        self.resolution = resolution
        self.records = [[self.down(now), self.down(now + DAY), frozenset()]]

    def down(self, time):
        return time // self.resolution * self.resolution

    def reserve(self, begin, end, nodes):
        records = self.records
        begin = max(begin, records[0][0])
        end = max(end, begin + self.resolution)
        at = next((i for i, record in enumerate(records) if record[1] >= begin), None)
        if at is None:
            return
        before = max(at - 1, 0)
        self.cut(at, begin)
        at, after = at + 1, None
        while at < len(records):
            self.cut(at, end)
            records[at][2] |= frozenset(nodes)
            if records[at][1] == end:
                after = at + 1
                break
            at += 1
        for i in range(before, len(records) - 1):
            if i == after:
                break
            if records[i][2] == records[i + 1][2]:
                records[i][1] = records.pop(i + 1)[1]
                break

    def cut(self, at, time):
        _, end, reserved = self.records[at]
        if end > time:
            self.records[at][1] = time
            self.records.insert(at + 1, [time, end, reserved])

    def look(self, begin, end, nodes, goes_beyond):
        """The nodes that are unreserved in that time, and when one more is."""
        left, later = set(nodes), None
        for at, (first, last, reserved) in enumerate(self.records):
            if last <= begin:
                continue
            if later is None and at + 1 < len(self.records):
                gained = set(nodes) - self.records[at + 1][2] - (left - reserved)
                later = last if gained else None
            if first > end:
                if goes_beyond and later is None and at + 2 < len(self.records):
                    later = self.records[at + 1][1]
                break
            left -= reserved
        return sorted(left), later

    def overlaps(self, begin, end, nodes):
        return any(last > begin and first < end and reserved & set(nodes) for first, last, reserved in self.records)


class Pending:
    def __init__(self, job, priority, submitted, left):
        self.job, self.priority, self.submitted, self.left = job, priority, submitted, left


class State:
    """What waits, by job or head of an array, and what runs."""

    def __init__(self, rules):
        self.rules, self.pending, self.running = rules, {}, {}
        self.free = list(rules.cluster.processors)

    def copy(self):
        other = State(self.rules)
        other.pending, other.running, other.free = self.pending, dict(self.running), list(self.free)
        return other

    def queue(self):
        waiting = [(head, pending) for head, pending in self.pending.items() if pending.left > 0]
        return sorted(waiting, key=lambda pair: (-pair[1].priority, pair[1].submitted, pair[0]))

    def take(self, job, nodes):
        """Takes what a job holds on nodes; how much that is on each."""
        on = self.rules.on(job, sorted(nodes), self.free)
        for n, held in on.items():
            self.free[n] -= held
        return on

    def begin(self, key, job, start, nodes):
        self.running[key] = (job, start, self.take(job, nodes))

    def finish(self, key):
        _, _, on = self.running.pop(key, (None, 0, {}))
        for n, held in on.items():
            self.free[n] += held


NAMES = ["passes", "runs of backfill", "planned starts", "later starts"]
JOB = r"JobId=(\d+)(?:_\S+?)?(?:\((\d+)\))?"


class Replay:
    """Goes through the log, and compares what follows each state."""

    def __init__(self, folder):
        self.cluster = Cluster(f"{folder}/slurm.conf")
        self.rules = Rules(self.cluster)
        self.jobs = read_jobs(f"{folder}/sacct.txt", self.cluster)
        self.state = State(self.rules)
        self.tasks, self.head_of = collections.defaultdict(list), {}
        for job in self.jobs.values():
            if job.task:
                self.tasks[int(job.array)].append(job)
                self.head_of[job.id] = int(job.array)
        self.decisions, self.same = collections.Counter(), collections.Counter()
        # The pass or run that the log is in: its name, what the rules start, and what was started.
        self.current = None
        self.test = None
        self.release = (22, 5)

    def like(self, number):
        return self.tasks[number][0] if number in self.tasks else self.jobs.get(number)

    def count(self, name, is_same):
        self.decisions[name] += 1
        self.same[name] += is_same

    def close(self):
        if self.current:
            name, expected, found = self.current
            self.count(name, sorted(expected) == sorted(found))
        self.current = None

    def compare_test(self, now, start=None, nodes=None, later_than=None):
        """Compares what slurmctld found in its last test."""
        if self.test is None:
            return
        (job, tested, at, until), self.test = self.test, None
        found = self.rules.will_run(job, tested, now, self.state, at, until)
        if later_than is not None:
            self.count("later starts", found is None or max(found[0], at) > later_than)
        else:
            self.count("planned starts", found is not None and (max(found[0], at), found[1]) == (start, sorted(nodes)))

    def started(self, now, number, nodes):
        self.compare_test(now, now, nodes)
        head = self.head_of.get(number, number)
        if self.current:
            self.current[2].append((head, nodes))
        if pending := self.state.pending.get(head):
            pending.left -= 1
        if job := self.jobs.get(number):
            self.state.begin(number, job, job.start or now, nodes)

    def line(self, now, text):
        state, cluster = self.state, self.cluster
        # The log does not name jobs that their limits end.
        for key in [k for k, (job, *_) in state.running.items() if job.end and job.end < now]:
            state.finish(key)
        if found := re.search(r"_slurm_rpc_submit_batch_job: JobId=(\d+)(?: SLUID=\S+)? InitPrio=(\d+)", text):
            head = int(found[1])
            if job := self.like(head):
                state.pending[head] = Pending(job, int(found[2]), now, len(self.tasks.get(head, [job])))
        elif found := re.search(r"Job (\d+) priority: .* = ([\d.]+)", text):
            if pending := state.pending.get(int(found[1])):
                pending.priority = int(float(found[2]))
        elif found := re.search(r"Running job scheduler for (\w+)", text):
            self.close()
            self.current = ("passes", self.rules.main_pass(state, found[1] == "full"), [])
        elif "_attempt_backfill: beginning" in text:
            self.close()
            self.current = ("runs of backfill", self.rules.backfill(state, now), [])
        elif "_attempt_backfill: completed testing" in text:
            self.close()
        elif found := re.search(r"version (\d+)\.(\d+)\S* started", text):
            self.release = (int(found[1]), int(found[2]))
            self.rules.by_interval = self.release >= (24, 11)
        elif found := re.search(rf"Test {JOB} at (\S+) (?:to \S+ \(later_start: (\S+)\) )?on (\S+)", text):
            job, until = self.like(int(found[1])), found[4]
            until = seconds(until) if until and until != "NO" else None
            self.test = job and (job, cluster.list(found[5]), seconds(found[3]), until)
        elif found := re.search(rf"{JOB} to start at (\S+), end at \S+ on nodes (\S+) in", text):
            self.compare_test(now, seconds(found[3]), cluster.list(found[4]))
        elif "overlaps with existing reservation" in text:
            # What follows is of another time: the log does not say on which nodes this one was.
            self.test = None
        elif found := re.search(r"Try later JobId=\S+ later_start (\d+)", text):
            self.compare_test(now, later_than=int(found[1]))
        elif found := re.search(rf"(?:Started|Allocate) {JOB} .*?(?: on |NodeList=)(\S+)", text):
            self.started(now, int(found[2] or found[1]), sorted(cluster.list(found[3])))
        elif self.release >= (26, 5) and (found := re.search(rf"slurm_cred_create: creating credential for {JOB}", text)):
            # The log of 26.05 names what backfill starts nowhere else; jobs have such a line at their ends too.
            number = int(found[2] or found[1])
            job, in_backfill = self.jobs.get(number), self.current and self.current[0] == "runs of backfill"
            if in_backfill and job and job.start == now and number not in state.running:
                self.started(now, number, sorted(job.on))
        elif found := re.search(rf"_job_complete: {JOB} done", text):
            state.finish(int(found[2] or found[1]))

    def run(self, log):
        for line in open(log, errors="replace"):
            if found := re.match(r"\[([^\]]+)\] (.*)", line):
                self.line(seconds(found[1]), found[2])
        self.close()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    replay = Replay(sys.argv[1])
    replay.run(f"{sys.argv[1]}/slurmctld.log")
    shares = {}
    for name in NAMES:
        decisions, same = replay.decisions[name], replay.same[name]
        shares[name] = same / decisions if decisions else 0
        print(f"{name:<16} {decisions:>6} {same:>6} {shares[name]:.3f}")
    sys.exit(min(shares["planned starts"], shares["later starts"]) < 0.95)


if __name__ == "__main__":
    main()
