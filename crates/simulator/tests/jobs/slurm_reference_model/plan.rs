//! Backfill: its plan, and when running jobs leave enough.

use evenhand_simulator::Activity;

use super::{Runs, SlurmReferenceModel, secs};

/// Who holds licences when.
struct Holder {
    job: usize,
    begin: u64,
    end: u64,
}

/// Times from the begin to the end of a run's window, each with the nodes that are reserved (`node_space` of sched/backfill).
struct Table {
    grain: u64,
    records: Vec<Record>,
    /// How many records were ever made.
    made: u32,
}

#[derive(Clone)]
struct Record {
    begin: u64,
    end: u64,
    /// In their order.
    reserved: Vec<usize>,
}

impl Table {
    fn new(begin: u64, end: u64, grain: u64) -> Table {
        Table { grain, records: vec![Record { begin, end, reserved: Vec::new() }], made: 1 }
    }

    /// `_add_reservation` of sched/backfill: records are cut at the begin and the end, and two that are alike are put together.
    fn reserve(&mut self, begin: u64, end: u64, nodes: &[usize]) {
        let begin = begin.max(self.records[0].begin);
        let end = end.max(begin + self.grain);
        let Some(at) = self.records.iter().position(|r| r.end >= begin) else { return };
        let before = at.saturating_sub(1);
        if self.records[at].end > begin {
            self.cut(at, begin);
        }
        let mut after = None;
        for at in at + 1.. {
            if at == self.records.len() {
                break;
            }
            if end < self.records[at].end {
                self.cut(at, end);
            }
            let reserved = &mut self.records[at].reserved;
            reserved.extend(nodes);
            reserved.sort_unstable();
            reserved.dedup();
            if self.records[at].end == end {
                after = Some(at + 1);
                break;
            }
        }
        for at in before.. {
            if Some(at) == after || at + 1 >= self.records.len() {
                break;
            }
            if self.records[at].reserved == self.records[at + 1].reserved {
                self.records[at].end = self.records.remove(at + 1).end;
                break;
            }
        }
    }

    fn cut(&mut self, at: usize, time: u64) {
        let rest = Record { begin: time, ..self.records[at].clone() };
        self.records[at].end = time;
        self.records.insert(at + 1, rest);
        self.made += 1;
    }

    /// Which of some nodes are unreserved from one time to another, a record that begins then included; and the end of the
    /// first record behind which one more of them is, looking at the first record beyond that time at most. With `goes_beyond`
    /// the end of the record behind that one counts if there is none, unless it is the last.
    fn look(&self, from: u64, to: u64, nodes: &[usize], goes_beyond: bool) -> (Vec<usize>, Option<u64>) {
        let without = |nodes: &[usize], record: &Record| -> Vec<usize> {
            nodes.iter().copied().filter(|node| !record.reserved.contains(node)).collect()
        };
        let (mut left, mut gain) = (nodes.to_vec(), None);
        for (at, record) in self.records.iter().enumerate() {
            if let Some(next) = self.records.get(at + 1).filter(|_| record.end > from && gain.is_none()) {
                let (next, this) = (without(nodes, next), without(&left, record));
                gain = next.iter().any(|node| !this.contains(node)).then_some(record.end);
            }
            if record.end > from {
                if record.begin > to {
                    if goes_beyond && gain.is_none() && at + 2 < self.records.len() {
                        gain = Some(self.records[at + 1].end);
                    }
                    break;
                }
                left = without(&left, record);
            }
        }
        (left, gain)
    }

    /// Whether a job would meet a reservation on its nodes: `_test_resv_overlap` of sched/backfill.
    fn overlaps(&self, begin: u64, end: u64, nodes: &[usize]) -> bool {
        let mut met = self.records.iter().filter(|r| r.end > begin && r.begin < end);
        met.any(|r| r.reserved.iter().any(|node| nodes.contains(node)))
    }
}

impl SlurmReferenceModel<'_> {
    pub(super) fn backfill(&mut self, t: u64) {
        let o = self.world.options;
        let grain = secs(o.bf_resolution);
        let window_end = t + secs(o.bf_window);
        let mut table = Table::new(t / grain * grain, window_end / grain * grain, grain);
        let (mut tested, mut starts) = (0, 0);
        let mut looked: Vec<usize> = Vec::new();
        // Arrays of which no further task is looked at, with the partition, and one for each of their reservations.
        let mut closed: Vec<(usize, usize)> = Vec::new();
        let mut of_arrays: Vec<(usize, usize)> = Vec::new();
        let mut reserved = vec![0; self.world.partitions.len()];
        // Running jobs hold licences until their limits.
        let running = self.running.iter().filter(|r| !r.ended);
        let until = |r: &Runs| (r.start + r.limit + r.paused) / grain * grain;
        let mut licences: Vec<Holder> = running.map(|r| Holder { job: r.job, begin: 0, end: until(r) }).collect();
        for job in self.order() {
            if tested >= o.bf_max_job_test {
                return;
            }
            let array = self.world.jobs[job].array.map(|(array, _)| array);
            if self.is_throttled(job) || (array.is_some() && o.bf_max_job_array_resv == 0) {
                continue;
            }
            let user = self.world.jobs[job].user;
            let mut is_tested = false;
            for p in self.attempts(job) {
                let record = array.map(|array| (array, p));
                if record.is_some_and(|record| closed.contains(&record)) {
                    continue;
                }
                closed.extend(record);
                let of_user = looked.iter().filter(|&&k| self.world.jobs[k].user == user).count();
                if o.bf_max_job_user > 0 && of_user as u32 >= o.bf_max_job_user {
                    continue;
                }
                looked.push(job);
                if self.is_over_limit(job) || !o.bf_licenses && self.lacks_licences(job) {
                    continue;
                }
                let plan = self.plan(t, window_end, (job, p), (&table, &licences), &mut is_tested);
                let Some((start, mut on, waits)) = plan else { continue };
                if start <= t && self.lacks_licences(job) {
                    continue;
                }
                let mut is_now = start <= t && !waits;
                if is_now {
                    let until = t + self.length(job);
                    let mut open = table.look(t, until, &self.tried_on(job, p), false).0;
                    open.retain(|&n| self.is_up(t, n) && self.is_open(job, n, t, until));
                    if self.choose_over((t, job, p), &open, &self.running, false).is_none() {
                        // If it does not fit then either, it waits for jobs beyond their limits, and reserves their nodes.
                        on = self.preempt(t, job, p, &open).unwrap_or(on);
                        is_now = false;
                    }
                }
                if is_now {
                    licences.push(self.holder(t, job));
                    if self.is_whole(job) && table.made < o.bf_max_job_test {
                        let (begin, end) = self.planned_time(t, job);
                        table.reserve(begin, end, &on);
                    }
                    self.start(t, job, on, Activity::Backfill);
                    closed.retain(|known| Some(*known) != record);
                    starts += 1;
                    break;
                }
                let most = o.bf_job_part_count_reserve;
                if start > window_end || self.reserves_nothing(t, job) || (most > 0 && reserved[p] >= most) {
                    continue;
                }
                reserved[p] += 1;
                if table.made >= o.bf_max_job_test {
                    return;
                }
                licences.push(self.holder(start, job));
                let (begin, end) = self.planned_time(start, job);
                table.reserve(begin, end, &on);
                of_arrays.extend(record);
                let reserved = of_arrays.iter().filter(|known| Some(**known) == record).count();
                if (reserved as u32) < o.bf_max_job_array_resv {
                    closed.retain(|known| Some(*known) != record);
                }
            }
            tested += u32::from(is_tested);
            if starts > 0 && starts == o.bf_max_job_start {
                return;
            }
        }
    }

    fn holder(&self, start: u64, job: usize) -> Holder {
        let (begin, end) = self.planned_time(start, job);
        Holder { job, begin, end: end.max(begin + secs(self.world.options.bf_resolution)) }
    }

    /// The begin and the end of what a job reserves.
    fn planned_time(&self, start: u64, job: usize) -> (u64, u64) {
        let down = |time: u64| time / secs(self.world.options.bf_resolution) * secs(self.world.options.bf_resolution);
        (down(start), down(start + self.length(job)))
    }

    fn plan(
        &self,
        t: u64,
        window_end: u64,
        (job, partition): (usize, usize),
        (table, licences): (&Table, &[Holder]),
        is_tested: &mut bool,
    ) -> Option<(u64, Vec<usize>, bool)> {
        let length = self.length(job);
        let at_least = self.least_nodes(job);
        let left = |i: usize, at: u64| {
            let holders = licences.iter().filter(|r| r.begin <= at && at < r.end);
            self.world.licences[i].saturating_sub(holders.map(|r| self.world.jobs[r.job].licences[i]).sum())
        };
        let needed = self.world.jobs[job].licences;
        let is_short = |at: u64| (0..2).any(|i| needed[i] > left(i, at));
        // Fewer are left only from where somebody begins to hold some.
        let short = |from: u64, to: u64| {
            let begins = licences.iter().map(|r| r.begin).filter(|&at| from < at && at <= to);
            self.world.options.bf_licenses && begins.chain([from]).any(is_short)
        };
        let newer = self.world.options.tests_by_interval;
        let tried_on = self.tried_on(job, partition);
        let able = |n: usize| tried_on.contains(&n) && self.fits_empty(job, n);
        let own = self.nodes_in(partition);
        let mut at = t;
        loop {
            while at <= window_end && short(at, at + length) {
                at = licences.iter().map(|r| r.end).filter(|&end| end > at).min()?;
            }
            if at > window_end {
                return None;
            }
            // What a node gains counts, whether the job fits on it or not.
            let looked_at: Vec<usize> = (0..self.has.len())
                .filter(|&n| own.contains(&n) || able(n))
                .filter(|&n| self.is_up(t, n) && self.is_open(job, n, at, at + length))
                .collect();
            let (mut nodes, gain) = table.look(at, at + length, &looked_at, newer);
            nodes.retain(|&n| able(n));
            let later = [gain, self.reservations_leave_more_at(job, at, at + length)].into_iter().flatten().min();
            if nodes.len() < at_least {
                at = later?;
                continue;
            }
            *is_tested = true;
            let within = newer.then_some((at, later));
            let Some((found, on, waits)) = self.will_run(t, job, partition, &nodes, within) else {
                at = later?;
                continue;
            };
            let start = found.max(at);
            if start <= t {
                return Some((start, on, waits));
            }
            let is_late = later.is_some_and(|later| start > later);
            let (begin, end) = self.planned_time(start, job);
            let is_open = |&n: &usize| self.is_open(job, n, start, start + length);
            let is_reserved = start <= window_end
                && (table.overlaps(begin, end, &on) || short(start, start + length) || !on.iter().all(is_open));
            at = match (is_late, is_reserved) {
                (false, false) => return Some((start, on, waits)),
                (true, false) => later?,
                (false, true) => start,
                (true, true) if newer => start,
                (true, true) => later?,
            };
        }
    }

    /// When the first reservation ends that keeps the job from nodes, or its own begins.
    fn reservations_leave_more_at(&self, job: usize, from: u64, to: u64) -> Option<u64> {
        let own = self.reservation_of(from, job);
        let others = self.world.reservations.iter().enumerate().filter(|(r, _)| Some(*r) != own);
        let ends = others.filter(|(_, r)| r.meets(from, to)).map(|(_, r)| r.to);
        let begin = own.map(|r| self.world.reservations[r].from).filter(|&begin| begin > from);
        ends.chain(begin).min()
    }

    /// When a job can start on these nodes, where, and whether it waits for jobs beyond their limits. `within`: what ends
    /// before the first time is gone, what ends after the second stays.
    fn will_run(
        &self,
        t: u64,
        job: usize,
        partition: usize,
        nodes: &[usize],
        within: Option<(u64, Option<u64>)>,
    ) -> Option<(u64, Vec<usize>, bool)> {
        let is_now = within.is_none_or(|(from, _)| from <= t);
        if let Some(on) = self.choose_over((t, job, partition), nodes, &self.running, false).filter(|_| is_now) {
            return Some((t, on, false));
        }
        let preemptable = self.preemptable(t, job, partition);
        self.start_without((t, job, partition), &preemptable, nodes, within)
    }

    /// When a job can start on these nodes beside running jobs, and where.
    pub(super) fn will_run_beside(
        &self,
        (t, job, partition): (u64, usize, usize),
        nodes: &[usize],
        mut left: Vec<Runs>,
        (preempts, within): (bool, Option<(u64, Option<u64>)>),
    ) -> Option<(u64, Vec<usize>, bool)> {
        let end = |r: &Runs| {
            if r.ended { r.finish + secs(self.world.options.completing) } else { r.start + r.limit + r.paused }
        };
        let (from, to) = within.unwrap_or((0, None));
        left.retain(|r| end(r) >= from || !r.on.iter().any(|n| nodes.contains(n)));
        if (within.is_some() || preempts)
            && let Some(on) = self.choose_over((t, job, partition), nodes, &left, false)
        {
            return Some((t, on, !preempts));
        }
        let o = self.world.options;
        let grace = secs(o.over_time_limit.unwrap_or_default()) + secs(o.kill_wait);
        let mut all = left.clone();
        all.retain(|r| end(r) >= from);
        all.sort_by_key(|r| (end(r), r.job));
        let (mut window, mut first, mut next) = (30, None, 0);
        loop {
            let mut last = None;
            while let Some(r) = all.get(next).filter(|r| to.is_none_or(|to| end(r) <= to)) {
                next += 1;
                if !r.on.iter().any(|n| nodes.contains(n)) {
                    continue;
                }
                last = Some(end(r));
                left.retain(|other| other.job != r.job);
                let until = *first.get_or_insert(end(r) / 30 * 30 + 30) + window;
                if all.get(next).is_none_or(|r| end(r) > until) {
                    break;
                }
            }
            let last = last?;
            loop {
                window = match o.bf_window_linear {
                    Some(step) => window + secs(step),
                    None => window * 2,
                };
                if all.get(next).is_none_or(|r| end(r) <= first.unwrap() + window) {
                    break;
                }
            }
            if let Some(on) = self.choose_over((t, job, partition), nodes, &left, o.bf_busy_nodes) {
                return Some((if last > t { last } else { (last + grace).max(t + 1) }, on, false));
            }
        }
    }
}
