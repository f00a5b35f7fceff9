//! Machines and queue limits of a site, in a workload's units.

use std::collections::HashMap;

use evenhand_model::{
    Amount, Capacity, CapacityError, Chunk, Cluster, ClusterError, Detail, Queue, Rational, Resource, Span, Time, UBig,
    Workload, to_f64, whole_steps,
};
use evenhand_policies::{Job, LogPlace};
use thiserror::Error;

use super::job_limits::{JobLimits, Limit};
use super::kind::{Kind, copies, fits};
use super::layout::{Layout, LayoutRule};
use super::machine_state::Placements;
use super::placement::{Placement, Scores};
use super::requirements::SiteRequirements;
use super::uneven_chunks;

/// Machines of one kind. The machines of a site are numbered through, group by group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    name: String,
    /// The number of the first.
    pub(crate) first: u32,
    /// How many there are.
    pub(crate) count: u32,
    /// Amounts on each machine, in steps.
    pub(crate) has: Vec<u64>,
    /// How fast they are, as a fraction.
    pub(crate) speed: (u64, u64),
    /// The same as a number.
    rate: f64,
    properties: Vec<String>,
}

impl Group {
    /// Whether a word that jobs require is a property of the machines, or names them (in MetaCentrum's logs after `cl_`).
    pub(crate) fn has_property(&self, word: &str) -> bool {
        let names = [Some(word), word.strip_prefix("cl_")];
        self.properties.iter().any(|property| property == word) || names.contains(&Some(self.name.as_str()))
    }

    /// How long something runs here that takes `span` at speed 1, rounded up to whole nanoseconds.
    pub(crate) fn scale(&self, span: u64) -> u64 {
        let (above, below) = self.speed;
        // The common case needs no division.
        if above == below {
            return span;
        }
        let scaled = (u128::from(span) * u128::from(below)).div_ceil(u128::from(above));
        // Past the end of time either way.
        u64::try_from(scaled).unwrap_or(u64::MAX).min(2 * Span::MAX.nanos())
    }
}

/// A queue in steps.
#[derive(Clone, Debug, PartialEq)]
struct QueueLimits {
    name: String,
    price: f64,
    priority: i32,
    max_wall: Option<Span>,
    max_job: Vec<u64>,
    max_user: Vec<u64>,
    max: Vec<u64>,
    properties: Vec<String>,
}

/// Where jobs run: one pool, or machines with queues.
///
/// Amounts are in steps of a workload's resources, so a site belongs to the workload it was built for.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    pub(crate) groups: Vec<Group>,
    queues: Vec<QueueLimits>,
    /// What jobs may hold together.
    limits: Vec<Limit>,
    total: Capacity,
    /// Which resource is CPUs and how many steps one is: jobs are split into whole CPUs.
    pub(crate) cpu: Option<(usize, u64)>,
    /// A pool is one bag: nothing is ever split.
    is_pool: bool,
}

/// Why machines do not go with a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SiteError {
    /// No machine has a resource that the workload's tasks need.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The sum of all machines is no capacity.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// A speed has more digits than run times can be divided by.
    #[error("the speed of {group} has too many digits; give a fraction of two numbers below 2^64")]
    Speed {
        /// The group's name.
        group: String,
    },
    /// More machines than can be numbered.
    #[error("there are {machines} machines; at most {largest} can be simulated", largest = MAX_MACHINES)]
    TooMany {
        /// How many there are.
        machines: u64,
    },
}

const MAX_MACHINES: u64 = 1 << 24;
/// No limit.
pub(crate) const NO_LIMIT: u64 = u64::MAX;

impl Site {
    /// One pool: one machine that has all of it.
    pub fn pool(capacity: &Capacity) -> Site {
        let has = capacity.amounts().iter().map(|a| a.0).collect();
        let group =
            Group { name: "pool".into(), first: 0, count: 1, has, speed: (1, 1), rate: 1.0, properties: Vec::new() };
        Site {
            groups: vec![group],
            queues: Vec::new(),
            limits: Vec::new(),
            total: capacity.clone(),
            cpu: None,
            is_pool: true,
        }
    }

    /// The machines and queues of a cluster, for a workload with these resources.
    ///
    /// # Errors
    /// Returns an error if no machine has a resource of the workload, or a number exceeds what can be simulated.
    pub fn machines(cluster: &Cluster, resources: &[Resource]) -> Result<Site, SiteError> {
        // Groups and queues are numbered with 16 bits; each group has a machine.
        let parts = cluster.groups.len().max(cluster.queues.len());
        if cluster.machines() > MAX_MACHINES || parts > usize::from(u16::MAX) {
            return Err(SiteError::TooMany { machines: cluster.machines() });
        }
        let total = Capacity::new(resources, cluster.total(resources)?)?;
        let steps = |units: &[Rational]| -> Vec<u64> {
            units.iter().zip(resources).map(|(u, r)| whole_steps(u, r).0).collect()
        };
        let mut first = 0;
        let mut groups = Vec::new();
        for group in &cluster.groups {
            groups.push(Group {
                name: group.name.clone(),
                first,
                count: group.count,
                has: steps(&cluster.units(group, resources)),
                rate: to_f64(&group.speed),
                speed: fraction(&group.speed).ok_or_else(|| SiteError::Speed { group: group.name.clone() })?,
                properties: group.properties.clone(),
            });
            first += group.count;
        }
        let limits = |named: &[(String, evenhand_model::ResourceQuantity)]| -> Vec<u64> {
            let of = |r: &Resource| {
                let stock = named.iter().find(|(name, _)| *name == r.name);
                stock.map_or(NO_LIMIT, |(_, s)| whole_steps(&s.in_unit(&r.unit), r).0)
            };
            resources.iter().map(of).collect()
        };
        let with_jobs = |mut limits: Vec<u64>, jobs: Option<u32>| {
            limits.push(jobs.map_or(NO_LIMIT, u64::from));
            limits
        };
        let of_queue = |q: &Queue, each_user: bool| Limit {
            queues: vec![q.name.clone()],
            accounts: Vec::new(),
            users: Vec::new(),
            each_user,
            most: match each_user {
                true => with_jobs(limits(&q.max_user), q.max_user_jobs),
                false => with_jobs(limits(&q.max), q.max_jobs),
            },
            max_job: Vec::new(),
            max_wall: None,
        };
        let of_queues = cluster.queues.iter().flat_map(|q| [of_queue(q, true), of_queue(q, false)]);
        let others = cluster.limits.iter().map(|l| Limit {
            queues: l.queues.clone(),
            accounts: l.accounts.clone(),
            users: l.users.clone(),
            each_user: l.each_user,
            most: with_jobs(limits(&l.max), l.max_jobs),
            max_job: limits(&l.max_job),
            max_wall: l.max_wall,
        });
        let all_limits = of_queues.filter(|l| l.most.iter().any(|most| *most != NO_LIMIT)).chain(others).collect();
        let queues = cluster.queues.iter().map(|q| QueueLimits {
            name: q.name.clone(),
            price: to_f64(&q.price),
            priority: q.priority,
            max_wall: q.max_wall,
            max_job: limits(&q.max_job),
            max_user: limits(&q.max_user),
            max: limits(&q.max),
            properties: q.properties.clone(),
        });
        let cpu = resources.iter().position(|r| r.name == "cpu").map(|r| (r, resources[r].steps()));
        Ok(Site { groups, queues: queues.collect(), limits: all_limits, total, cpu, is_pool: false })
    }

    /// Returns the total capacity, which policies divide by.
    pub fn total(&self) -> &Capacity {
        &self.total
    }

    /// Returns the number of machines.
    pub fn len(&self) -> usize {
        self.groups.last().map_or(0, |g| (g.first + g.count) as usize)
    }

    /// Returns whether there are no machines.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the charge for a second of a job on its machines: the mean machine speed over its
    /// chunks, times the price of its queue.
    pub(crate) fn rate(&self, kind: &Kind, held: &Placements) -> f64 {
        let price = kind.queue.map_or(1.0, |q| self.queues[usize::from(q)].price);
        if self.groups.len() == 1 {
            return self.groups[0].rate * price;
        }
        let of_sizes = held.of_sizes.iter().map(|&(_, machine, chunks)| (machine, chunks));
        let chunks = held.iter().chain(held.last.map(|machine| (machine, 1))).chain(of_sizes);
        let speeds: f64 = chunks.map(|(m, n)| self.groups[self.group_of(m)].rate * f64::from(n)).sum();
        speeds / f64::from(kind.copies) * price
    }

    /// The groups whose machines a queue uses; all of them for jobs in no queue.
    pub(crate) fn groups_of_queue(&self, queue: Option<u16>) -> Vec<u16> {
        let rules = queue.map(|q| &self.queues[usize::from(q)]);
        let has_all =
            |g: &usize| rules.is_none_or(|q| q.properties.iter().all(|p| self.groups[*g].properties.contains(p)));
        (0..self.groups.len()).filter(has_all).map(|g| g as u16).collect()
    }

    /// The longest wall time that a job of a queue can request.
    pub(crate) fn max_wall(&self, queue: u16) -> Option<Span> {
        self.queues[usize::from(queue)].max_wall
    }

    /// The group of a machine.
    #[inline]
    pub(crate) fn group_of(&self, machine: u32) -> usize {
        if self.groups.len() == 1 {
            return 0;
        }
        self.groups.partition_point(|g| g.first <= machine) - 1
    }
}

fn fraction(speed: &Rational) -> Option<(u64, u64)> {
    let (above, below) = speed.clone().into_parts();
    let above = UBig::try_from(above).ok()?;
    Some((u64::try_from(above).ok()?, u64::try_from(below).ok()?))
}

/// Why a job can never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rejection {
    /// No machine it may use, or all of them together where it may be split, have enough of this
    /// resource: the first such resource.
    Resource(u8),
    /// For each resource some machine has enough, but no machine has enough of all of them.
    Together,
    /// It requests more wall time than its queue allows.
    Wall,
    /// It requests more of a resource than its queue allows a job.
    JobLimit(u8),
    /// It requests more of a resource than its queue allows a user.
    UserLimit(u8),
    /// It requests more of a resource than a limit of its account or user allows.
    LimitedAmount(u8),
    /// It requests more wall time than a limit of its account or user allows.
    LimitedWall,
}

/// Every job of a workload on a site: made once, shared by all runs.
#[derive(Clone, Debug)]
pub struct Jobs {
    pub(crate) kinds: Vec<Kind>,
    /// By row.
    pub(crate) kind: Vec<u32>,
    /// By row: the wall time it is expected to take at speed 1, never less than its run time.
    pub(crate) estimate: Vec<u64>,
    /// By row: why it was rejected; `None` if it can run.
    pub(crate) rejections: Vec<Option<Rejection>>,
    /// Whether the chunks of some job are of several sizes.
    pub(crate) has_uneven: bool,
    /// How many different priorities the queues have.
    pub(crate) classes: usize,
    /// How many queues the site has.
    pub(crate) queues: usize,
    pub(crate) limits: JobLimits,
    /// Rows without a requested wall time: their run time is used.
    pub without_request: u64,
    /// Rows that ran longer than requested: their run time is used as the estimate.
    pub exceeded_request: u64,
    /// Rows that require something of machines that no machine of the site names: that is without effect.
    pub unknown_requirements: u64,
    /// Rows whose requirements no machines on which they fit have together: they are laid out without them.
    pub dropped_requirements: u64,
}

impl Jobs {
    /// Prepares the jobs of `workload`, in which every row is one job.
    ///
    /// `layout` determines the chunks. The resources of a job go along in equal parts, rounded up to whole steps. On a
    /// pool nothing is ever split.
    pub fn new(workload: &Workload, site: &Site, layout: Layout) -> Jobs {
        let columns = workload.columns();
        let queue_of: Vec<Option<u16>> = workload
            .queues()
            .iter()
            .map(|name| site.queues.iter().position(|q| q.name == *name).map(|q| q as u16))
            .collect();
        let mut priorities: Vec<i32> = site.queues.iter().map(|q| q.priority).chain([0]).collect();
        priorities.sort_unstable_by(|a, b| b.cmp(a));
        priorities.dedup();
        // At most 255 priority classes are distinguished; lower ones share the last.
        let class = |queue: Option<u16>| {
            let priority = queue.map_or(0, |q| site.queues[usize::from(q)].priority);
            priorities.iter().position(|p| *p == priority).unwrap_or(0).min(254) as u8
        };
        let width = site.queues.len() + 1;
        // Kinds of jobs whose source states no nodes by demand and queue; all others by nodes as well.
        let mut ids = vec![u32::MAX; workload.demands().len() * width];
        let mut ids_by_nodes: HashMap<KindKey, u32> = HashMap::new();
        let requirements = SiteRequirements::of_workload(site, workload);
        let texts = workload.details(Detail::Chunks).iter();
        let chunks: Vec<Vec<(u32, Vec<u64>)>> =
            texts.map(|text| sizes_of(text, workload.resources(), site.cpu).unwrap_or_default()).collect();
        let mut jobs = Jobs {
            kinds: Vec::new(),
            kind: Vec::with_capacity(workload.len()),
            estimate: Vec::with_capacity(workload.len()),
            rejections: Vec::with_capacity(workload.len()),
            has_uneven: false,
            classes: priorities.len().min(255),
            queues: site.queues.len(),
            limits: JobLimits::new(workload, &site.limits),
            without_request: 0,
            exceeded_request: 0,
            unknown_requirements: 0,
            dropped_requirements: 0,
        };
        for row in 0..workload.len() {
            let queue = columns.queue.as_ref().and_then(|c| queue_of.get(c[row] as usize).copied().flatten());
            let demand = columns.demand[row];
            let place = demand.index() * width + queue.map_or(0, |q| usize::from(q) + 1);
            let nodes = workload.nodes(row).filter(|_| layout == Layout::Auto && !site.is_pool);
            let required = workload.detail_id(Detail::Requires, row).filter(|_| !site.is_pool);
            let sizes = workload.detail_id(Detail::Chunks, row).filter(|_| layout == Layout::Auto && !site.is_pool);
            let id = match (nodes, required, sizes) {
                (None, None, None) => &mut ids[place],
                _ => ids_by_nodes.entry(KindKey { place, nodes, required, sizes }).or_insert(u32::MAX),
            };
            let source = SourceLayout { nodes, sizes: sizes.map_or(&[], |id| &chunks[id as usize]) };
            let required = required.map(|id| &requirements[id as usize]);
            if *id == u32::MAX {
                *id = jobs.kinds.len() as u32;
                let amounts = workload.demands().row(demand);
                jobs.kinds.push(site.kind(amounts, source, layout, queue, class(queue), required));
                jobs.has_uneven |= jobs.kinds[*id as usize].is_uneven();
            }
            let kind = &jobs.kinds[*id as usize];
            jobs.unknown_requirements += u64::from(required.is_some_and(|required| required.has_unknown));
            jobs.dropped_requirements += u64::from(kind.drops_requirements);
            // A request of zero means that none was recorded.
            let asked = workload.requested(row).map_or(0, Span::nanos);
            let ran = columns.duration[row].nanos();
            jobs.without_request += u64::from(asked == 0);
            jobs.exceeded_request += u64::from(asked != 0 && asked < ran);
            let limit = queue.and_then(|q| site.queues[usize::from(q)].max_wall);
            let wants = if asked == 0 { ran } else { asked };
            let too_long = limit.filter(|l| wants > l.nanos()).map(|_| Rejection::Wall);
            let limited = || {
                let demand = workload.amounts(row).iter().map(|a| a.0).collect::<Vec<u64>>();
                jobs.limits.rejection(row, &demand, Span::from_nanos(wants))
            };
            let rejection = kind.rejection.or(too_long).or_else(limited);
            jobs.rejections.push(rejection);
            // At least a nanosecond: a job of no duration also needs capacity when it starts.
            jobs.estimate.push(asked.max(ran).max(1));
            jobs.kind.push(*id);
        }
        jobs
    }

    /// Returns the kind of a row.
    pub(crate) fn kind_of(&self, row: u32) -> &Kind {
        &self.kinds[self.kind[row as usize] as usize]
    }

    /// Returns a row of `workload` as a policy sees it while it waits.
    pub(crate) fn pending_job<'a>(&self, workload: &'a Workload, submitted: Time, row: u32) -> Job<'a> {
        let (columns, at) = (workload.columns(), row as usize);
        Job {
            place: LogPlace::new(submitted, u64::from(row)),
            chunks: self.kind_of(row).copies,
            queue: columns.queue.as_ref().map(|c| c[at]),
            requested: Span::from_nanos(self.estimate[at]),
            ..Job::new(columns.user[at], workload.amounts(at))
        }
    }

    /// Returns why a row is rejected, if it is.
    pub fn rejection(&self, row: usize) -> Option<Rejection> {
        self.rejections[row]
    }

    /// Returns the rule that laid a row out.
    pub fn rule(&self, row: usize) -> LayoutRule {
        self.kinds[self.kind[row] as usize].rule
    }

    /// Returns into how many chunks a row is split.
    pub fn chunks(&self, row: usize) -> u32 {
        self.kinds[self.kind[row] as usize].copies
    }
}

impl Site {
    fn kind(
        &self,
        demand: &[Amount],
        source: SourceLayout<'_>,
        layout: Layout,
        queue: Option<u16>,
        class: u8,
        required: Option<&SiteRequirements>,
    ) -> Kind {
        let kind = self.kind_on(demand, source, layout, queue, class, required);
        let could_fit = matches!(kind.rejection, Some(Rejection::Resource(_) | Rejection::Together));
        if !could_fit || required.is_none() {
            return kind;
        }
        // What the machines of the queue hold runs on them, whatever the log requires beside that.
        let without = self.kind_on(demand, source, layout, queue, class, None);
        match without.rejection {
            None => Kind { drops_requirements: true, ..without },
            Some(_) => kind,
        }
    }

    fn kind_on(
        &self,
        demand: &[Amount],
        source: SourceLayout<'_>,
        layout: Layout,
        queue: Option<u16>,
        class: u8,
        required: Option<&SiteRequirements>,
    ) -> Kind {
        let demand: Vec<u64> = demand.iter().map(|a| a.0).collect();
        let rules = queue.map(|q| &self.queues[usize::from(q)]);
        let mut allowed = self.groups_of_queue(queue);
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
            class,
            rejection: None,
            rule,
            is_by_nodes: false,
            drops_requirements: false,
        };
        let is_exclusive = layout == Layout::Auto && required.is_some_and(|required| required.whole_machines);
        kind.rejection = match rules.and_then(|q| exceeded_limit(q, &kind.chunk)) {
            Some(limit) => Some(limit),
            None if is_exclusive => match self.exclusive_machines(&mut kind, source.nodes.unwrap_or(1)) {
                true => None,
                false => self.lay_out(&mut kind, source, layout),
            },
            None => self.lay_out(&mut kind, source, layout),
        };
        let smallest = kind.smallest_chunk().to_vec();
        kind.groups.retain(|&g| fits(&smallest, &self.groups[usize::from(g)].has));
        let machines: u64 = kind.groups.iter().map(|&g| u64::from(self.groups[usize::from(g)].count)).sum();
        kind.is_by_nodes = matches!(kind.rule, LayoutRule::Source | LayoutRule::Whole | LayoutRule::Exclusive)
            && machines >= u64::from(kind.copies);
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
        let whole = self.cpu.filter(|_| !self.is_pool).map(|(r, step)| (kind.chunk[r], step));
        // Jobs of a fraction of a processor are never split.
        let cpus = match whole {
            Some((steps, step)) if steps > 0 && steps % step == 0 => steps / step,
            _ => 1,
        };
        if !source.sizes.is_empty() && self.lay_out_unevenly(kind, source.sizes) {
            return None;
        }
        let nodes = source.nodes;
        let one = (LayoutRule::Single, 1);
        let tries: Vec<(LayoutRule, u64)> = match layout {
            _ if self.is_pool => vec![(LayoutRule::Pool, 1)],
            Layout::Auto => {
                let stated = nodes.map(|n| (LayoutRule::Source, u64::from(n).min(cpus)));
                stated.into_iter().chain([one, (LayoutRule::Packed, cpus)]).collect()
            }
            Layout::Single => vec![one],
            Layout::Packed => vec![(LayoutRule::Packed, cpus)],
            Layout::Whole => return self.whole_machines(kind),
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
            let laid_out = Kind { chunk, last, copies: parts as u32, rule, ..kind.clone() };
            if self.holds(&laid_out) >= u128::from(parts) {
                *kind = laid_out;
                return None;
            }
        }
        Some(self.rejection(kind, can_split))
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

    /// Lays a job out on whole machines of the first kind that has enough of them.
    fn whole_machines(&self, kind: &mut Kind) -> Option<Rejection> {
        for &g in &kind.groups {
            let group = &self.groups[usize::from(g)];
            let needed = kind.chunk.iter().zip(&group.has).map(|(demand, has)| match (demand, has) {
                (0, _) => Some(1),
                (_, 0) => None,
                (demand, has) => Some(demand.div_ceil(*has)),
            });
            let machines = needed.collect::<Option<Vec<u64>>>().and_then(|n| n.into_iter().max());
            if let Some(machines) = machines.filter(|n| *n <= u64::from(group.count)) {
                kind.chunk.clone_from(&group.has);
                (kind.copies, kind.rule, kind.groups) = (machines as u32, LayoutRule::Whole, vec![g]);
                return None;
            }
        }
        Some(self.rejection(kind, true))
    }

    /// Lays a job out on so many whole machines of the first kind on which it fits so; whether there is one.
    fn exclusive_machines(&self, kind: &mut Kind, nodes: u32) -> bool {
        let chunk = parts_of(&kind.chunk, 1, u64::from(nodes.max(1)));
        let found = kind.groups.iter().copied().find(|&g| {
            let group = &self.groups[usize::from(g)];
            nodes <= group.count && fits(&chunk, &group.has)
        });
        let Some(g) = found else { return false };
        kind.chunk.clone_from(&self.groups[usize::from(g)].has);
        (kind.copies, kind.rule, kind.groups) = (nodes.max(1), LayoutRule::Exclusive, vec![g]);
        true
    }

    /// Returns how many chunks the empty machines hold that the job may use, a smaller last one among them.
    fn holds(&self, kind: &Kind) -> u128 {
        let groups = || kind.groups.iter().map(|&g| &self.groups[usize::from(g)]);
        let full: u128 = groups().map(|g| u128::from(g.count) * copies(&kind.chunk, &g.has)).sum();
        let has_room = groups().any(|g| kind.has_room_for_last(&g.has, copies(&kind.chunk, &g.has)));
        full + u128::from(has_room)
    }

    /// Returns why no machines hold a job.
    fn rejection(&self, kind: &Kind, can_split: bool) -> Rejection {
        let groups = || kind.groups.iter().map(|&g| &self.groups[usize::from(g)]);
        let largest = |r: usize| -> u128 {
            if can_split {
                groups().map(|g| u128::from(g.count) * u128::from(g.has[r])).sum()
            } else {
                groups().map(|g| u128::from(g.has[r])).max().unwrap_or(0)
            }
        };
        let not_fitting = (0..kind.chunk.len()).find(|&r| u128::from(kind.chunk[r]) > largest(r));
        not_fitting.map_or(Rejection::Together, |r| Rejection::Resource(r.min(255) as u8))
    }
}

/// What makes jobs one kind: demand and queue, the nodes that the source states, and the texts of requirements and chunks.
#[derive(PartialEq, Eq, Hash)]
struct KindKey {
    place: usize,
    nodes: Option<u32>,
    required: Option<u32>,
    sizes: Option<u32>,
}

/// How the source says that a job lies on machines.
#[derive(Clone, Copy)]
struct SourceLayout<'a> {
    nodes: Option<u32>,
    /// Sizes of chunks where there are several, largest first: how many, and what each holds.
    sizes: &'a [(u32, Vec<u64>)],
}

/// Returns the sizes of chunks of a text, largest first; `None` if it is no text of chunks, or they are equal.
fn sizes_of(text: &str, resources: &[Resource], cpu: Option<(usize, u64)>) -> Option<Vec<(u32, Vec<u64>)>> {
    let of = |chunk: Chunk| {
        let amount = |r: &Resource| {
            let held = chunk.demand.iter().find(|(name, _)| *name == r.name);
            held.map_or(0, |(_, quantity)| whole_steps(&quantity.in_unit(&r.unit), r).0)
        };
        (chunk.count, resources.iter().map(amount).collect::<Vec<u64>>())
    };
    let mut sizes: Vec<(u32, Vec<u64>)> = Chunk::parse_all(text).ok()?.into_iter().map(of).collect();
    let processors = |chunk: &[u64]| cpu.and_then(|(r, _)| chunk.get(r).copied());
    sizes.sort_by(|(_, a), (_, b)| processors(b).cmp(&processors(a)).then_with(|| b.cmp(a)));
    sizes.dedup_by(|next, first| {
        let same = next.1 == first.1;
        first.0 = first.0.saturating_add(if same { next.0 } else { 0 });
        same
    });
    let is_usable = sizes.len() <= usize::from(u16::MAX) && sizes.iter().all(|(_, chunk)| chunk.iter().any(|a| *a > 0));
    (sizes.len() > 1 && is_usable).then_some(sizes)
}

/// Returns `times` of `parts` equal parts of a demand, rounded up to whole steps.
fn parts_of(demand: &[u64], times: u64, parts: u64) -> Vec<u64> {
    let part = |d: &u64| (u128::from(*d) * u128::from(times)).div_ceil(u128::from(parts.max(1)));
    demand.iter().map(|d| u64::try_from(part(d)).unwrap_or(u64::MAX)).collect()
}

/// The limit of its queue that a demand is beyond.
fn exceeded_limit(rules: &QueueLimits, demand: &[u64]) -> Option<Rejection> {
    let over = |limits: &[u64]| demand.iter().zip(limits).position(|(d, l)| d > l).map(|r| r.min(255) as u8);
    let of_job = over(&rules.max_job).or_else(|| over(&rules.max)).map(Rejection::JobLimit);
    of_job.or_else(|| over(&rules.max_user).map(Rejection::UserLimit))
}
