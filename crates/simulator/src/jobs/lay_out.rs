//! Lays jobs out on the machines of a site: which they may use, in how many chunks, of what size.

use std::cmp::Reverse;
use std::num::NonZeroU32;

use evenhand_model::{Amount, JobTasks};

use super::kind::{Kind, Misfit, fits};
use super::layout::{Layout, LayoutRule};
use super::placement::{Placement, Scores};
use super::prepared_jobs::Rejection;
use super::requirements::SiteRequirements;
use super::site::{QueueLimits, Site};
use super::uneven_chunks;

impl Site {
    /// Returns the kind of the jobs that ask for the same.
    pub(super) fn kind(&self, asked: Asked<'_>, required: Option<&SiteRequirements>) -> Kind {
        let kind = self.kind_on(asked, required);
        let could_fit = matches!(kind.rejection, Some(Rejection::Resource(_) | Rejection::Together));
        if !could_fit || required.is_none() {
            return kind;
        }
        // What the machines of the queue hold runs on them, whatever the log requires beside that.
        let without = self.kind_on(asked, None);
        match without.rejection {
            None => Kind { drops_requirements: true, ..without },
            Some(_) => kind,
        }
    }

    fn kind_on(&self, asked: Asked<'_>, required: Option<&SiteRequirements>) -> Kind {
        let Asked { demand, is_whole, requested, source, layout, queues, class } = asked;
        let demand: Vec<u64> = demand.iter().map(|a| a.0).collect();
        let queue = queues.first().copied();
        let rules = queue.map(|q| &self.queues[usize::from(q)]);
        let mut allowed = match queues {
            [] => self.groups_of_queue(None),
            queues => queues.iter().flat_map(|q| self.groups_of_queue(Some(*q))).collect(),
        };
        allowed.sort_unstable();
        allowed.dedup();
        allowed.retain(|g| required.is_none_or(|required| required.allows[usize::from(*g)]));
        let rule = if self.is_pool { LayoutRule::Pool } else { LayoutRule::Single };
        let mut kind = Kind {
            chunk: demand,
            copies: 1,
            last: None,
            sizes: Vec::new(),
            least: Vec::new(),
            groups: allowed,
            slowest: 0,
            queue,
            other_queues: queues.iter().skip(1).copied().collect(),
            class,
            licences: Vec::new(),
            rejection: None,
            rule,
            misfit: None,
            is_by_nodes: false,
            machines_of_tasks: None,
            drops_requirements: false,
        };
        let is_exclusive = !self.are_whole
            && layout == Layout::Auto
            && (is_whole || required.is_some_and(|required| required.whole_machines));
        kind.rejection = match rules.and_then(|q| exceeded_limit(q, &kind.chunk)) {
            Some(limit) => Some(limit),
            None if is_exclusive => match self.exclusive_machines(&mut kind, source, requested) {
                true => None,
                false => self.lay_out(&mut kind, source, layout),
            },
            None => self.lay_out(&mut kind, source, layout),
        };
        let smallest = kind.smallest_chunk().to_vec();
        kind.groups.retain(|&g| fits(&smallest, &self.groups[usize::from(g)].has));
        let machines: u64 = kind.groups.iter().map(|&g| u64::from(self.groups[usize::from(g)].count)).sum();
        kind.is_by_nodes = match kind.rule {
            LayoutRule::Whole | LayoutRule::Exclusive => machines >= u64::from(kind.copies),
            _ => kind.is_by_nodes,
        };
        let slowness = |g: &u16| {
            let (above, below) = self.groups[usize::from(*g)].speed;
            (u128::from(above), u128::from(below))
        };
        let slower = |a: (u128, u128), b: (u128, u128)| a.0 * b.1 < b.0 * a.1;
        kind.slowest = kind
            .groups
            .iter()
            .copied()
            .reduce(|a, b| if slower(slowness(&b), slowness(&a)) { b } else { a })
            .unwrap_or(0);
        kind
    }

    /// Lays a job out. Returns why it can never run, if so.
    fn lay_out(&self, kind: &mut Kind, source: SourceLayout<'_>, layout: Layout) -> Option<Rejection> {
        if self.are_whole {
            return self.lay_out_on_whole_machines(kind);
        }
        let whole = self.cpu.filter(|_| !self.is_pool).map(|(r, step)| (kind.chunk[r], step));
        // Jobs of a fraction of a processor are never split.
        let cpus = match whole {
            Some((steps, step)) if steps > 0 && steps % step == 0 => steps / step,
            _ => 1,
        };
        if self.has_equal_parts
            && let Some(tasks) = source.tasks.or_else(|| uneven_tasks(&kind.chunk, &source, cpus))
            && self.lay_out_tasks(kind, tasks, source.nodes, cpus)
        {
            return None;
        }
        // Where there are too few machines, several chunks share one.
        for is_by_nodes in if source.is_by_nodes { &[true, false][..] } else { &[false] } {
            kind.is_by_nodes = *is_by_nodes;
            if !source.sizes.is_empty() && self.lay_out_unevenly(kind, source.sizes) {
                return None;
            }
            if source.nodes.is_some_and(|nodes| self.lay_out_on_nodes(kind, u64::from(nodes).min(cpus), cpus)) {
                return None;
            }
        }
        kind.misfit = source.largest_part(&kind.chunk, cpus).map(|part| {
            let is_held = kind.groups.iter().any(|&g| fits(&part, &self.groups[usize::from(g)].has));
            if is_held { Misfit::Together } else { Misfit::Node }
        });
        let one = (LayoutRule::Single, 1);
        let tries: Vec<(LayoutRule, u64)> = match layout {
            _ if self.is_pool => vec![(LayoutRule::Pool, 1)],
            Layout::Auto | Layout::Whole => vec![one, (LayoutRule::Packed, cpus)],
            Layout::Single => vec![one],
            Layout::Packed => vec![(LayoutRule::Packed, cpus)],
            Layout::Chunks(size) => vec![(LayoutRule::Chunks, cpus.div_ceil(u64::from(size.get())))],
        };
        let can_split = tries.iter().any(|(_, parts)| *parts > 1);
        for (rule, parts) in tries.into_iter().filter(|(_, parts)| *parts <= u64::from(u32::MAX)) {
            let (chunk, last) = match layout {
                Layout::Chunks(size) if parts > 1 => {
                    let size = u64::from(size.get());
                    let rest = cpus % size;
                    let last = (rest > 0).then(|| parts_of(&kind.chunk, rest, cpus));
                    (parts_of(&kind.chunk, size, cpus), last)
                }
                _ => (parts_of(&kind.chunk, 1, parts), None),
            };
            let rule = if kind.misfit.is_some() { LayoutRule::Otherwise } else { rule };
            let laid_out = Kind { chunk, last, copies: parts as u32, rule, ..kind.clone() };
            if self.holds(&laid_out) >= u128::from(parts) {
                *kind = laid_out;
                return None;
            }
        }
        kind.misfit = None;
        Some(self.rejection(kind, can_split))
    }

    /// Lays out a job of so many processors whose tasks Slurm does not divide evenly among its nodes: it puts as many on a node as
    /// are free there. Whether the empty machines hold that.
    fn lay_out_tasks(&self, kind: &mut Kind, tasks: JobTasks, nodes: Option<u32>, cpus: u64) -> bool {
        let of_task = u64::from(tasks.processors.get());
        let Some(copies) = u32::try_from(cpus / of_task).ok().filter(|_| cpus.is_multiple_of(of_task)) else {
            return false;
        };
        let chunk = parts_of(&kind.chunk, 1, u64::from(copies));
        let machines_of_tasks = nodes.filter(|_| tasks.on_its_nodes);
        let laid_out = Kind { chunk, copies, machines_of_tasks, ..kind.clone() };
        let is_held = match machines_of_tasks {
            Some(machines) => machines <= copies && self.hold_on(&laid_out, machines),
            None => true,
        };
        is_held && self.lay_out_evenly(kind, laid_out)
    }

    /// Whether so many of the empty machines hold all equal chunks of a job.
    fn hold_on(&self, kind: &Kind, machines: u32) -> bool {
        let groups = kind.groups.iter().map(|&g| &self.groups[usize::from(g)]);
        let mut each: Vec<(u128, u32)> = groups.map(|g| (kind.chunks_on(&g.has), g.count)).collect();
        each.retain(|(chunks, _)| *chunks > 0);
        each.sort_unstable_by_key(|(chunks, _)| Reverse(*chunks));
        let (mut missing, mut held) = (machines, 0);
        for (chunks, count) in each {
            let taken = count.min(missing);
            missing -= taken;
            held += chunks * u128::from(taken);
        }
        missing == 0 && held >= u128::from(kind.copies)
    }

    /// Lays a job of so many processors out on so many nodes, as evenly as whole processors allow: 17 on 2 are 9 and 8. Of
    /// all else nodes have equal parts. Whether the empty machines hold that.
    fn lay_out_on_nodes(&self, kind: &mut Kind, nodes: u64, cpus: u64) -> bool {
        let Some(copies) = u32::try_from(nodes).ok().filter(|nodes| *nodes > 0) else { return false };
        let chunk = parts_of(&kind.chunk, 1, nodes);
        let larger = (cpus % nodes) as u32;
        let Some((r, step)) = self.cpu.filter(|_| larger > 0 && !self.has_equal_parts) else {
            return self.lay_out_evenly(kind, Kind { chunk, copies, ..kind.clone() });
        };
        let with = |cpus: u64| {
            let mut chunk = chunk.clone();
            chunk[r] = cpus * step;
            chunk
        };
        let (chunk, smaller) = (with(cpus / nodes + 1), with(cpus / nodes));
        match copies - larger {
            // One smaller chunk is the last, about which more can be inferred than about chunks of any sizes.
            1 => self.lay_out_evenly(kind, Kind { chunk, last: Some(smaller), copies, ..kind.clone() }),
            others => self.lay_out_unevenly(kind, &[(larger, chunk), (others, smaller)]),
        }
    }

    /// Lays a job out so as its source says; whether the empty machines hold that.
    fn lay_out_evenly(&self, kind: &mut Kind, laid_out: Kind) -> bool {
        let is_held = self.holds(&laid_out) >= u128::from(laid_out.copies);
        if is_held {
            *kind = Kind { rule: LayoutRule::Source, ..laid_out };
        }
        is_held
    }

    /// Lays a job out in chunks of these sizes; whether the empty machines hold them, put there first fit.
    fn lay_out_unevenly(&self, kind: &mut Kind, sizes: &[(u32, Vec<u64>)]) -> bool {
        let [(_, first), others @ ..] = sizes else { return false };
        let least = |r: usize| sizes.iter().map(|(_, chunk)| chunk[r]).min().unwrap_or(0);
        let Some(copies) = sizes.iter().try_fold(0u32, |sum, (chunks, _)| sum.checked_add(*chunks)) else {
            return false;
        };
        let laid_out = Kind {
            chunk: first.clone(),
            sizes: others.to_vec(),
            least: (0..first.len()).map(least).collect(),
            copies,
            rule: LayoutRule::Source,
            ..kind.clone()
        };
        let now = |machine: u32| self.groups[self.group_of(machine)].has.as_slice();
        let free = uneven_chunks::Free { now: &now, later: &|_| None };
        let mut scores = Scores::new(Placement::FirstFit, self, first.len());
        let fits = uneven_chunks::place(self, &laid_out, &free, &mut scores).is_some();
        if fits {
            *kind = laid_out;
        }
        fits
    }

    /// Lays a job out on whole machines: of each machine and of those that count for at least as much, so many as have enough
    /// whichever they are. Among these ways it takes the one that is the least part of the machines that it may use then.
    fn lay_out_on_whole_machines(&self, kind: &mut Kind) -> Option<Rejection> {
        let needed = |g: u16| {
            let amounts = kind.chunk.iter().zip(self.whole_machine(g));
            let each = amounts.filter(|(demand, _)| **demand > 0);
            each.map(|(demand, has)| (*has > 0).then(|| demand.div_ceil(*has)))
                .try_fold(1, |most, n| Some(most.max(n?)))
        };
        let mut kinds: Vec<(u64, u16)> = kind.groups.iter().filter_map(|&g| Some((needed(g)?, g))).collect();
        kinds.sort_unstable();
        // Machines needed, and how many there are.
        let mut best: Option<(u64, u64, usize)> = None;
        for to in (1..=kinds.len()).filter(|&to| kinds.get(to).is_none_or(|(n, _)| *n > kinds[to - 1].0)) {
            let groups: Vec<u16> = kinds[..to].iter().map(|(_, g)| *g).collect();
            let there: u64 = groups.iter().map(|&g| u64::from(self.groups[usize::from(g)].count)).sum();
            let Some(machines) = self.machines_that_have(&kind.chunk, &groups) else { continue };
            let part = |machines: u64, there: u64| u128::from(machines) * u128::from(there);
            let is_less = best.is_none_or(|(n, of, _)| (part(machines, of), machines) < (part(n, there), n));
            if is_less {
                best = Some((machines, there, to));
            }
        }
        let Some((machines, _, to)) = best else { return Some(self.rejection(kind, true)) };
        kind.groups = kinds[..to].iter().map(|(_, g)| *g).collect();
        kind.groups.sort_unstable();
        kind.chunk.fill(1);
        (kind.copies, kind.rule) = (machines as u32, LayoutRule::Whole);
        None
    }

    /// Returns how many of the machines of some groups have enough of every resource, whichever they are; `None` if not even
    /// all of them have.
    fn machines_that_have(&self, demand: &[u64], groups: &[u16]) -> Option<u64> {
        let of = |(r, &demand): (usize, &u64)| {
            let has = |g: &u16| (self.whole_machine(*g)[r], u64::from(self.groups[usize::from(*g)].count));
            let mut each: Vec<(u64, u64)> = groups.iter().map(has).collect();
            each.sort_unstable();
            let (mut machines, mut lacking) = (0, demand);
            for (amount, count) in each {
                if lacking == 0 {
                    break;
                }
                let taken = if amount == 0 { count } else { lacking.div_ceil(amount).min(count) };
                machines += taken;
                lacking = lacking.saturating_sub(amount.saturating_mul(taken));
            }
            (lacking == 0).then_some(machines)
        };
        demand.iter().enumerate().map(of).try_fold(1, |most, machines| Some(most.max(machines?)))
    }

    /// Lays a job out on whole machines of the first kind that has enough, or for Slurm on any; whether there are.
    ///
    /// They are as many as its source states, or else as many as have what it demands.
    fn exclusive_machines(&self, kind: &mut Kind, source: SourceLayout<'_>, requested: Option<&[u64]>) -> bool {
        let demand = requested.unwrap_or(&kind.chunk);
        let machines = |groups: &[u16]| {
            let stated = source.parts().map(|parts| parts.max(1));
            stated.or_else(|| u32::try_from(self.machines_that_have(demand, groups)?).ok())
        };
        let chunk_of =
            |machines: u32| source.largest_of_sizes().unwrap_or_else(|| parts_of(demand, 1, machines.into()));
        if self.has_equal_parts {
            // The scheduler takes them as they are.
            let Some(copies) = machines(&kind.groups) else { return false };
            let laid_out = Kind {
                chunk: chunk_of(copies),
                copies,
                rule: LayoutRule::Exclusive,
                is_by_nodes: true,
                ..kind.clone()
            };
            let is_held = self.holds(&laid_out) >= u128::from(copies);
            if is_held {
                *kind = laid_out;
            }
            return is_held;
        }
        let found = kind.groups.iter().find_map(|&g| {
            let (machines, group) = (machines(&[g])?, &self.groups[usize::from(g)]);
            (machines <= group.count && fits(&chunk_of(machines), &group.has)).then_some((g, machines))
        });
        let Some((g, machines)) = found else { return false };
        kind.chunk.clone_from(&self.groups[usize::from(g)].has);
        (kind.copies, kind.rule, kind.groups) = (machines, LayoutRule::Exclusive, vec![g]);
        true
    }

    /// Returns how many chunks the empty machines hold that the job may use, a smaller last one among them.
    fn holds(&self, kind: &Kind) -> u128 {
        let groups = || kind.groups.iter().map(|&g| &self.groups[usize::from(g)]);
        let full: u128 = groups().map(|g| u128::from(g.count) * kind.chunks_on(&g.has)).sum();
        let last_fits = groups().any(|g| kind.last_fits_beside_chunks(&g.has, kind.chunks_on(&g.has)));
        full + u128::from(last_fits)
    }

    /// Returns why no machines hold a job.
    fn rejection(&self, kind: &Kind, can_split: bool) -> Rejection {
        let groups = || kind.groups.iter().map(|&g| (self.groups[usize::from(g)].count, self.whole_machine(g)));
        let largest = |r: usize| -> u128 {
            if can_split {
                groups().map(|(count, has)| u128::from(count) * u128::from(has[r])).sum()
            } else {
                groups().map(|(_, has)| u128::from(has[r])).max().unwrap_or(0)
            }
        };
        let not_fitting = (0..kind.chunk.len()).find(|&r| u128::from(kind.chunk[r]) > largest(r));
        not_fitting.map_or(Rejection::Together, |r| Rejection::Resource(r.min(255) as u8))
    }
}

/// What jobs of one kind ask for, beside what they require of machines.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) demand: &'a [Amount],
    /// Whether its queue gives it whole machines, or it had such in the log.
    pub(super) is_whole: bool,
    /// What a job of whole machines requested, if that is known apart from what these have.
    pub(super) requested: Option<&'a [u64]>,
    pub(super) source: SourceLayout<'a>,
    pub(super) layout: Layout,
    /// The queues that the job may run in, the first first.
    pub(super) queues: &'a [u16],
    pub(super) class: u8,
}

/// How the source says that a job lies on machines.
#[derive(Clone, Copy)]
pub(super) struct SourceLayout<'a> {
    pub(super) nodes: Option<u32>,
    /// Sizes of chunks where there are several, largest first: how many, and what each holds.
    pub(super) sizes: &'a [(u32, Vec<u64>)],
    /// Whether each chunk is on a machine of its own.
    pub(super) is_by_nodes: bool,
    /// Its tasks, if they are not divided evenly among its machines.
    pub(super) tasks: Option<JobTasks>,
}

impl SourceLayout<'_> {
    /// In how many parts the source says that a job lies on machines.
    fn parts(&self) -> Option<u32> {
        let of_sizes = || self.sizes.iter().map(|(chunks, _)| *chunks).reduce(u32::saturating_add);
        self.nodes.or_else(of_sizes)
    }

    /// The most of each resource in any of the chunks of several sizes.
    fn largest_of_sizes(&self) -> Option<Vec<u64>> {
        let most = |a: Vec<u64>, b: Vec<u64>| a.iter().zip(&b).map(|(a, b)| *a.max(b)).collect();
        self.sizes.iter().map(|(_, chunk)| chunk.clone()).reduce(most)
    }

    /// What the largest part of a job on a node holds; `None` if the source does not say how the job lies.
    fn largest_part(&self, demand: &[u64], cpus: u64) -> Option<Vec<u64>> {
        let stated = self.sizes.first().map(|(_, chunk)| chunk.clone());
        stated.or_else(|| self.nodes.map(|nodes| parts_of(demand, 1, u64::from(nodes).min(cpus))))
    }
}

/// Returns the tasks, of a processor each, of a job whose processors cannot be divided evenly among the nodes that its source states.
/// Other resources go along with processors, unless that would make them more by over a hundredth: those are asked for by node.
fn uneven_tasks(demand: &[u64], source: &SourceLayout<'_>, cpus: u64) -> Option<JobTasks> {
    let nodes = source.nodes.map(u64::from).filter(|nodes| *nodes > 1 && source.sizes.is_empty())?;
    if cpus < nodes || cpus.is_multiple_of(nodes) {
        return None;
    }
    let grows = |(part, whole): (u64, &u64)| {
        (u128::from(part) * u128::from(cpus) - u128::from(*whole)) * 100 > u128::from(*whole)
    };
    let any_grows = parts_of(demand, 1, cpus).into_iter().zip(demand).any(grows);
    (!any_grows).then_some(JobTasks { processors: NonZeroU32::MIN, on_its_nodes: true })
}

/// Returns `times` of `parts` equal parts of a demand, rounded up to whole steps.
fn parts_of(demand: &[u64], times: u64, parts: u64) -> Vec<u64> {
    let part = |d: &u64| (u128::from(*d) * u128::from(times)).div_ceil(u128::from(parts.max(1)));
    demand.iter().map(|d| u64::try_from(part(d)).unwrap_or(u64::MAX)).collect()
}

/// The limit of its queue that a demand is beyond.
pub(super) fn exceeded_limit(rules: &QueueLimits, demand: &[u64]) -> Option<Rejection> {
    let over = |limits: &[u64]| demand.iter().zip(limits).position(|(d, l)| d > l).map(|r| r.min(255) as u8);
    let of_job = over(&rules.max_job).or_else(|| over(&rules.max)).map(Rejection::JobLimit);
    of_job.or_else(|| over(&rules.max_user).map(Rejection::UserLimit))
}
