//! Machines and queue limits of a site, in a workload's units.

use evenhand_model::{
    Amount, Capacity, CapacityError, Closure, Cluster, ClusterError, Licence, MachineNames, PreemptMode,
    QualityOfService, Queue, Rational, Requirements, Resource, SiteTime, Span, UBig, to_f64, whole_steps,
};
use thiserror::Error;

use super::job_limits::Limit;
use super::kind::Kind;
use super::placements::Placements;
use super::slurm::SlurmOptions;

/// Machines of one kind. The machines of a site are numbered through, group by group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    name: String,
    /// The number of the first.
    pub(crate) first: u32,
    /// How many there are.
    pub(crate) count: u32,
    /// Amounts on each machine, in steps; 1 of each resource where jobs have whole machines.
    pub(crate) has: Vec<u64>,
    /// How fast they are, as a fraction.
    pub(crate) speed: (u64, u64),
    /// The same as a number.
    rate: f64,
    /// Slurm's scheduler puts jobs on machines of a lower weight first.
    pub(crate) weight: u32,
    properties: Vec<String>,
}

impl Group {
    /// Whether a word that jobs require is a property of the machines, or names them (in MetaCentrum's logs after `cl_`).
    pub(crate) fn has_property(&self, word: &str) -> bool {
        let names = [Some(word), word.strip_prefix("cl_")];
        self.properties.iter().any(|property| Requirements::is_met_by(word, property))
            || names.contains(&Some(self.name.as_str()))
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
pub(crate) struct QueueLimits {
    pub(crate) name: String,
    price: f64,
    pub(crate) priority: i32,
    pub(crate) max_wall: Option<Span>,
    pub(crate) max_job: Vec<u64>,
    pub(crate) max_user: Vec<u64>,
    pub(crate) max: Vec<u64>,
    /// Whether a limit of 0 jobs holds all of them.
    pub(crate) holds_all: bool,
    properties: Vec<String>,
    pub(crate) whole_machines: bool,
    pub(crate) preemptable: Preemptable,
}

/// How the jobs of a queue or of a QOS are preempted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Preemptable {
    /// Jobs of a lower rank are preempted first, and in queues by those of a higher one.
    pub(crate) rank: i64,
    pub(crate) mode: Option<PreemptMode>,
    pub(crate) grace: Span,
    /// How long they run before.
    pub(crate) exempt: Option<Span>,
    /// Whether jobs of a QOS preempt others of it that have a lower priority.
    pub(crate) within: bool,
}

/// A reservation or an outage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Closed {
    pub(crate) name: String,
    pub(crate) nodes: Vec<u32>,
    pub(crate) from: SiteTime,
    pub(crate) to: Option<SiteTime>,
}

impl Closed {
    fn new(closure: &Closure, names: &MachineNames) -> Result<Closed, SiteError> {
        let mut nodes = Vec::new();
        for text in &closure.machines {
            let unknown = |machine| SiteError::Closure { name: closure.name.clone(), machine };
            nodes.extend(names.numbers(text).map_err(unknown)?);
        }
        Ok(Closed { name: closure.name.clone(), nodes, from: closure.from, to: closure.to })
    }
}

/// Where jobs run: one pool, or machines with queues.
///
/// Amounts are in steps of a workload's resources, so a site belongs to the workload it was built for.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    pub(crate) groups: Vec<Group>,
    pub(crate) queues: Vec<QueueLimits>,
    /// What jobs may hold together.
    pub(crate) limits: Vec<Limit>,
    /// Qualities of service: the name, how jobs are preempted, and the names of those whose jobs it preempts.
    pub(crate) qos: Vec<(String, Preemptable, Vec<String>)>,
    pub(crate) licences: Vec<Licence>,
    pub(crate) reservations: Vec<Closed>,
    pub(crate) outages: Vec<Closed>,
    total: Capacity,
    /// Which resource is CPUs and how many steps one is: jobs are split into whole CPUs.
    pub(crate) cpu: Option<(usize, u64)>,
    /// A pool is one bag: nothing is ever split.
    pub(crate) is_pool: bool,
    /// Whether jobs have whole machines.
    pub(crate) are_whole: bool,
    /// Whether jobs have equal parts of processors on their nodes, rounded up.
    pub(crate) has_equal_parts: bool,
    /// The names of its machines.
    names: MachineNames,
    /// By group: what each machine has, where jobs have whole machines.
    whole: Vec<Vec<u64>>,
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
    /// A reservation or an outage of a machine that does not exist.
    #[error("{name}: no machine has the name {machine:?}")]
    Closure {
        /// The name of the reservation, or the reason of the outage.
        name: String,
        /// The name that no machine has.
        machine: String,
    },
    /// Processors have names in a pool that is not of processors.
    #[error(
        "processors=named: expected a pool of a whole number of cpu and no other resource; leave it out, or give a file with [[machines]]"
    )]
    NamedProcessors,
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
        let group = Group {
            name: "pool".into(),
            first: 0,
            count: 1,
            has,
            speed: (1, 1),
            rate: 1.0,
            weight: 1,
            properties: Vec::new(),
        };
        Site {
            groups: vec![group],
            queues: Vec::new(),
            limits: Vec::new(),
            qos: Vec::new(),
            licences: Vec::new(),
            reservations: Vec::new(),
            outages: Vec::new(),
            total: capacity.clone(),
            cpu: None,
            is_pool: true,
            are_whole: false,
            has_equal_parts: false,
            names: MachineNames::default(),
            whole: Vec::new(),
        }
    }

    /// A pool of processors as machines of one processor each.
    ///
    /// # Errors
    /// Returns an error if the pool is not a whole number of processors (`cpu`) and nothing else, or has too many.
    pub fn named_processors(capacity: &Capacity, resources: &[Resource]) -> Result<Site, SiteError> {
        let ([resource], &[amount]) = (resources, capacity.amounts()) else {
            return Err(SiteError::NamedProcessors);
        };
        let one = resource.steps();
        let machines = amount.0 / one;
        if resource.name != "cpu" || machines == 0 || capacity.exact_steps(0) != &Rational::from(machines * one) {
            return Err(SiteError::NamedProcessors);
        }
        let count = u32::try_from(machines).ok().filter(|count| u64::from(*count) <= MAX_MACHINES);
        let count = count.ok_or(SiteError::TooMany { machines })?;
        let group = Group { count, has: vec![one], ..Site::pool(capacity).groups.remove(0) };
        Ok(Site { groups: vec![group], cpu: Some((0, one)), is_pool: false, ..Site::pool(capacity) })
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
                weight: group.weight,
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
            name: format!("the queue {:?}", q.name),
            key: if each_user { "max_user" } else { "max" },
            queues: vec![q.name.clone()],
            accounts: Vec::new(),
            users: Vec::new(),
            qos: Vec::new(),
            except_qos: Vec::new(),
            max_submitted: None,
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
            name: format!("the limit {:?}", l.name),
            key: "max",
            queues: l.queues.clone(),
            accounts: l.accounts.clone(),
            users: l.users.clone(),
            qos: l.qos.clone(),
            except_qos: l.except_qos.clone(),
            max_submitted: l.max_submitted,
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
            holds_all: q.max_jobs == Some(0) || q.max_user_jobs == Some(0),
            properties: q.properties.clone(),
            whole_machines: q.whole_machines,
            preemptable: Preemptable {
                rank: q.priority.into(),
                mode: q.preempt_mode,
                grace: q.grace_time,
                exempt: None,
                within: false,
            },
        });
        let cpu = resources.iter().position(|r| r.name == "cpu").map(|r| (r, resources[r].steps()));
        let names = cluster.machine_names();
        let closed = |closures: &[Closure]| -> Result<Vec<Closed>, SiteError> {
            closures.iter().map(|closure| Closed::new(closure, &names)).collect()
        };
        let (reservations, outages) = (closed(&cluster.reservations)?, closed(&cluster.outages)?);
        let queues = queues.collect();
        let of_qos = |qos: &QualityOfService| {
            // Slurm compares 16 bits of it.
            let rank = qos.priority.min(0xffff).into();
            let (mode, grace) = (qos.preempt_mode, qos.grace_time);
            let preemptable =
                Preemptable { rank, mode, grace, exempt: qos.preempt_exempt_time, within: qos.preempts_within };
            (qos.name.clone(), preemptable, qos.preempts.clone())
        };
        let qos = cluster.qos.iter().map(of_qos).collect();
        let licences = cluster.licences.clone();
        Ok(Site {
            groups,
            queues,
            limits: all_limits,
            qos,
            licences,
            reservations,
            outages,
            total,
            cpu,
            is_pool: false,
            are_whole: false,
            has_equal_parts: false,
            names,
            whole: Vec::new(),
        })
    }

    /// The same site, for Slurm's scheduler, in which jobs have equal parts of processors on their nodes: 17 on 2 count as 18.
    ///
    /// Where the scheduler gives all jobs whole nodes ([`SlurmOptions::whole_nodes`]), queues do not say so too.
    pub fn for_slurm(mut self, options: &SlurmOptions) -> Site {
        if options.whole_nodes {
            self.queues.iter_mut().for_each(|queue| queue.whole_machines = false);
        }
        Site { has_equal_parts: true, ..self }
    }

    /// The same machines, each of which one job at a time has as a whole.
    ///
    /// Then a machine is taken or free, and nothing else counts while jobs run. So it is 1 of each resource, and a chunk takes
    /// all of it, whatever machine it lies on; what machines have is only needed to lay jobs out.
    ///
    /// # Errors
    /// As [`Site::machines`].
    pub fn whole_machines(cluster: &Cluster, resources: &[Resource]) -> Result<Site, SiteError> {
        let mut site = Site::machines(cluster, resources)?;
        let ones = |group: &mut Group| std::mem::replace(&mut group.has, vec![1; resources.len()]);
        site.whole = site.groups.iter_mut().map(ones).collect();
        site.are_whole = true;
        Ok(site)
    }

    /// How many steps of processors the machines of a list have together; `None` if it names one that is not known, or one twice.
    pub(crate) fn processors_of(&self, list: &str) -> Option<u64> {
        let (processors, _) = self.cpu?;
        let mut machines = self.names.numbers(list).ok()?;
        let count = machines.len();
        machines.sort_unstable();
        machines.dedup();
        let has = |machine: &u32| self.groups[self.group_of(*machine)].has[processors];
        (machines.len() == count).then(|| machines.iter().map(has).sum())
    }

    /// What a machine of a group has, in steps.
    pub(crate) fn whole_machine(&self, group: u16) -> &[u64] {
        let group = usize::from(group);
        self.whole.get(group).unwrap_or(&self.groups[group].has)
    }

    /// Returns all that the machines of a job have, of each resource.
    pub(crate) fn all_on(&self, held: &Placements) -> Box<[Amount]> {
        let resources = self.whole_machine(0).len();
        let mut all = vec![0; resources];
        for machine in held.machines() {
            let has = self.whole_machine(self.group_of(machine) as u16);
            all.iter_mut().zip(has).for_each(|(sum, amount)| *sum += amount);
        }
        all.into_iter().map(Amount).collect()
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
