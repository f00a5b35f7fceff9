//! The jobs of a workload on a site: made once, shared by all runs.

use std::collections::HashMap;

use evenhand_model::{Amount, Chunk, Detail, Resource, Span, Time, Workload, queue_names, whole_steps};
use evenhand_policies::{Job, LogPlace};

use super::job_limits::{JobLimits, beyond_submit_limits};
use super::kind::{Kind, Misfit};
use super::lay_out::{Asked, SourceLayout};
use super::layout::{Layout, LayoutRule};
use super::queue_choices::QueueChoices;
use super::requirements::SiteRequirements;
use super::site::Site;
use super::waiting_groups::JobGroups;

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
    /// It requests more of a resource than a limit of its account, user or QOS allows.
    LimitedAmount(u8),
    /// It requests more wall time than a limit of its account, user or QOS allows.
    LimitedWall,
    /// It asks for more licences than there are.
    Licences,
    /// A limit of 0 holds it: the number of the limit among those of the site, and which part of it is 0. [`Jobs::describe`] names it.
    Held(u32, ZeroLimit),
}

/// Which part of a limit is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ZeroLimit {
    /// The number of jobs that run.
    Jobs,
    /// The number of jobs that wait or run.
    Submitted,
    /// The amount of this resource that all of its jobs hold.
    Amount(u8),
    /// The amount of this resource that one job holds.
    JobAmount(u8),
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
    pub(crate) limit_groups: JobGroups,
    /// The nice values by their texts in the workload.
    pub(crate) nice: Vec<i64>,
    /// Rows without a requested wall time: their run time is used.
    pub without_request: u64,
    /// Rows that ran longer than requested: their run time is used as the estimate.
    pub exceeded_request: u64,
    /// Rows that require something of machines that no machine of the site names: that is without effect.
    pub unknown_requirements: u64,
    /// Rows that ask for licences that the site does not have: they are without effect.
    pub unknown_licences: u64,
    /// Rows all of whose queues the site does not have, though it has queues, and the names of these.
    pub unknown_queues: (u64, Vec<String>),
    /// Rows whose requirements no machines on which they fit have together: they are laid out without them.
    pub dropped_requirements: u64,
    /// Rows that may run on the machines of several queues, because they name them.
    pub several_queues: u64,
    /// Rows that need more on a node than any machine has that they may use: they lie otherwise than their source says.
    pub larger_than_nodes: u64,
    /// The same of rows of which each part fits on some machine, but there are too few.
    pub more_than_nodes: u64,
}

impl Jobs {
    /// Prepares the jobs of `workload`, in which every row is one job.
    ///
    /// `layout` determines the chunks. The resources of a job go along in proportion to its processors, rounded up to whole
    /// steps. On a pool nothing is ever split. On a site of whole machines jobs have these, and on no other: there
    /// [`Layout::Whole`] is as [`Layout::Auto`] for jobs whose source says nothing.
    pub fn new(workload: &Workload, site: &Site, layout: Layout) -> Jobs {
        let columns = workload.columns();
        let choices = QueueChoices::new(workload, site);
        let mut priorities: Vec<i32> = site.queues.iter().map(|q| q.priority).chain([0]).collect();
        priorities.sort_unstable_by(|a, b| b.cmp(a));
        priorities.dedup();
        // At most 255 priority classes are distinguished; lower ones share the last.
        let class = |queue: Option<u16>| {
            let priority = queue.map_or(0, |q| site.queues[usize::from(q)].priority);
            priorities.iter().position(|p| *p == priority).unwrap_or(0).min(254) as u8
        };
        let width = choices.len();
        let is_by_source = layout == Layout::Auto && !site.is_pool && !site.are_whole;
        // Kinds of jobs whose source states no nodes by demand and queue; all others by nodes as well.
        let mut ids = vec![u32::MAX; workload.demands().len() * width];
        let mut ids_by_nodes: HashMap<KindKey, u32> = HashMap::new();
        let requirements = SiteRequirements::of_workload(site, workload);
        let texts = workload.details(Detail::Chunks).iter();
        let chunks: Vec<StatedChunks> =
            texts.map(|text| StatedChunks::parse(text, workload.resources(), site.cpu)).collect();
        let whole = WholeMachines::new(workload, site);
        let mut jobs = Jobs {
            kinds: Vec::new(),
            nice: workload.details(Detail::Nice).iter().map(|text| text.trim().parse().unwrap_or(0)).collect(),
            kind: Vec::with_capacity(workload.len()),
            estimate: Vec::with_capacity(workload.len()),
            rejections: Vec::with_capacity(workload.len()),
            has_uneven: false,
            classes: priorities.len().min(255),
            queues: site.queues.len(),
            limits: JobLimits::new(workload, site, &choices),
            limit_groups: JobGroups::default(),
            without_request: 0,
            exceeded_request: 0,
            unknown_queues: unknown_queues(workload, site),
            unknown_requirements: 0,
            unknown_licences: 0,
            dropped_requirements: 0,
            several_queues: 0,
            larger_than_nodes: 0,
            more_than_nodes: 0,
        };
        for row in 0..workload.len() {
            let (choice, queues) = choices.of(workload, row);
            let queue = queues.first().copied();
            let demand = columns.demand[row];
            let place = demand.index() * width + choice;
            jobs.several_queues += u64::from(queues.len() > 1);
            let nodes = workload.nodes(row).filter(|_| is_by_source);
            let required = workload.detail_id(Detail::Requires, row).filter(|_| !site.is_pool);
            let sizes = workload.detail_id(Detail::Chunks, row).filter(|_| is_by_source);
            let licences = jobs.limits.licences.text_of(workload, row);
            let requires_whole = required.is_some_and(|id| requirements[id as usize].whole_machines);
            let requested = site.has_equal_parts.then(|| requested_steps(workload, row)).flatten();
            let is_whole = queue.is_some_and(|queue| site.queues[usize::from(queue)].whole_machines)
                || requested.as_deref().is_some_and(|requested| whole.had(workload, site, row, requested));
            let requested = requested.filter(|_| requires_whole || is_whole);
            let id = match (nodes, required, sizes, licences, &requested) {
                (None, None, None, None, None) => &mut ids[place],
                _ => {
                    let requested = requested.clone();
                    ids_by_nodes
                        .entry(KindKey { place, nodes, required, sizes, licences, requested })
                        .or_insert(u32::MAX)
                }
            };
            let stated = sizes.map(|id| &chunks[id as usize]);
            let required = required.map(|id| &requirements[id as usize]);
            // Chunks that are not nodes may share one, unless the job or the scheduler spreads them.
            let is_spread = site.has_equal_parts || required.is_some_and(|required| required.separate_machines);
            let source = SourceLayout {
                is_by_nodes: stated.is_none() || is_spread,
                nodes: stated.and_then(|stated| stated.equal).or(nodes),
                sizes: stated.map_or(&[], |stated| &stated.sizes),
                tasks: required.and_then(|required| required.tasks).filter(|_| is_by_source),
            };
            if *id == u32::MAX {
                *id = jobs.kinds.len() as u32;
                let demand = workload.demands().row(demand);
                let requested = requested.as_deref();
                let kind = site
                    .kind(Asked { demand, is_whole, requested, source, layout, queues, class: class(queue) }, required);
                let licences = licences.map_or_else(Vec::new, |text| jobs.limits.licences.counts_of(text));
                jobs.kinds.push(Kind { licences, ..kind });
                jobs.has_uneven |= jobs.kinds[*id as usize].is_uneven();
            }
            let kind = &jobs.kinds[*id as usize];
            jobs.unknown_requirements += u64::from(required.is_some_and(|required| required.has_unknown));
            jobs.dropped_requirements += u64::from(kind.drops_requirements);
            jobs.larger_than_nodes += u64::from(kind.misfit == Some(Misfit::Node));
            jobs.more_than_nodes += u64::from(kind.misfit == Some(Misfit::Together));
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
            let licences = &jobs.limits.licences;
            jobs.unknown_licences += u64::from(licences.has_unknown(workload, row));
            let licences = licences.exceed(workload, row).then_some(Rejection::Licences);
            let held = jobs.limits.zero(row, workload.amounts(row).iter().map(|a| a.0));
            let rejection = held.or(kind.rejection).or(too_long).or_else(limited).or(licences);
            jobs.rejections.push(rejection);
            // At least a nanosecond: a job of no duration also needs capacity when it starts.
            jobs.estimate.push(asked.max(ran).max(1));
            jobs.kind.push(*id);
        }
        jobs.limit_groups = JobGroups::by_limits(workload, &jobs);
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
            qos: workload.detail_id(Detail::Qos, at),
            nodes: workload.nodes(at),
            nice: workload.detail_id(Detail::Nice, at).map_or(0, |text| self.nice[text as usize]),
            requested: Span::from_nanos(self.estimate[at]),
            ..Job::new(columns.user[at], workload.amounts(at))
        }
    }

    /// Returns how many jobs of a log were submitted beyond a limit of submissions, which Slurm refuses; `None` without such
    /// limits. `ends` are the ends of rows in nanoseconds, none of rows that did not run.
    pub fn beyond_submit_limits(&self, workload: &Workload, ends: impl Fn(usize) -> Option<u64>) -> Option<u64> {
        beyond_submit_limits(workload, &self.limits, ends)
    }

    /// Returns why a row is rejected, if it is.
    pub fn rejection(&self, row: usize) -> Option<Rejection> {
        self.rejections[row]
    }

    /// Describes why rows are rejected, to users; `resources` are those of the workload.
    pub fn describe(&self, rejection: Rejection, resources: &[Resource]) -> String {
        match rejection {
            Rejection::Held(limit, zero) => self.limits.describe_zero(limit, zero, resources),
            other => other.describe(resources),
        }
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

/// The rows in queues that are not among those of a site, and the names of these.
fn unknown_queues(workload: &Workload, site: &Site) -> (u64, Vec<String>) {
    let is_known = |name: &str| site.queues.iter().any(|queue| queue.name == name);
    let is_unknown = |name: &str| !site.queues.is_empty() && !is_known(name) && !queue_names(name).any(&is_known);
    let names: Vec<String> = workload.queues().iter().filter(|name| is_unknown(name)).cloned().collect();
    if names.is_empty() {
        return (0, names);
    }
    let rows = (0..workload.len()).filter(|row| workload.queue(*row).is_some_and(&is_unknown)).count();
    (rows as u64, names)
}

/// Which jobs had whole machines in the log, for Slurm's scheduler: a batch script can ask for them, and no log shows that. Such a job was
/// allocated all processors of its machines, and had requested fewer.
struct WholeMachines {
    /// By text of machines: how many steps of processors they have; empty where nothing is known of what jobs requested.
    processors: Vec<Option<u64>>,
}

impl WholeMachines {
    fn new(workload: &Workload, site: &Site) -> WholeMachines {
        let is_known = site.has_equal_parts && workload.rows_with_requested_amounts() > 0;
        let lists = workload.details(Detail::Machines).iter().filter(|_| is_known);
        WholeMachines { processors: lists.map(|list| site.processors_of(list)).collect() }
    }

    /// Whether a row had them; `requested`: its requested amounts, which are known.
    fn had(&self, workload: &Workload, site: &Site, row: usize, requested: &[u64]) -> bool {
        let of_row = || {
            let list = workload.detail_id(Detail::Machines, row)?;
            let (all, (processors, _)) = (self.processors[list as usize]?, site.cpu?);
            Some(workload.amounts(row)[processors].0 == all && requested[processors] < all)
        };
        of_row().unwrap_or(false)
    }
}

/// What a row requested, in the steps of what it holds; `None` if that is not known apart.
fn requested_steps(workload: &Workload, row: usize) -> Option<Vec<u64>> {
    let steps = |(r, amount): (usize, &Amount)| {
        let (of, to) = (workload.requested_decimals()[r], workload.resources()[r].decimals);
        match to >= of {
            true => amount.0.checked_mul(10u64.checked_pow(u32::from(to - of))?),
            false => Some(amount.0.div_ceil(10u64.checked_pow(u32::from(of - to))?)),
        }
    };
    workload.requested_amounts(row)?.iter().enumerate().map(steps).collect()
}

/// What makes jobs one kind: demand and queue, the nodes that the source states, and the texts of requirements, chunks and
/// licences; of jobs of whole machines also what they requested.
#[derive(PartialEq, Eq, Hash)]
struct KindKey {
    place: usize,
    nodes: Option<u32>,
    required: Option<u32>,
    sizes: Option<u32>,
    licences: Option<u32>,
    requested: Option<Vec<u64>>,
}

/// The chunks that a text states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct StatedChunks {
    /// How many there are, if they are equal.
    equal: Option<u32>,
    /// Their sizes if there are several, largest first: how many, and what each holds.
    sizes: Vec<(u32, Vec<u64>)>,
}

impl StatedChunks {
    /// Parses a text; what is no text of chunks states none.
    fn parse(text: &str, resources: &[Resource], cpu: Option<(usize, u64)>) -> StatedChunks {
        let of = |chunk: Chunk| {
            let amount = |r: &Resource| {
                let held = chunk.demand.iter().find(|(name, _)| *name == r.name);
                held.map_or(0, |(_, quantity)| whole_steps(&quantity.in_unit(&r.unit), r).0)
            };
            (chunk.count, resources.iter().map(amount).collect::<Vec<u64>>())
        };
        let Ok(chunks) = Chunk::parse_all(text) else { return StatedChunks::default() };
        let mut sizes: Vec<(u32, Vec<u64>)> = chunks.into_iter().map(of).collect();
        let processors = |chunk: &[u64]| cpu.and_then(|(r, _)| chunk.get(r).copied());
        sizes.sort_by(|(_, a), (_, b)| processors(b).cmp(&processors(a)).then_with(|| b.cmp(a)));
        sizes.dedup_by(|next, first| {
            let same = next.1 == first.1;
            first.0 = first.0.saturating_add(if same { next.0 } else { 0 });
            same
        });
        let are_usable =
            sizes.len() <= usize::from(u16::MAX) && sizes.iter().all(|(_, chunk)| chunk.iter().any(|a| *a > 0));
        match sizes.as_slice() {
            _ if !are_usable => StatedChunks::default(),
            [(count, _)] => StatedChunks { equal: Some(*count), sizes: Vec::new() },
            _ => StatedChunks { equal: None, sizes },
        }
    }
}
