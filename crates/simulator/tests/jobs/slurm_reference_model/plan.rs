//! Backfill: its plan, and when running jobs leave enough.

use evenhand_simulator::Activity;

use super::{Runs, SlurmReferenceModel, secs};

struct Reservation {
    job: usize,
    begin: u64,
    end: u64,
    nodes: Vec<usize>,
}

impl SlurmReferenceModel<'_> {
    pub(super) fn backfill(&mut self, t: u64) {
        let o = self.world.options;
        let window_end = t + secs(o.bf_window);
        let mut reservations: Vec<Reservation> = Vec::new();
        let (mut tested, mut starts) = (0, 0);
        let mut looked: Vec<usize> = Vec::new();
        let mut reserved = vec![0; self.world.partitions.len()];
        // Who holds licences when: running jobs until their limits.
        let grain = secs(o.bf_resolution);
        let running = self.running.iter().filter(|r| !r.ended);
        let until = |r: &Runs| (r.start + r.limit + r.paused) / grain * grain;
        let mut licences: Vec<Reservation> =
            running.map(|r| Reservation { job: r.job, begin: 0, end: until(r), nodes: Vec::new() }).collect();
        for job in self.order() {
            let cuts = self.cuts(t, window_end, &reservations);
            if tested >= o.bf_max_job_test || cuts.len() as u32 >= o.bf_max_job_test {
                return;
            }
            let user = self.world.jobs[job].user;
            let mut is_tested = false;
            for p in self.attempts(job) {
                let of_user = looked.iter().filter(|&&k| self.world.jobs[k].user == user).count();
                if o.bf_max_job_user > 0 && of_user as u32 >= o.bf_max_job_user {
                    continue;
                }
                looked.push(job);
                if self.is_over_limit(job) || !o.bf_licenses && self.lacks_licences(job) {
                    continue;
                }
                let nodes = self.tried_on(job, p);
                let plan = self.plan(t, window_end, (job, p), &nodes, (&reservations, &licences), &mut is_tested);
                let Some((start, mut on)) = plan else { continue };
                if start <= t && self.lacks_licences(job) {
                    continue;
                }
                let mut is_now = start <= t;
                if is_now {
                    let intervals = self.intervals(t, window_end, &reservations);
                    let until = t + self.length(job);
                    let is_free = |n: usize| intervals.iter().filter(|i| i.0 <= until).all(|i| !i.2.contains(&n));
                    let mut open = nodes.clone();
                    open.retain(|&n| is_free(n) && self.is_up(t, n) && self.is_open(job, n, t, until));
                    if self.choose_over((t, job, p), &open, &self.running, false).is_none() {
                        on = self.preempt(t, job, p, &open).unwrap();
                        is_now = false;
                    }
                }
                if is_now {
                    licences.push(self.reservation(t, job, &[]));
                    if o.whole_nodes {
                        reservations.push(self.reservation(t, job, &on));
                    }
                    self.start(t, job, on, Activity::Backfill);
                    starts += 1;
                    break;
                }
                let most = o.bf_job_part_count_reserve;
                if start > window_end || self.reserves_nothing(t, job) || (most > 0 && reserved[p] >= most) {
                    continue;
                }
                reserved[p] += 1;
                licences.push(self.reservation(start, job, &[]));
                reservations.push(self.reservation(start, job, &on));
            }
            tested += u32::from(is_tested);
            if starts > 0 && starts == o.bf_max_job_start {
                return;
            }
        }
    }

    fn reservation(&self, start: u64, job: usize, on: &[usize]) -> Reservation {
        let grain = secs(self.world.options.bf_resolution);
        let end = (start + self.length(job)).div_ceil(grain) * grain;
        Reservation { job, begin: start / grain * grain, end, nodes: on.to_vec() }
    }

    /// Where intervals of the plan begin.
    fn cuts(&self, t: u64, window_end: u64, reservations: &[Reservation]) -> Vec<u64> {
        let inside = reservations.iter().flat_map(|r| [r.begin, r.end]).filter(|&c| c > t && c < window_end);
        let mut cuts: Vec<u64> = inside.chain([t]).collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }
    /// The intervals of the plan with the nodes that are reserved in each.
    fn intervals(&self, t: u64, window_end: u64, reservations: &[Reservation]) -> Vec<(u64, u64, Vec<usize>)> {
        let cuts = self.cuts(t, window_end, reservations);
        let end = |at: usize| cuts.get(at + 1).copied().unwrap_or(window_end);
        let taken = |begin: u64| {
            let covering = reservations.iter().filter(move |r| r.begin <= begin && begin < r.end);
            covering.flat_map(|r| r.nodes.clone()).collect::<Vec<usize>>()
        };
        cuts.iter().enumerate().map(|(at, &begin)| (begin, end(at), taken(begin))).collect()
    }

    fn plan(
        &self,
        t: u64,
        window_end: u64,
        (job, partition): (usize, usize),
        of_partition: &[usize],
        (reservations, licences): (&[Reservation], &[Reservation]),
        is_tested: &mut bool,
    ) -> Option<(u64, Vec<usize>)> {
        let intervals = self.intervals(t, window_end, reservations);
        let length = self.length(job);
        let unreserved = |node: usize, from: u64, to: u64| {
            let mut met = intervals.iter().filter(|i| i.1 > from && i.0 <= to);
            met.all(|i| !i.2.contains(&node))
        };
        let at_least = if self.is_apart(job) { self.chunk(job).1 } else { 1 };
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
        let mut at = t;
        loop {
            while at <= window_end && short(at, at + length) {
                at = licences.iter().map(|r| r.end).filter(|&end| end > at).min()?;
            }
            if at > window_end {
                return None;
            }
            let nodes: Vec<usize> = of_partition
                .iter()
                .copied()
                .filter(|&n| self.fits_empty(job, n) && unreserved(n, at, at + length))
                .filter(|&n| self.is_up(t, n) && self.is_open(job, n, at, at + length))
                .collect();
            let open: Vec<&(u64, u64, Vec<usize>)> = intervals.iter().filter(|i| i.1 > at).collect();
            let gains = |pair: &&[&(u64, u64, Vec<usize>)]| pair[0].2.iter().any(|n| !pair[1].2.contains(n));
            let gain = open.windows(2).find(gains).map(|pair| pair[0].1);
            let later = [gain, self.reservations_leave_more_at(job, at, at + length)].into_iter().flatten().min();
            if nodes.len() < at_least {
                at = later?;
                continue;
            }
            *is_tested = true;
            let Some((found, on)) = self.will_run(t, job, partition, &nodes) else {
                at = later?;
                continue;
            };
            let start = found.max(at);
            let is_open =
                |&n: &usize| unreserved(n, start, start + length) && self.is_open(job, n, start, start + length);
            if start > t && (short(start, start + length) || !on.iter().all(is_open)) {
                at = start;
                continue;
            }
            match later {
                Some(later) if start > t && start > later => at = later,
                _ => return Some((start, on)),
            }
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

    fn will_run(&self, t: u64, job: usize, partition: usize, nodes: &[usize]) -> Option<(u64, Vec<usize>)> {
        if let Some(on) = self.choose_over((t, job, partition), nodes, &self.running, false) {
            return Some((t, on));
        }
        let preemptable = self.preemptable(t, job, partition);
        self.start_without((t, job, partition), &preemptable, nodes)
    }

    /// When a job can start on these nodes beside running jobs, and where.
    pub(super) fn will_run_beside(
        &self,
        (t, job, partition): (u64, usize, usize),
        nodes: &[usize],
        mut left: Vec<Runs>,
    ) -> Option<(u64, Vec<usize>)> {
        if let Some(on) = self.choose_over((t, job, partition), nodes, &left, false) {
            return Some((t, on));
        }
        let o = self.world.options;
        let grace = secs(o.over_time_limit.unwrap_or_default()) + secs(o.kill_wait);
        let end = |r: &Runs| {
            let at = if r.ended { r.finish + secs(o.completing) } else { r.start + r.limit + r.paused };
            if at > t { at } else { (at + grace).max(t + 1) }
        };
        let meets = |r: &&Runs| r.on.iter().any(|n| nodes.contains(n));
        let mut relevant: Vec<Runs> = left.iter().filter(meets).cloned().collect();
        relevant.sort_by_key(|r| (end(r), r.job));
        let mut window = 30;
        let mut at = 0;
        while at < relevant.len() {
            let first = end(&relevant[at]) / 30 * 30;
            let mut to = at + 1;
            while to < relevant.len() && end(&relevant[to]) <= first + window && to - at < 200 {
                to += 1;
            }
            left.retain(|r| !relevant[at..to].iter().any(|gone| gone.job == r.job));
            window = match o.bf_window_linear {
                Some(step) => window + secs(step),
                None => window * 2,
            };
            if let Some(on) = self.choose_over((t, job, partition), nodes, &left, o.bf_busy_nodes) {
                let uses = |r: &&Runs| r.on.iter().any(|n| on.contains(n));
                let last = relevant[..to].iter().rev().find(uses).map_or(t, end);
                return Some((last, on));
            }
            at = to;
        }
        None
    }
}
