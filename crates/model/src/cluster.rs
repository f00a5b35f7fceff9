//! A cluster of machines and its queues.

use std::collections::HashMap;
use std::ops::Range;

use dashu_int::{IBig, UBig};
use thiserror::Error;

use crate::{Amount, Licence, Rational, Resource, ResourceQuantity, Span, Time, expand_hostlist};

/// Identical machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineGroup {
    /// The name of the group, unique in a cluster.
    pub name: String,
    /// The number of machines, at least 1.
    pub count: u32,
    /// The capacity of each machine, in the order of [`Cluster::resources`].
    pub capacity: Vec<ResourceQuantity>,
    /// The speed relative to the machine on which run times were measured (its SPEC over the reference machine's SPEC),
    /// greater than 0.
    pub speed: Rational,
    /// Slurm's scheduler puts jobs on machines of a lower weight first; the default is 1.
    pub weight: u32,
    /// Properties that jobs can request: `infiniband`, `ssd`.
    pub properties: Vec<String>,
    /// The names of the machines in their order; empty where the name of the group is a list of hosts, or they have none.
    pub hosts: Vec<String>,
}

impl MachineGroup {
    /// Returns the names of the machines in their order; none if they are not known.
    ///
    /// ```
    /// # use evenhand_model::*;
    /// let group = |name: &str, count| MachineGroup {
    ///     name: name.into(), count, capacity: Vec::new(), speed: Rational::ONE, weight: 1, properties: Vec::new(), hosts: Vec::new(),
    /// };
    /// assert_eq!(group("n[1-2]", 2).host_names(), ["n1", "n2"]);
    /// assert!(group("thin", 2).host_names().is_empty());
    /// ```
    pub fn host_names(&self) -> Vec<String> {
        if !self.hosts.is_empty() {
            return self.hosts.clone();
        }
        let named = expand_hostlist(&self.name).filter(|names| names.len() == self.count as usize);
        named.unwrap_or_default()
    }
}

/// An instant as a cluster's description states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteTime {
    /// Since 1970-01-01T00:00:00 UTC.
    Date(Time),
    /// In seconds of the log.
    OfLog(i64),
}

impl SiteTime {
    /// Returns the instant in seconds of a log whose zero is `zero` seconds after 1970.
    pub fn in_log(self, zero: i64) -> i64 {
        match self {
            SiteTime::Date(time) => time.whole_secs() - zero,
            SiteTime::OfLog(seconds) => seconds,
        }
    }

    /// Returns whether this instant is before another one; `None` if only a log can tell.
    pub fn is_before(self, other: SiteTime) -> Option<bool> {
        match (self, other) {
            (SiteTime::Date(a), SiteTime::Date(b)) => Some(a < b),
            (SiteTime::OfLog(a), SiteTime::OfLog(b)) => Some(a < b),
            _ => None,
        }
    }
}

/// A time in which machines are reserved, or take no jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closure {
    /// The name of the reservation, or the reason of an outage.
    pub name: String,
    /// The machines, as the description names them: lists of hosts, or groups.
    pub machines: Vec<String>,
    /// The first instant.
    pub from: SiteTime,
    /// The instant at which it is over; `None`: never.
    pub to: Option<SiteTime>,
    /// Whether another reservation of the same machines may overlap it.
    pub may_overlap: bool,
}

/// What becomes of a job that makes way for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PreemptMode {
    /// It is not preempted.
    Off,
    /// It ends.
    Cancel,
    /// It ends, and waits to run again from its beginning.
    Requeue,
    /// It stops, and goes on when the job for which it made way has ended; what it holds beside processors it keeps.
    Suspend,
}

impl PreemptMode {
    /// All modes.
    pub const ALL: [PreemptMode; 4] =
        [PreemptMode::Off, PreemptMode::Cancel, PreemptMode::Requeue, PreemptMode::Suspend];

    /// Returns the name: `off`, `cancel`, `requeue` or `suspend`.
    pub fn name(self) -> &'static str {
        match self {
            PreemptMode::Off => "off",
            PreemptMode::Cancel => "cancel",
            PreemptMode::Requeue => "requeue",
            PreemptMode::Suspend => "suspend",
        }
    }

    /// Returns the mode of a name, in letters of any case.
    pub fn of_name(name: &str) -> Option<PreemptMode> {
        PreemptMode::ALL.into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }
}

/// A quality of service: its priority, what its jobs are charged, what they preempt, and how they are preempted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QualityOfService {
    /// The name.
    pub name: String,
    /// Jobs of a lower priority are preempted first. The QOS factor of Slurm's priority is this over the highest.
    pub priority: u32,
    /// By what the use of its jobs is multiplied where Slurm charges it (`UsageFactor`), at least 0; `None`: 1.
    pub usage_factor: Option<Rational>,
    /// The names of those whose jobs its own may preempt.
    pub preempts: Vec<String>,
    /// Whether its jobs may preempt others of its own that have a lower priority.
    pub preempts_within: bool,
    /// What becomes of its jobs that are preempted; `None`: what becomes of others.
    pub preempt_mode: Option<PreemptMode>,
    /// How long its jobs run before they can be preempted; `None`: as long as others.
    pub preempt_exempt_time: Option<Span>,
    /// How long its jobs run on when they are preempted.
    pub grace_time: Span,
}

/// Returns the names of qualities of service that preempt themselves through others, of which there should be none: such
/// jobs would preempt each other for ever.
pub fn preempted_by_themselves(all: &[QualityOfService]) -> Vec<String> {
    let find = |name: &String| all.iter().position(|qos| qos.name == *name);
    let below: Vec<Vec<usize>> = all.iter().map(|qos| qos.preempts.iter().filter_map(find).collect()).collect();
    let reaches_itself = |start: &usize| {
        let mut seen = vec![false; all.len()];
        let mut open = below[*start].clone();
        while let Some(here) = open.pop() {
            if !std::mem::replace(&mut seen[here], true) {
                open.extend(&below[here]);
            }
        }
        seen[*start]
    };
    (0..all.len()).filter(reaches_itself).map(|at| all[at].name.clone()).collect()
}

/// A queue (partition) and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The name, as in the workload; unique in a cluster.
    pub name: String,
    /// The factor on the charge of its jobs; 1 by default.
    pub price: Rational,
    /// The priority: queues of a higher priority are served first.
    pub priority: i32,
    /// The longest wall time that a job can request.
    pub max_wall: Option<Span>,
    /// The maximum that a job can hold, by resource.
    pub max_job: Vec<(String, ResourceQuantity)>,
    /// The maximum that the jobs of one user in this queue can hold together, by resource.
    pub max_user: Vec<(String, ResourceQuantity)>,
    /// How many jobs of one user in this queue can run at once.
    pub max_user_jobs: Option<u32>,
    /// The maximum that all jobs in this queue can hold together, by resource.
    pub max: Vec<(String, ResourceQuantity)>,
    /// How many jobs in this queue can run at once.
    pub max_jobs: Option<u32>,
    /// The properties that a machine needs to run jobs of this queue.
    pub properties: Vec<String>,
    /// Whether its jobs have their machines for themselves.
    pub whole_machines: bool,
    /// What becomes of its jobs that are preempted; `None`: what becomes of others.
    pub preempt_mode: Option<PreemptMode>,
    /// How long its jobs run on when they are preempted.
    pub grace_time: Span,
}

impl Queue {
    /// Creates a queue without limits, at price 1 and priority 0.
    pub fn new(name: impl Into<String>) -> Queue {
        Queue {
            name: name.into(),
            price: Rational::ONE,
            priority: 0,
            max_wall: None,
            max_job: Vec::new(),
            max_user: Vec::new(),
            max_user_jobs: None,
            max: Vec::new(),
            max_jobs: None,
            properties: Vec::new(),
            whole_machines: false,
            preempt_mode: None,
            grace_time: Span::ZERO,
        }
    }
}

/// A limit on the jobs of some queues, accounts, users and qualities of service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limit {
    /// The name, for people.
    pub name: String,
    /// The queues whose jobs it limits; empty for all.
    pub queues: Vec<String>,
    /// The accounts whose jobs it limits; empty for all.
    pub accounts: Vec<String>,
    /// The users whose jobs it limits; empty for all.
    pub users: Vec<String>,
    /// The qualities of service whose jobs it limits; empty for all.
    pub qos: Vec<String>,
    /// The qualities of service whose jobs it does not limit.
    pub except_qos: Vec<String>,
    /// Whether each user has it by itself; else the jobs of all of them count together.
    pub each_user: bool,
    /// The maximum that the jobs can hold together, by resource.
    pub max: Vec<(String, ResourceQuantity)>,
    /// How many of the jobs can run at once.
    pub max_jobs: Option<u32>,
    /// How many of the jobs may wait or run at once; submissions beyond are counted and not refused.
    pub max_submitted: Option<u32>,
    /// The maximum that one of the jobs can hold, by resource.
    pub max_job: Vec<(String, ResourceQuantity)>,
    /// The longest wall time that one of the jobs can request.
    pub max_wall: Option<Span>,
}

impl Limit {
    /// Creates one that limits nothing of no jobs in particular.
    pub fn new(name: impl Into<String>) -> Limit {
        Limit { name: name.into(), ..Limit::default() }
    }

    /// Returns whether it limits nothing.
    pub fn is_empty(&self) -> bool {
        let counts = self.max_jobs.is_none() && self.max_submitted.is_none();
        counts && self.max.is_empty() && self.max_job.is_empty() && self.max_wall.is_none()
    }
}

/// The machines and queues of a site.
///
/// Machines are numbered from 0: those of the first group, then those of the second, and so on. Every tie between
/// machines is broken by the smallest number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// The resources of all machines, in the order in which the description first names them.
    pub resources: Vec<String>,
    /// The groups of machines, at least one.
    pub groups: Vec<MachineGroup>,
    /// The queues; jobs of a queue that is not listed have no limits.
    pub queues: Vec<Queue>,
    /// Limits beside those of the queues.
    pub limits: Vec<Limit>,
    /// Qualities of service that have a priority, preempt or are preempted.
    pub qos: Vec<QualityOfService>,
    /// Licences, of which running jobs hold some.
    pub licences: Vec<Licence>,
    /// When machines are only for the jobs of a reservation.
    pub reservations: Vec<Closure>,
    /// When machines are down or drained.
    pub outages: Vec<Closure>,
}

/// The names of a cluster's groups and machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineNames {
    groups: HashMap<String, Range<u32>>,
    hosts: HashMap<String, u32>,
}

impl MachineNames {
    /// Returns the numbers of the machines that a text names, which is the name of a group or a list of hosts.
    ///
    /// # Errors
    /// Returns the first name that no machine has.
    pub fn numbers(&self, text: &str) -> Result<Vec<u32>, String> {
        if let Some(group) = self.groups.get(text) {
            return Ok(group.clone().collect());
        }
        let hosts = expand_hostlist(text).filter(|hosts| !hosts.is_empty()).ok_or_else(|| text.to_string())?;
        hosts.into_iter().map(|host| self.hosts.get(&host).copied().ok_or(host)).collect()
    }
}

/// A mismatch between a cluster and a workload.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ClusterError {
    /// No machine has any of a resource that tasks hold.
    #[error(
        "no machine has any {resource}, which the workload's tasks hold, but only {}; add it to at least one group", has.join(", ")
    )]
    Missing {
        /// The resource's name.
        resource: String,
        /// The resources of the machines.
        has: Vec<String>,
    },
}

impl Cluster {
    /// Returns the number of machines.
    pub fn machines(&self) -> u64 {
        self.groups.iter().map(|g| u64::from(g.count)).sum()
    }

    /// Returns the queue named `name`.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.iter().find(|q| q.name == name)
    }

    /// Returns the names of groups and machines.
    pub fn machine_names(&self) -> MachineNames {
        let mut names = MachineNames::default();
        let mut first = 0;
        for group in &self.groups {
            names.hosts.extend(group.host_names().into_iter().zip(first..));
            names.groups.insert(group.name.clone(), first..first + group.count);
            first += group.count;
        }
        names
    }

    /// Returns the exact capacity of each machine of a group, one entry per resource in the resource's own unit; 0 for
    /// a resource that the group does not have.
    pub fn units(&self, group: &MachineGroup, resources: &[Resource]) -> Vec<Rational> {
        let of = |r: &Resource| {
            let at = self.resources.iter().position(|name| *name == r.name);
            at.map_or(Rational::ZERO, |i| group.capacity[i].in_unit(&r.unit))
        };
        resources.iter().map(of).collect()
    }

    /// Returns the exact capacity of all machines together, one entry per resource in the resource's own unit.
    ///
    /// # Errors
    /// Returns an error if no machine has any of one of `resources`.
    pub fn total(&self, resources: &[Resource]) -> Result<Vec<Rational>, ClusterError> {
        let mut total = vec![Rational::ZERO; resources.len()];
        for group in &self.groups {
            for (sum, each) in total.iter_mut().zip(self.units(group, resources)) {
                *sum += each * Rational::from(group.count);
            }
        }
        match total.iter().position(Rational::is_zero) {
            Some(r) => Err(ClusterError::Missing { resource: resources[r].name.clone(), has: self.resources.clone() }),
            None => Ok(total),
        }
    }
}

/// Rounds units of a resource down to an [`Amount`]. Tasks hold whole steps, so the remainder is never used.
pub fn whole_steps(units: &Rational, resource: &Resource) -> Amount {
    let floor = (units * Rational::from(IBig::from(resource.steps()))).floor();
    let floor = UBig::try_from(floor).unwrap_or(UBig::ZERO);
    // Everything that can be held at once fits i64: a larger machine makes no difference.
    Amount(u64::try_from(floor.min(UBig::from(i64::MAX as u64))).unwrap_or(0))
}

/// Returns the queues that a text names: logs separate them by commas where a job may run in any of them.
///
/// ```
/// # use evenhand_model::queue_names;
/// assert_eq!(queue_names("short, long,").collect::<Vec<_>>(), ["short", "long"]);
/// ```
pub fn queue_names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quantity;

    fn group(name: &str, count: u32, capacity: &[&str]) -> MachineGroup {
        let capacity = capacity.iter().map(|t| ResourceQuantity::parse(t).unwrap()).collect();
        MachineGroup {
            hosts: Vec::new(),
            name: name.into(),
            count,
            capacity,
            speed: Rational::ONE,
            weight: 1,
            properties: Vec::new(),
        }
    }

    #[test]
    fn a_cluster_is_the_sum_of_its_machines() {
        let cluster = Cluster {
            resources: vec!["cpu".into(), "mem".into()],
            groups: vec![group("a", 2, &["16", "64GiB"]), group("b", 3, &["4", "0"])],
            queues: vec![Queue::new("long")],
            ..Cluster::default()
        };
        let resources = [Resource::new("mem", "GB"), Resource::new("cpu", "")];
        let total = cluster.total(&resources).unwrap();
        assert_eq!(total.iter().map(Rational::to_string).collect::<Vec<_>>(), ["128", "44"]);
        assert_eq!((cluster.machines(), cluster.queue("long").map(|q| q.priority)), (5, Some(0)));
        let gpu = [Resource::new("gpu", "")];
        assert_eq!(
            cluster.total(&gpu),
            Err(ClusterError::Missing { resource: "gpu".into(), has: vec!["cpu".into(), "mem".into()] })
        );
    }

    #[test]
    fn machines_are_named_by_group_or_host() {
        let mut named = group("others", 2, &["4"]);
        named.hosts = vec!["x".into(), "a7".into()];
        let cluster = Cluster {
            resources: vec!["cpu".into()],
            groups: vec![group("n[08-10]", 3, &["4"]), group("thin", 2, &["4"]), named],
            ..Cluster::default()
        };
        let names = cluster.machine_names();
        let found = |text: &str| names.numbers(text);
        assert_eq!(found("n[08-10]"), Ok(vec![0, 1, 2]));
        assert_eq!(found("a7,n[09-10]"), Ok(vec![6, 1, 2]));
        assert_eq!((found("thin"), found("others")), (Ok(vec![3, 4]), Ok(vec![5, 6])));
        assert_eq!(found("n[10-11]"), Err("n11".into()));
        assert_eq!(found("n[1-"), Err("n[1-".into()));
        assert_eq!(found(""), Err(String::new()));
    }

    #[test]
    fn steps_are_rounded_down_and_capped() {
        let resource = Resource { decimals: 1, ..Resource::new("cpu", "") };
        let half = Quantity::parse("0.57").unwrap();
        assert_eq!(whole_steps(half.exact(), &resource), Amount(5));
        assert_eq!(whole_steps(Quantity::parse("1e30").unwrap().exact(), &resource), Amount(i64::MAX as u64));
    }
}
