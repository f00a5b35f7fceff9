//! The order in which a policy would start the pending jobs of a site.
//!
//! This module turns a snapshot of a site into a policy's context and its jobs: users of accounts with their
//! entitlements, the capacity of all machines together, started and pending jobs.
//! [`evenhand_policies::queue_order::order`] computes the order itself.

mod free;
mod parties;
mod policy_jobs;
mod speeds;

use std::collections::BTreeMap;

use evenhand_model::{AccountsError, Capacity, CapacityError, Nano, Rational, Resource, Time, to_f64};
use evenhand_policies::equivalents::{Combine, Equivalents};
use evenhand_policies::queue_order::{Rank, order};
use evenhand_policies::{Decay, PolicyContext, PolicyError, PolicySettings, Registry, Standing};
use thiserror::Error;

use self::free::Free;
use self::parties::Parties;
use self::speeds::Speeds;
use crate::associations::Accounts;
use crate::cluster_from_site::{ClusterOptions, cluster};
use crate::configuration::Configuration;
use crate::finished_job::FinishedJob;
use crate::nodes::Node;
use crate::partitions::Partition;
use crate::queue::{Hold, Queue};
use crate::site_files::{Qos, priorities_and_preemption_of_qos};
use crate::site_priority::site_priority;

/// Snapshot of a site that planning uses.
#[derive(Clone, Copy, Debug)]
pub struct SiteSnapshot<'a> {
    /// The machines.
    pub nodes: &'a [Node],
    /// The partitions.
    pub partitions: &'a [Partition],
    /// The account tree with shares; `None`: all users have equal shares.
    pub accounts: Option<&'a Accounts>,
    /// Pending and running jobs.
    pub queue: &'a Queue,
    /// Finished jobs, as far back as they should count.
    pub ended: &'a [FinishedJob],
    /// The qualities of service, for their priorities and usage factors; empty: not known.
    pub qos: &'a [Qos],
    /// How Slurm itself is configured: a policy that models Slurm takes its defaults from it.
    pub configuration: Option<&'a Configuration>,
}

impl<'a> SiteSnapshot<'a> {
    /// Returns a snapshot with equal users, no finished jobs, and QOS and configuration not known. Programs outside this
    /// workspace begin with it, so that a field added here does not break them.
    pub fn new(nodes: &'a [Node], partitions: &'a [Partition], queue: &'a Queue) -> Self {
        SiteSnapshot { nodes, partitions, accounts: None, queue, ended: &[], qos: &[], configuration: None }
    }
}

/// How to plan.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The policies that there are.
    pub registry: Registry,
    /// The name of the policy.
    pub policy: String,
    /// The settings of all policies.
    pub settings: PolicySettings,
    /// How fast the policy forgets, if it remembers.
    pub decay: Option<Decay>,
    /// Price of a second in a partition, by name; 1 where it is absent.
    pub prices: BTreeMap<String, Rational>,
    /// Prefix of the node features whose number gives a machine's speed, as in [`ClusterOptions::speed_feature`].
    pub speed_feature: Option<String>,
    /// Number of ranks to compute.
    pub depth: usize,
}

/// Why there is no plan.
#[derive(Debug, Error)]
pub enum PlanError {
    /// The site has no machine, or none that the user may see.
    #[error("this site shows no machine to you")]
    NoMachine,
    /// The policy cannot be built.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The machines make no capacity.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// The accounts make no tree.
    #[error("sacctmgr: {0}")]
    Accounts(#[from] AccountsError),
}

/// A user in an account: one user of the policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    /// The user.
    pub user: String,
    /// The account; `None` where the site keeps none.
    pub account: Option<String>,
    /// Share of the site that it is entitled to, among the users of the plan.
    pub entitlement: f64,
}

/// One place in the order.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Which job of the queue.
    pub job: usize,
    /// Its owner, as an index of [`Plan::parties`].
    pub party: usize,
    /// Its owner's standing when the policy chose it.
    pub standing: Standing,
    /// Tasks that would start before it.
    pub before: u64,
    /// Which resources it lacks now: of the whole site, else of every machine.
    pub lacks: Lacks,
}

/// What a pending job lacks now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// Nothing: it could start.
    Nothing,
    /// The whole site has less of these resources free than the job requests: resource, requested and free amount.
    AtSite(Vec<(usize, Nano, Nano)>),
    /// Too few machines have enough free for the job's part on each.
    OnMachines,
}

/// Why a pending job has no rank in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unranked {
    /// Its owner or an administrator holds it.
    Held(Hold),
    /// It depends on another job.
    Depends(String),
    /// It is not eligible yet: a start time or a limit, in Slurm's word.
    NotEligible(String),
    /// It uses a reservation.
    Reservation(String),
    /// It comes after the ranks that were asked for.
    Behind,
}

/// The order, and the pending jobs that have no rank in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The shared resources, in the order of demands.
    pub resources: Vec<Resource>,
    /// Capacity of each resource, in its units.
    pub capacity: Vec<f64>,
    /// The users with a pending, running or finished job.
    pub parties: Vec<Party>,
    /// The order.
    pub places: Vec<Place>,
    /// Pending jobs without a rank, as indices of the queue, and why.
    pub unranked: Vec<(usize, Unranked)>,
}
impl Plan {
    /// Plans at `now`.
    ///
    /// # Errors
    /// Returns an error if the site shows no machine, the accounts are not a tree, or the policy cannot be built.
    pub fn new(site: &SiteSnapshot<'_>, options: &PlanOptions, now: Time) -> Result<Plan, PlanError> {
        let machines = ClusterOptions { speed_feature: options.speed_feature.clone(), ..ClusterOptions::default() };
        let mut described = cluster(site.nodes, site.partitions, &machines);
        if described.cluster.groups.is_empty() {
            return Err(PlanError::NoMachine);
        }
        let unit = |name: &str| if name == "mem" { "B" } else { "" };
        let resources: Vec<Resource> =
            described.cluster.resources.iter().map(|name| Resource::new(name.clone(), unit(name))).collect();
        let units = described.cluster.total(&resources).map_err(|_| PlanError::NoMachine)?;
        let capacity = Capacity::new(&resources, units.clone())?;
        let equivalents = Equivalents::of_cluster(&described.cluster, &resources, Combine::default()).ok();
        let mut parties = Parties::new(site.accounts);
        let speeds = Speeds::of(&described, site.nodes);
        let qos: Vec<String> = site.qos.iter().map(|qos| qos.name.clone()).collect();
        let (ran, waits, rows, unranked) = parties.jobs(site, options, &speeds, &resources, now);
        let tree = parties.tree()?;
        let queues: Vec<String> = site.partitions.iter().map(|partition| partition.name.clone()).collect();
        let own = site.configuration.and_then(|configuration| site_priority(configuration, site.partitions));
        priorities_and_preemption_of_qos(&mut described.cluster, site.qos, Vec::new());
        let own = own.map(|own| own.with_cluster(&described.cluster));
        let context = PolicyContext::new(&capacity, &tree.weights)
            .resources(&resources)
            .queues(&queues)
            .qos(&qos)
            .decay(options.decay)
            .accounts(tree.tree.as_ref())
            .equivalents(equivalents.as_ref())
            .settings(&options.settings)
            .site(own.as_ref());
        options.registry.check(&context)?;
        let mut policy = options.registry.build(&options.policy, &context)?;
        let ranks = order(policy.as_mut(), &ran, &waits, now, options.depth);
        let free = Free::of(site.nodes, &resources);
        let place = |rank: Rank| {
            let job = rows[rank.job];
            Place {
                job,
                party: waits[rank.job].user.index(),
                standing: rank.standing,
                before: rank.before,
                lacks: free.lacks(&site.queue.jobs[job]),
            }
        };
        let mut behind = vec![true; rows.len()];
        ranks.iter().for_each(|rank| behind[rank.job] = false);
        let places: Vec<Place> = ranks.into_iter().map(place).collect();
        let late = rows.iter().zip(behind).filter(|(_, behind)| *behind).map(|(job, _)| (*job, Unranked::Behind));
        let mut unranked: Vec<(usize, Unranked)> = unranked.into_iter().chain(late).collect();
        unranked.sort_by_key(|(job, _)| *job);
        let entitled = tree.entitled();
        let parties = parties.names.into_iter().zip(entitled).map(|((user, account), entitlement)| Party {
            user,
            account,
            entitlement,
        });
        Ok(Plan {
            resources,
            capacity: units.iter().map(to_f64).collect(),
            parties: parties.collect(),
            places,
            unranked,
        })
    }
}

#[cfg(test)]
mod tests;
