//! In which order a policy would start the jobs of this site that wait now.
//!
//! Here a site becomes what a policy knows: users of accounts with their entitlements, amounts of resources over
//! what all machines have, jobs that ran and run. The order itself is [`evenhand_policies::queue_order::order`]'s.

mod free;
mod parties;
mod speeds;

use std::collections::BTreeMap;

use evenhand_model::{AccountsError, Capacity, CapacityError, Nano, Rational, Resource, Time, to_f64};
use evenhand_policies::equivalents::{Combine, Equivalents};
use evenhand_policies::queue_order::{Turn, order};
use evenhand_policies::{Decay, Registration, Setting, Standing};
use thiserror::Error;

use self::free::Free;
use self::parties::Parties;
use self::speeds::Speeds;
use crate::associations::Accounts;
use crate::cluster_from_site::{ClusterOptions, cluster};
use crate::finished_job::FinishedJob;
use crate::nodes::Node;
use crate::partitions::Partition;
use crate::queue::{Hold, Queue};

/// What of a site is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its machines.
    pub nodes: &'a [Node],
    /// Its partitions.
    pub partitions: &'a [Partition],
    /// Who is entitled to what; without accounts everybody has the same share.
    pub accounts: Option<&'a Accounts>,
    /// What waits and runs.
    pub queue: &'a Queue,
    /// What has ended, as far back as it should count.
    pub ended: &'a [FinishedJob],
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// By which policy.
    pub policy: &'static Registration,
    /// How fast it forgets, if it remembers.
    pub decay: Option<Decay>,
    /// How resources are joined in a price, for policies that charge one.
    pub combine: Combine,
    /// What a second in a partition costs, where it is not 1.
    pub prices: BTreeMap<String, Rational>,
    /// Features that begin like this and go on with a number say how fast a machine is, as in
    /// [`ClusterOptions::speed_feature`].
    pub speed_feature: Option<String>,
    /// How many places of the order are wanted.
    pub depth: usize,
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// No machine is seen.
    #[error("this site shows no machine to you")]
    NoMachine,
    /// The machines make no capacity.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// The accounts make no tree.
    #[error("sacctmgr: {0}")]
    Accounts(#[from] AccountsError),
}

/// A user in an account, as the policy sees one.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    /// The user.
    pub user: String,
    /// The account; none where the site keeps none.
    pub account: Option<String>,
    /// The part of everything it is entitled to, among those seen.
    pub entitlement: f64,
}

/// One place in the order.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Which job of the queue.
    pub job: usize,
    /// Whose it is: which of [`Plan::parties`].
    pub party: usize,
    /// The numbers for which its owner had this place.
    pub standing: Standing,
    /// Tasks that would start before it.
    pub before: u64,
    /// Which resources it lacks now, first of the site, else of every machine.
    pub lacks: Lacks,
}

/// What a job that waits lacks now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// Nothing: it could start.
    Nothing,
    /// The whole site has less free of these resources than it asks for: how much it asks for, and how much is free.
    AtSite(Vec<(usize, Nano, Nano)>),
    /// No single machine has room for what it wants on each.
    OnMachines,
}

/// Why a job that waits has no place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unranked {
    /// Somebody holds it.
    Held(Hold),
    /// It depends on another.
    Depends(String),
    /// It does not want to start before then, or its owner has to wait for a limit, in Slurm's word.
    NotEligible(String),
    /// It runs on machines kept for it.
    Reservation(String),
    /// It is behind the places that were asked for.
    Behind,
}

/// The order, and who has no place in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is shared, in the order of demands.
    pub resources: Vec<Resource>,
    /// How much of each there is, in units.
    pub capacity: Vec<f64>,
    /// Everybody who has a job that waits, runs or ran.
    pub parties: Vec<Party>,
    /// The order.
    pub places: Vec<Place>,
    /// Who waits and has no place, as a place in the queue, and why.
    pub unranked: Vec<(usize, Unranked)>,
}
impl Plan {
    /// The order at `now`.
    ///
    /// # Errors
    /// If no machine is seen, or accounts make no tree.
    pub fn new(seen: &Seen<'_>, options: &PlanOptions, now: Time) -> Result<Plan, PlanError> {
        let machines = ClusterOptions { speed_feature: options.speed_feature.clone(), ..ClusterOptions::default() };
        let described = cluster(seen.nodes, seen.partitions, &machines);
        if described.cluster.groups.is_empty() {
            return Err(PlanError::NoMachine);
        }
        let unit = |name: &str| if name == "mem" { "B" } else { "" };
        let resources: Vec<Resource> =
            described.cluster.resources.iter().map(|name| Resource::new(name.clone(), unit(name))).collect();
        let units = described.cluster.total(&resources).map_err(|_| PlanError::NoMachine)?;
        let capacity = Capacity::new(&resources, units.clone())?;
        let prices = Equivalents::of_cluster(&described.cluster, &resources, options.combine).ok();
        let mut parties = Parties::new(seen.accounts);
        let speeds = Speeds::of(&described, seen.nodes);
        let (ran, waits, rows, unranked) = parties.jobs(seen, options, &speeds, &resources, now);
        let tree = parties.tree()?;
        let setting = Setting::new(&capacity, &tree.weights).decay(options.decay).prices(prices.as_ref());
        let mut policy = (options.policy.build)(&setting.accounts(tree.tree.as_ref()));
        let turns = order(policy.as_mut(), &ran, &waits, now, options.depth);
        let free = Free::of(seen.nodes, &resources);
        let place = |turn: Turn| {
            let job = rows[turn.job];
            Place {
                job,
                party: waits[turn.job].user.index(),
                standing: turn.standing,
                before: turn.before,
                lacks: free.lacks(&seen.queue.jobs[job]),
            }
        };
        let mut behind = vec![true; rows.len()];
        turns.iter().for_each(|turn| behind[turn.job] = false);
        let places: Vec<Place> = turns.into_iter().map(place).collect();
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
