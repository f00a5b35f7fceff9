//! In which order a policy would start the jobs of this site that wait now.
//!
//! Here a site becomes what a policy knows: users of accounts with their entitlements, amounts of resources over
//! what all machines have, jobs that ran and run. The order itself is [`evenhand_order::order`]'s.

use std::collections::{BTreeMap, HashMap};

use evenhand_model::{
    Account, AccountTree, AccountsError, Amount, Capacity, CapacityError, Nano, Rational, Resource, Span, Time, UserId,
    to_f64,
};
use evenhand_order::{Ran, Turn, Waits, order};
use evenhand_policies::equivalents::{Combine, Equivalents};
use evenhand_policies::{Decay, Registration, Setting, Standing};
use thiserror::Error;

use crate::accounts::Accounts;
use crate::cluster::{ClusterOptions, Described, cluster};
use crate::ended::Ended;
use crate::hosts::hosts;
use crate::nodes::Node;
use crate::partitions::Partition;
use crate::queue::{Hold, Job, Queue};
use crate::value::Limit;

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
    pub ended: &'a [Ended],
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

const NANO: Nano = 1_000_000_000;
/// What a job is taken to ask for that may run as long as it likes.
const UNLIMITED: Span = Span::from_secs(30 * 86_400);

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

/// Users of accounts by number.
struct Parties<'a> {
    accounts: Option<&'a Accounts>,
    names: Vec<(String, Option<String>)>,
    numbers: HashMap<(String, Option<String>), u32>,
}

/// Entitlements of everybody seen.
struct Entitled {
    tree: Option<AccountTree>,
    weights: evenhand_model::Weights,
}

impl Entitled {
    fn entitled(&self) -> Vec<f64> {
        (0..self.weights.len())
            .map(|u| match &self.tree {
                Some(tree) => to_f64(tree.user_entitlement(u)),
                None => to_f64(&self.weights.entitlement(u)),
            })
            .collect()
    }
}

type Jobs = (Vec<Ran>, Vec<Waits>, Vec<usize>, Vec<(usize, Unranked)>);

impl<'a> Parties<'a> {
    fn new(accounts: Option<&'a Accounts>) -> Parties<'a> {
        Parties { accounts, names: Vec::new(), numbers: HashMap::new() }
    }

    fn of(&mut self, user: &str, account: Option<&str>) -> UserId {
        let account = account.filter(|_| self.accounts.is_some());
        let key = (user.to_string(), account.map(String::from));
        let number = *self.numbers.entry(key.clone()).or_insert(self.names.len() as u32);
        if number as usize == self.names.len() {
            self.names.push(key);
        }
        UserId(number)
    }

    /// What ran, what waits (each user's in the user's own order) with its place in the queue, and what has no place.
    fn jobs(
        &mut self,
        seen: &Seen<'_>,
        options: &PlanOptions,
        speeds: &Speeds,
        resources: &[Resource],
        now: Time,
    ) -> Jobs {
        let ask = |limit: Limit, partition: Option<&str>| {
            let of = partition.and_then(|name| seen.partitions.iter().find(|p| p.name == name));
            let of = of.and_then(|p| p.default_time.span().or(p.max_time.span()));
            limit.span().or(of).unwrap_or(UNLIMITED)
        };
        let rate = |partition: Option<&str>| partition.and_then(|name| options.prices.get(name)).map_or(1.0, to_f64);
        let queue = |partition: Option<&str>| {
            let at = seen.partitions.iter().position(|p| Some(p.name.as_str()) == partition);
            at.map(|at| at as u32)
        };
        let mut ran = Vec::new();
        for job in seen.ended {
            let partition = job.partition.as_deref();
            ran.push(Ran {
                job: Waits {
                    submitted: job.submit,
                    chunks: chunks(job.held.nodes()),
                    queue: queue(partition),
                    requested: ask(job.limit, partition),
                    rate: rate(partition) * speeds.mean(job.node_list.as_deref()),
                    ..Waits::new(self.of(&job.user, job.account.as_deref()), steps(&job.held.demand(), resources))
                },
                started: job.start,
                ended: Some(job.end),
            });
        }
        let mut rows: Vec<usize> = Vec::new();
        let mut unranked = Vec::new();
        let mut told: Vec<Option<Waits>> = vec![None; seen.queue.jobs.len()];
        for (at, job) in seen.queue.jobs.iter().enumerate() {
            let partition = job.partitions.first().map(String::as_str);
            let waits = Waits {
                submitted: job.submit.unwrap_or(now),
                chunks: chunks(job.requested.nodes().or(job.nodes)),
                queue: queue(partition),
                requested: ask(job.limit, partition),
                rate: rate(partition) * speeds.mean(job.node_list.as_deref()),
                tasks: job.tasks().max(1),
                ..Waits::new(self.of(&job.user, job.account.as_deref()), steps(&job.requested.demand(), resources))
            };
            if job.state.holds_resources() {
                let started = job.start.unwrap_or(now).min(now);
                ran.push(Ran { job: Waits { tasks: 1, ..waits }, started, ended: None });
            } else if job.state == crate::queue::JobState::Pending {
                match no_place(job, now) {
                    Some(why) => unranked.push((at, why)),
                    None => rows.push(at),
                }
                told[at] = Some(waits);
            }
        }
        // A user's own order: nice as the user set it, then submission.
        rows.sort_by_key(|at| {
            let job = &seen.queue.jobs[*at];
            (job.nice.unwrap_or(0), job.submit, job.id)
        });
        let waits = rows.iter().filter_map(|at| told[*at].take()).collect();
        (ran, waits, rows, unranked)
    }

    /// The tree of those seen; equal shares without accounts.
    fn tree(&self) -> Result<Entitled, PlanError> {
        let users = self.names.len().max(1);
        let Some(accounts) = self.accounts.filter(|_| !self.names.is_empty()) else {
            return Ok(Entitled { tree: None, weights: evenhand_model::Weights::equal(users) });
        };
        let leaves = accounts.leaves()?;
        let known: HashMap<(&str, &str), usize> =
            leaves.users.iter().enumerate().map(|(at, (u, a))| ((u.as_str(), a.as_str()), at)).collect();
        let all: Vec<Account> = leaves.tree.accounts().to_vec();
        let named: HashMap<&str, usize> = all.iter().enumerate().map(|(at, a)| (a.name.as_str(), at)).collect();
        let mut homes = Vec::new();
        let mut shares = Vec::new();
        for (user, account) in &self.names {
            let account = account.as_deref().unwrap_or("root");
            match known.get(&(user.as_str(), account)) {
                Some(&leaf) => {
                    homes.push(leaves.tree.home(leaf));
                    shares.push(leaves.tree.shares(leaf).clone());
                }
                // Gone since, or not shown: one of the account's users.
                None => {
                    homes.push(named.get(account).copied());
                    shares.push(Rational::ONE);
                }
            }
        }
        let tree = AccountTree::new(all, homes, shares)?;
        Ok(Entitled { weights: tree.weights(), tree: Some(tree) })
    }
}

/// How fast machines are that are not of speed 1.
struct Speeds(HashMap<String, f64>);

impl Speeds {
    fn of(described: &Described, nodes: &[Node]) -> Speeds {
        let groups = described.cluster.groups.iter().zip(&described.members);
        let fast = groups.filter(|(group, _)| group.speed != Rational::ONE);
        let each = fast.flat_map(|(group, members)| {
            let speed = to_f64(&group.speed);
            members.iter().map(move |at| (nodes[*at].name.clone(), speed))
        });
        Speeds(each.collect())
    }

    /// The mean over the machines of a list; 1 of those that wait for theirs.
    fn mean(&self, list: Option<&str>) -> f64 {
        if self.0.is_empty() {
            return 1.0;
        }
        let names = list.and_then(hosts).unwrap_or_default();
        let sum: f64 = names.iter().map(|name| self.0.get(name).copied().unwrap_or(1.0)).sum();
        if names.is_empty() { 1.0 } else { sum / names.len() as f64 }
    }
}

fn chunks(nodes: Option<u64>) -> u32 {
    nodes.and_then(|n| u32::try_from(n).ok()).unwrap_or(1).max(1)
}

/// Whole units of each resource, rounded up.
fn steps(demand: &[Nano; 3], resources: &[Resource]) -> Vec<Amount> {
    let of = |resource: &Resource| match resource.name.as_str() {
        "cpu" => demand[0],
        "mem" => demand[1],
        _ => demand[2],
    };
    let whole = |nano: Nano| Amount(u64::try_from(nano.div_ceil(NANO)).unwrap_or(u64::MAX).min(Amount::MAX.0));
    resources.iter().map(|r| whole(of(r))).collect()
}

/// Why a job that waits is not to be ordered.
fn no_place(job: &Job, now: Time) -> Option<Unranked> {
    if let Some(hold) = job.held() {
        return Some(Unranked::Held(hold));
    }
    if job.heterogeneous.is_some_and(|part| part.offset > 0) {
        return Some(Unranked::NotEligible("a part of a job that starts with its first".into()));
    }
    let reason = job.reason.clone().unwrap_or_default();
    if let Some(on) = &job.dependency
        && (reason.starts_with("Dependency") || on.contains("unfulfilled"))
    {
        return Some(Unranked::Depends(on.clone()));
    }
    if let Some(reservation) = &job.reservation {
        return Some(Unranked::Reservation(reservation.clone()));
    }
    let later = job.eligible.is_none_or(|at| at > now);
    // Limits of associations, QOS and partitions, and requests that nothing will ever meet, begin like these. Who
    // waits for a machine that is down or drained has a place: it is the machine that is missing.
    let barred = ["Assoc", "QOS", "Partition", "BadConstraints", "Cleaning"];
    let barred = barred.iter().any(|word| reason.starts_with(word));
    (barred || (later && reason == "BeginTime")).then_some(Unranked::NotEligible(reason))
}

/// What nobody has.
struct Free {
    resources: Vec<String>,
    site: [Nano; 3],
    machines: Vec<[Nano; 3]>,
}

impl Free {
    fn of(nodes: &[Node], resources: &[Resource]) -> Free {
        let left = |has: u64, held: u64| Nano::from(has.saturating_sub(held)) * NANO;
        let machine = |node: &Node| {
            [
                left(node.cpus, node.allocated_cpus),
                left(node.memory, node.allocated_memory),
                left(node.gpus(), node.allocated.gpus()),
            ]
        };
        let machines: Vec<[Nano; 3]> = nodes.iter().filter(|n| !n.is_out()).map(machine).collect();
        let sum = |r: usize| machines.iter().map(|m| m[r]).sum();
        Free { resources: resources.iter().map(|r| r.name.clone()).collect(), site: [sum(0), sum(1), sum(2)], machines }
    }

    fn lacks(&self, job: &Job) -> Lacks {
        let (asks, each) = (job.requested.demand(), job.requested_per_node());
        let place = |r: usize| self.resources.iter().position(|name| *name == ["cpu", "mem", "gpu"][r]);
        let short: Vec<(usize, Nano, Nano)> = (0..3)
            .filter(|r| asks[*r] > self.site[*r])
            .filter_map(|r| Some((place(r)?, asks[r], self.site[r])))
            .collect();
        if !short.is_empty() {
            return Lacks::AtSite(short);
        }
        let room = |machine: &[Nano; 3]| (0..3).all(|r| each[r] <= machine[r]);
        let nodes = job.requested.nodes().or(job.nodes).unwrap_or(1).max(1);
        let fitting = self.machines.iter().filter(|m| room(m)).count() as u64;
        if fitting >= nodes { Lacks::Nothing } else { Lacks::OnMachines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nodes, Partitions};
    use evenhand_policies::registration;

    const NODES: &str = "NodeName=n1 CPUTot=16 RealMemory=32000 CPUAlloc=6 AllocMem=4000 Partitions=main State=MIXED\n\
        NodeName=n2 CPUTot=16 RealMemory=32000 Partitions=main State=IDLE\n";
    const PARTITIONS: &str = "PartitionName=main MaxTime=1-00:00:00 Default=YES\n";
    const HEADER: &str = "JOBID|ARRAY_JOB_ID|ARRAY_TASK_ID|USER|ACCOUNT|PARTITION|STATE|REASON|SUBMIT_TIME|ELIGIBLE_TIME|START_TIME|\
         TIME_LIMIT|PRIORITY|NICE|DEPENDENCY|RESERVATION|NODES|TRES_ALLOC";
    const QUEUE: &str = "1|1|N/A|ann|art|main|RUNNING|None|100|100|110|1:00:00|5|0|(null)|(null)|1|cpu=6,mem=4000M,node=1\n\
        2|2|N/A|ann|art|main|PENDING|Priority|120|120|N/A|1:00:00|5|0|(null)|(null)|1|cpu=2,mem=1000M,node=1\n\
        3|3|0-9|bob|art|main|PENDING|Resources|130|130|N/A|1:00:00|5|0|(null)|(null)|1|cpu=1,mem=1000M,node=1\n\
        4|4|N/A|cid|lab|main|PENDING|Resources|140|140|N/A|1:00:00|5|0|(null)|(null)|1|cpu=20,mem=1000M,node=1\n\
        5|5|N/A|cid|lab|main|PENDING|JobHeldUser|140|140|N/A|1:00:00|0|0|(null)|(null)|1|cpu=1,node=1\n\
        6|6|N/A|cid|lab|main|PENDING|Dependency|140|N/A|N/A|1:00:00|5|0|afterok:1(unfulfilled)|(null)|1|cpu=1,node=1\n\
        7|7|N/A|cid|lab|main|PENDING|Resources|140|140|N/A|1:00:00|5|0|(null)|class|1|cpu=1,node=1\n\
        8|8|N/A|cid|lab|main|PENDING|QOSMaxJobsPerUserLimit|140|140|N/A|1:00:00|5|0|(null)|(null)|1|cpu=1,node=1\n\
        9|9|N/A|ann|art|main|PENDING|Priority|90|90|N/A|1:00:00|5|5|(null)|(null)|1|cpu=1,node=1\n";
    const ACCOUNTS: &str =
        "Account|ParentName|User|Share\nroot|||1\nart|root||3\nart||ann|1\nart||bob|1\nlab|root||1\nlab||cid|1\n";

    fn plan(policy: &str, depth: usize, accounts: bool, ended: &[Ended]) -> Plan {
        let (nodes, partitions) = (Nodes::parse(NODES).unwrap(), Partitions::parse(PARTITIONS).unwrap());
        let queue = Queue::parse(&format!("{HEADER}\n{QUEUE}")).unwrap();
        let accounts = accounts.then(|| Accounts::parse(ACCOUNTS).unwrap());
        let seen = Seen {
            nodes: &nodes.nodes,
            partitions: &partitions.partitions,
            accounts: accounts.as_ref(),
            queue: &queue,
            ended,
        };
        let options = PlanOptions {
            policy: registration(policy).unwrap(),
            decay: Some(Decay::from_half_life(Span::from_secs(1000)).unwrap()),
            combine: Combine::default(),
            prices: BTreeMap::new(),
            speed_feature: Some("spec_".into()),
            depth,
        };
        Plan::new(&seen, &options, Time::from_secs(1000)).unwrap()
    }

    fn ids(plan: &Plan) -> Vec<usize> {
        plan.places.iter().map(|p| p.job + 1).collect()
    }

    #[test]
    fn the_order_is_the_policy_s_and_says_why() {
        let drf = plan("drf", 10, false, &[]);
        // Bob holds nothing and came first, then Cid; an array of one has its place once. Ann's own order is by nice.
        assert_eq!(ids(&drf), [3, 4, 2, 9]);
        assert_eq!(drf.places[2].standing.shares[0], 6.0 / 32.0);
        assert_eq!(drf.places[0].before, 0);
        assert_eq!(drf.places[0].lacks, Lacks::Nothing);
        assert_eq!(drf.places[1].lacks, Lacks::OnMachines, "20 processors are free, but not on one machine");
        let why: Vec<(usize, &Unranked)> = drf.unranked.iter().map(|(job, why)| (job + 1, why)).collect();
        assert_eq!(
            why,
            [
                (5, &Unranked::Held(Hold::User)),
                (6, &Unranked::Depends("afterok:1(unfulfilled)".into())),
                (7, &Unranked::Reservation("class".into())),
                (8, &Unranked::NotEligible("QOSMaxJobsPerUserLimit".into())),
            ]
        );
        assert_eq!(ids(&plan("fifo", 10, false, &[])), [2, 9, 3, 4], "by each user's first");
        let short = plan("drf", 2, false, &[]);
        assert_eq!(ids(&short), [3, 4]);
        assert!(short.unranked.contains(&(1, Unranked::Behind)));
    }

    #[test]
    fn what_ended_counts_by_its_times_and_accounts_entitle() {
        let held = crate::Tres::parse("cpu=32,mem=1000M,node=2").unwrap();
        let job = |user: &str, account: &str| Ended {
            id: 77,
            user: user.into(),
            account: Some(account.into()),
            partition: Some("main".into()),
            submit: Time::from_secs(0),
            start: Time::from_secs(10),
            end: Time::from_secs(900),
            limit: Limit::None,
            held: held.clone(),
            node_list: Some("n[1-2]".into()),
        };
        // Bob had everything until a moment ago.
        assert_eq!(ids(&plan("sdrf", 10, false, &[job("bob", "art")]))[..2], [4, 2]);
        // Some 20,000 processor-seconds are left of either; Ann is charged the hour she asked for, 21,600.
        let penalty = plan("penalty", 10, false, &[job("bob", "art"), job("cid", "lab")]);
        assert_eq!(ids(&penalty)[..2], [3, 4]);
        assert_eq!(penalty.places[0].standing.key.round(), penalty.places[1].standing.key.round());
        let with = plan("fair-tree", 10, true, &[job("cid", "lab")]);
        let entitled: Vec<(&str, f64)> = with.parties.iter().map(|p| (p.user.as_str(), p.entitlement)).collect();
        assert_eq!(entitled, [("cid", 0.25), ("ann", 0.375), ("bob", 0.375)]);
        // The account that used nothing goes first, in it the user who holds nothing.
        assert_eq!(ids(&with)[0], 3);
    }

    #[test]
    fn penalties_count_gpus_speed_and_the_partition_s_price() {
        let nodes = Nodes::parse(
            "NodeName=n1 CPUTot=16 RealMemory=32000 Partitions=main,fast State=IDLE ActiveFeatures=spec_100\n\
             NodeName=g1 CPUTot=16 RealMemory=32000 Gres=gpu:2 Partitions=main,fast State=IDLE ActiveFeatures=spec_150\n",
        )
        .unwrap();
        let partitions = Partitions::parse("PartitionName=main\nPartitionName=fast\n").unwrap();
        let pending = "2|2|N/A|USER|art|main|PENDING|Priority|120|120|N/A|1:00|5|0|(null)|(null)|1|cpu=1,node=1\n";
        let queue = ["ann", "bob", "cid", "dan"].map(|user| pending.replace("USER", user)).concat();
        let queue = Queue::parse(&format!("{HEADER}\n{queue}")).unwrap();
        let job = |user: &str, node: &str, partition: &str, held: &str| Ended {
            id: 1,
            user: user.into(),
            account: None,
            partition: Some(partition.into()),
            submit: Time::from_secs(0),
            start: Time::from_secs(0),
            end: Time::from_secs(1000),
            limit: Limit::None,
            held: crate::Tres::parse(held).unwrap(),
            node_list: Some(node.into()),
        };
        let ended = [
            job("ann", "n1", "main", "cpu=2,mem=1000M,node=1"),
            job("bob", "g1", "main", "cpu=2,mem=1000M,node=1"),
            job("cid", "n1", "fast", "cpu=2,mem=1000M,node=1"),
            job("dan", "n1", "main", "cpu=2,mem=1000M,node=1,gres/gpu=1"),
        ];
        let seen = Seen {
            nodes: &nodes.nodes,
            partitions: &partitions.partitions,
            accounts: None,
            queue: &queue,
            ended: &ended,
        };
        let options = PlanOptions {
            policy: registration("penalty").unwrap(),
            decay: Some(Decay::from_half_life(Span::from_secs(1_000_000)).unwrap()),
            combine: Combine::default(),
            prices: BTreeMap::from([("fast".to_string(), Rational::from(3))]),
            speed_feature: Some("spec_".into()),
            depth: 4,
        };
        let plan = Plan::new(&seen, &options, Time::from_secs(1000)).unwrap();
        let key = |user: &str| {
            let place = plan.places.iter().find(|p| plan.parties[p.party].user == user).unwrap();
            place.standing.key
        };
        // Two processors for 1000 s; half as fast again; three times as dear; and a GPU is 32 / 2 processors.
        for (user, times) in [("bob", 1.5), ("cid", 3.0), ("dan", 9.0)] {
            assert!((key(user) / key("ann") - times).abs() < 1e-9, "{user}: {}", key(user) / key("ann"));
        }
        assert_eq!(plan.places.iter().map(|p| p.job).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
