//! How jobs lie on machines: which they may use, in how many chunks, of what size.

use evenhand_simulator::{Layout, Rejection};

use super::{QueueLimits, ReferenceModel, fits, minus};

impl ReferenceModel<'_> {
    pub(super) fn rules(&self, i: usize) -> Option<&QueueLimits> {
        self.choice(i).first().map(|&q| &self.world.queues[q])
    }

    /// The queues in which job `i` may be, best first.
    pub(super) fn choice(&self, i: usize) -> Vec<usize> {
        let job = &self.world.jobs[i];
        let mut queues: Vec<usize> = job.queues.iter().copied().filter(|&q| q < self.world.queues.len()).collect();
        let top = |queues: &[usize]| queues.iter().map(|&q| self.world.queues[q].priority).max();
        let mut ordered = Vec::new();
        while let Some(top) = top(&queues) {
            let next = queues.iter().copied().find(|&q| self.world.queues[q].priority == top).unwrap();
            queues.retain(|&q| q != next);
            ordered.push(next);
        }
        if ordered.len() < 2 {
            return ordered;
        }
        let admits = |q: &usize| {
            let rules = &self.world.queues[*q];
            let within = |most: Option<u64>, amount: u64| most.is_none_or(|most| amount <= most);
            within(rules.max_wall, job.asked.unwrap_or(job.run))
                && within(rules.max_job, job.amounts[0])
                && within(rules.max_user, job.amounts[0])
        };
        let admitted: Vec<usize> = ordered.iter().copied().filter(admits).collect();
        if admitted.is_empty() { vec![ordered[0]] } else { admitted }
    }

    /// The machines job `i` may use, whether or not it fits.
    pub(super) fn allowed(&self, i: usize) -> Vec<usize> {
        let choice = self.choice(i);
        let is_in = |q: usize, m: usize| self.world.queues[q].properties.iter().all(|p| self.properties[m].contains(p));
        let is_in_queue = |m: &usize| choice.is_empty() || choice.iter().any(|&q| is_in(q, *m));
        let required = |m: &usize| {
            self.without[i] || self.world.is_pool || self.world.jobs[i].requires.iter().all(|word| self.may(*m, word))
        };
        let only = |m: &usize| self.only[i].as_ref().is_none_or(|groups| groups.contains(&self.group[*m]));
        (0..self.has.len()).filter(is_in_queue).filter(required).filter(only).collect()
    }

    /// Whether a machine has what a word requires, or no machine has it.
    fn may(&self, machine: usize, word: &str) -> bool {
        let (is_wanted, words) = word.strip_prefix('^').map_or((true, word), |rest| (false, rest));
        let has = |m: usize| {
            words.split('|').any(|word| {
                let name = self.group[m].to_string();
                self.properties[m].contains(&word) || word == name || word.strip_prefix("cl_") == Some(name.as_str())
            })
        };
        word.starts_with('#') || !(0..self.has.len()).any(has) || has(machine) == is_wanted
    }

    /// The first machine after another on which chunks of an empty site fit; of each only one, if they are spread.
    fn fit_on_empty(&self, i: usize, chunks: &[[u64; 2]], is_spread: bool) -> bool {
        let mut free = self.has.clone();
        let mut allowed = self.allowed(i);
        chunks.iter().all(|&chunk| match allowed.iter().position(|&m| fits(chunk, free[m])) {
            Some(at) => {
                let m = allowed[at];
                free[m] = minus(free[m], chunk);
                if is_spread {
                    allowed.remove(at);
                }
                true
            }
            None => false,
        })
    }

    /// In how many equal parts the source says that a job lies on machines.
    fn stated_parts(&self, i: usize) -> Option<u32> {
        let job = &self.world.jobs[i];
        match job.sizes.first() {
            Some((_, first)) if job.sizes.iter().all(|(_, chunk)| chunk == first) => {
                Some(job.sizes.iter().map(|(count, _)| count).sum())
            }
            _ => job.nodes,
        }
    }

    /// How many whole machines a job has, and of which groups: of any kind of machine and those of which no more are needed, so
    /// many as have enough whichever they are; among these the least part of the machines that it may use then.
    fn whole_machines(&self, i: usize, allowed: &[usize]) -> Option<(usize, Vec<usize>)> {
        let demand = self.world.jobs[i].amounts;
        let has = |m: usize| self.world.machines[self.group[m]].has;
        let needed = |m: usize| (0..2).map(|r| demand[r].div_ceil(has(m)[r])).max();
        let mut ways = Vec::new();
        for &weakest in allowed {
            let usable: Vec<usize> = allowed.iter().copied().filter(|&m| needed(m) <= needed(weakest)).collect();
            let suffice = |n: &usize| {
                (0..2).all(|r| {
                    let mut each: Vec<u64> = usable.iter().map(|&m| has(m)[r]).collect();
                    each.sort_unstable();
                    each[..*n].iter().sum::<u64>() >= demand[r]
                })
            };
            if let Some(n) = (1..=usable.len()).find(suffice) {
                ways.push((n, usable));
            }
        }
        ways.sort_by_key(|(n, _)| *n);
        // The first of the least: the one with fewer machines.
        let best = ways.into_iter().min_by(|(n, a), (m, b)| (n * b.len()).cmp(&(m * a.len())))?;
        let mut groups: Vec<usize> = best.1.iter().map(|&m| self.group[m]).collect();
        groups.dedup();
        Some((best.0, groups))
    }

    pub(super) fn split(&mut self, i: usize) -> Option<Rejection> {
        let job = &self.world.jobs[i];
        let stated = self.stated_parts(i);
        if let Some(rules) = self.rules(i) {
            if rules.max_job.is_some_and(|l| job.amounts[0] > l) {
                return Some(Rejection::JobLimit(0));
            }
            if rules.max_user.is_some_and(|l| job.amounts[0] > l) {
                return Some(Rejection::UserLimit(0));
            }
        }
        let cpus = if self.world.is_pool { 1 } else { job.amounts[0].max(1) };
        let allowed = self.allowed(i);
        let mut splits = false;
        let tries: Vec<u64> = match self.world.layout {
            _ if self.world.is_pool => vec![1],
            Layout::Auto => vec![1, cpus],
            Layout::Single => vec![1],
            Layout::Packed => vec![cpus],
            Layout::Chunks(size) => vec![cpus.div_ceil(u64::from(size.get()))],
            Layout::Whole => vec![],
        };
        let is_whole = self.world.is_whole();
        let can_split = is_whole || tries.iter().any(|parts| *parts > 1);
        let is_auto = self.world.layout == Layout::Auto && !self.world.is_pool;
        let asks_whole = job.requires.contains(&"#excl") && !self.without[i];
        if is_auto && (asks_whole || self.rules(i).is_some_and(|queue| queue.whole_machines)) {
            let of_sizes = || job.sizes.iter().map(|(count, _)| *count as usize).sum::<usize>();
            let stated = stated.map(|nodes| nodes as usize).or(Some(of_sizes()).filter(|n| *n > 0));
            let groups = allowed.iter().map(|&m| self.group[m]);
            let found = groups.into_iter().find_map(|g| {
                let machines = &self.world.machines[g];
                let have = |n: &usize| (0..2).all(|r| machines.has[r] * *n as u64 >= job.amounts[r]);
                let n = stated.or_else(|| (1..=machines.count).find(have))?;
                let each = match job.sizes.is_empty() {
                    true => job.amounts.map(|a| a.div_ceil(n as u64)),
                    false => [0, 1].map(|r| job.sizes.iter().map(|(_, chunk)| chunk[r]).max().unwrap()),
                };
                (n <= machines.count && fits(each, machines.has)).then_some((g, n))
            });
            if let Some((group, n)) = found {
                (self.chunk[i], self.chunks[i], self.only[i]) = (self.world.machines[group].has, n, Some(vec![group]));
                splits = true;
            }
        }
        if is_whole && let Some((machines, groups)) = self.whole_machines(i, &allowed) {
            (self.chunk[i], self.chunks[i], self.only[i]) = ([1, 1], machines, Some(groups));
            splits = true;
        }
        let mut sizes: Vec<[u64; 2]> =
            job.sizes.iter().flat_map(|(count, chunk)| vec![*chunk; *count as usize]).collect();
        sizes.sort_by(|a, b| b.cmp(a));
        // Nodes are different machines if there are enough; chunks only if they are to be.
        let may_spread = job.sizes.is_empty() || job.requires.contains(&"#scatter");
        for is_spread in if may_spread { vec![true, false] } else { vec![false] } {
            if !splits && is_auto && sizes.first() != sizes.last() && self.fit_on_empty(i, &sizes, is_spread) {
                (self.chunks[i], self.uneven[i], self.is_spread[i]) = (sizes.len(), sizes.clone(), is_spread);
                splits = true;
            }
            if let Some(nodes) = stated.filter(|_| is_auto && !splits) {
                // As evenly as whole processors allow.
                let nodes = u64::from(nodes).min(cpus);
                let each = (0..nodes).map(|k| job.amounts[0] / nodes + u64::from(k < job.amounts[0] % nodes));
                let parts: Vec<[u64; 2]> = each.map(|n| [n, job.amounts[1].div_ceil(nodes)]).collect();
                if self.fit_on_empty(i, &parts, is_spread) {
                    (self.chunks[i], self.is_spread[i]) = (parts.len(), is_spread);
                    match parts.as_slice() {
                        [first, .., last] if first == last => self.chunk[i] = *first,
                        [first, .., before, last] if first == before => {
                            (self.chunk[i], self.last[i]) = (*first, Some(*last))
                        }
                        [first, last] => (self.chunk[i], self.last[i]) = (*first, Some(*last)),
                        [one] => self.chunk[i] = *one,
                        _ => self.uneven[i] = parts,
                    }
                    splits = true;
                }
            }
        }
        for parts in tries.into_iter().filter(|_| !splits).collect::<Vec<_>>() {
            let chunk = match self.world.layout {
                Layout::Chunks(size) if parts > 1 => job.amounts.map(|a| (a * u64::from(size.get())).div_ceil(cpus)),
                _ => job.amounts.map(|a| a.div_ceil(parts)),
            };
            let last = match self.world.layout {
                Layout::Chunks(size) if parts > 1 && cpus % u64::from(size.get()) > 0 => {
                    let rest = cpus % u64::from(size.get());
                    Some(job.amounts.map(|a| (a * rest).div_ceil(cpus)))
                }
                _ => None,
            };
            let mut free = self.has.clone();
            let put = (1..=parts).all(|k| {
                let chunk = last.filter(|_| k == parts).unwrap_or(chunk);
                match allowed.iter().find(|&&m| fits(chunk, free[m])) {
                    Some(&m) => {
                        free[m] = minus(free[m], chunk);
                        true
                    }
                    None => false,
                }
            });
            if put {
                (self.chunk[i], self.chunks[i], self.last[i]) = (chunk, parts as usize, last);
                splits = true;
                break;
            }
        }
        if !splits {
            let kinds_not_fitting = (0..2).find(|&r| {
                let each = allowed.iter().map(|&m| self.world.machines[self.group[m]].has[r]);
                job.amounts[r] > if can_split { each.sum() } else { each.max().unwrap_or(0) }
            });
            return Some(kinds_not_fitting.map_or(Rejection::Together, |r| Rejection::Resource(r as u8)));
        }
        let limit = self.rules(i).and_then(|q| q.max_wall);
        limit.filter(|l| job.asked.unwrap_or(job.run) > *l).map(|_| Rejection::Wall)
    }
}
