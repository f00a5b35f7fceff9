//! One update of a node, without the machine: from loads to the node's record, and from the records of all nodes to weights.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use evenhand_enforcers::cgroups::{PerResource, Resource, parent};
use evenhand_heaviness::controller::{
    ControllerError, IntegralController, IntegralSettings, LinearMap, WeightRange, elasticity, row_gain,
};
use evenhand_heaviness::{
    Cloud, Endowment, HeavinessError, Metric, Node, NodeHeaviness, RunningWorkload as NodeWorkload, combined_heaviness,
    user_heaviness,
};
use evenhand_protocol::exchange::{Fixed, Totals, UserSums};

use crate::configuration::Law;
use crate::load_tracker::Load;
use crate::quotas::Quotas;

/// The settings of a node's computation, which are constant while the agent runs.
#[derive(Clone, Debug)]
pub struct RoundSettings {
    /// The heaviness metric.
    pub metric: Arc<dyn Metric<f64>>,
    /// How endowments follow from sizes.
    pub endowment: Endowment,
    /// The resources that are counted.
    pub resources: Vec<Resource>,
    /// The node's supply in processors, bytes and bytes per second. 0: none, or unknown.
    pub supply: PerResource<f64>,
    /// The factor that converts CPU seconds of this node to those of the reference node.
    pub speed: f64,
    /// The entitlements of users. Users named there count also while they have no workloads.
    pub quotas: Quotas,
    /// How weights follow from heaviness.
    pub law: Law,
    /// The age of the records of other nodes, in updates.
    pub delay: u32,
}

/// The properties of a running workload that decide its share.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadInfo {
    /// The path of its control group. Its weight is relative to those of the groups with the same parent.
    pub path: String,
    /// The identity of the group of this path.
    pub identity: u64,
    /// The name of its owner.
    pub owner: String,
    /// The size for which it was configured, in processors and bytes; `None`: unknown.
    pub sizes: PerResource<Option<f64>>,
}

/// The result of an update for a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkloadOutcome {
    /// The heaviness h_v of the workload.
    pub heaviness: f64,
    /// The precedence h_p = h_v + h_u: the workload with the larger value yields.
    pub precedence: f64,
    /// The weight relative to its siblings; 1 is neutral.
    pub weight: f64,
}

/// The result of an update for a user, over all nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserOutcome {
    /// The heaviness h_u: 0 if the user has exactly the entitlement.
    pub heaviness: f64,
    /// The user's share of the cloud's supply of each counted resource.
    pub shares: Vec<f64>,
    /// The user's entitlement to each counted resource, as a share of the cloud's supply.
    pub entitlements: Vec<f64>,
    /// The number of running workloads.
    pub workloads: u32,
}

/// The position of a user in the order of names, by which the cloud numbers users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct UserIndex(usize);

/// The position of a workload in the order of paths, by which the node numbers workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WorkloadIndex(usize);

/// A node's part of the fairness service (Poullie et al. 2016, Listing 1, lines 5, 6 and 9 to 11).
pub struct FairnessRound {
    settings: RoundSettings,
    workloads: Vec<WorkloadInfo>,
    users: BTreeMap<String, UserIndex>,
    /// For each user, whether this node knows the user without the records of others.
    known_here: Vec<bool>,
    cloud: Cloud<f64>,
    node: Node<f64>,
    local: NodeHeaviness<f64>,
    siblings: Vec<Siblings>,
    /// For each workload, the index of its siblings and its index among them.
    places: Vec<(usize, usize)>,
    heaviness: Vec<f64>,
    precedence: Vec<f64>,
    /// The sums of the metric's terms over all nodes, user after user.
    sums: Vec<f64>,
    /// For each user, how much the use of all its workloads responds to their weights.
    responses: Vec<f64>,
}

/// Workloads with the same parent group, among which the kernel divides by weight.
struct Siblings {
    members: Vec<WorkloadIndex>,
    controller: IntegralController,
}

/// A controller that rejected its input, so that the weights of some workloads did not change.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerFailure {
    /// The path of the parent group of these workloads.
    pub parent: String,
    /// The error.
    pub error: ControllerError,
}

/// A record has the metric's terms of each user, and after them twice as many numbers as resources: how much the user's
/// use responds to its weights (see `row_gain`), and the use itself. The first bound the gain, the second are reported.
const EXTRA_TERMS: usize = 2;

impl FairnessRound {
    /// Creates the round of a node without workloads.
    ///
    /// # Errors
    /// Returns an error if the supply or a quota is not a finite, non-negative number.
    pub fn new(settings: RoundSettings) -> Result<FairnessRound, HeavinessError> {
        let width = settings.resources.len();
        let cloud = Cloud::new(vec![0.0; width], Vec::new())?;
        let node = Node::new(vec![0.0; width], vec![1.0; width], settings.endowment, vec![])?;
        let mut round = FairnessRound {
            settings,
            workloads: Vec::new(),
            users: BTreeMap::new(),
            known_here: Vec::new(),
            cloud,
            node,
            local: NodeHeaviness::default(),
            siblings: Vec::new(),
            places: Vec::new(),
            heaviness: Vec::new(),
            precedence: Vec::new(),
            sums: Vec::new(),
            responses: Vec::new(),
        };
        round.set_workloads(Vec::new())?;
        let supply = round.node.supply().to_vec();
        round.set_cloud(supply, BTreeSet::new())?;
        Ok(round)
    }

    fn resources(&self) -> usize {
        self.settings.resources.len()
    }

    /// Returns upper bounds of the sums over all users in the record of a node with this supply, in a cloud with this
    /// number of users.
    pub fn record_bounds(metric: &dyn Metric<f64>, users: usize, supply: &[f64]) -> Vec<f64> {
        let mut bounds = metric.max_terms(users, supply);
        // p (1 - p) <= 1/4 of the supply for each workload, and the p sum to 1 at most: so at most the supply.
        (0..EXTRA_TERMS).for_each(|_| bounds.extend_from_slice(supply));
        bounds
    }

    /// Sets the workloads that run now. Those that ran before keep their weights, new ones start at 1.
    ///
    /// # Errors
    /// Returns an error if a size is not a finite, non-negative number.
    pub fn set_workloads(&mut self, workloads: Vec<WorkloadInfo>) -> Result<(), HeavinessError> {
        let weight_of = |(index, info): (usize, &WorkloadInfo)| {
            ((info.path.clone(), info.identity), self.weight(WorkloadIndex(index)))
        };
        let weights: HashMap<(String, u64), f64> = self.workloads.iter().enumerate().map(weight_of).collect();
        let settings = match self.settings.law {
            Law::Integral(settings) => settings,
            Law::Linear => IntegralSettings::default(),
        };
        let mut parents: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut members, mut places) = (Vec::<Vec<WorkloadIndex>>::new(), Vec::new());
        for (index, info) in workloads.iter().enumerate() {
            let set = *parents.entry(parent(&info.path)).or_insert(members.len());
            members.resize_with(members.len().max(set + 1), Vec::new);
            places.push((set, members[set].len()));
            members[set].push(WorkloadIndex(index));
        }
        self.siblings = members
            .into_iter()
            .filter_map(|members| Some(Siblings { members, controller: IntegralController::new(settings).ok()? }))
            .collect();
        for siblings in &mut self.siblings {
            for member in &siblings.members {
                let place = siblings.controller.add();
                let WorkloadInfo { path, identity, .. } = &workloads[member.0];
                let weight = weights.get(&(path.clone(), *identity)).copied().unwrap_or(1.0);
                siblings.controller.set_weight(place, weight);
            }
        }
        let speed = PerResource { cpu: self.settings.speed, memory: 1.0, disk: 1.0, network: 1.0 };
        let resources = &self.settings.resources;
        let describe = |info: &WorkloadInfo| NodeWorkload {
            owner: 0,
            sizes: info.sizes.select(resources),
            load: vec![0.0; resources.len()],
        };
        self.node = Node::new(
            self.settings.supply.select(resources),
            speed.select(resources),
            self.settings.endowment,
            workloads.iter().map(describe).collect(),
        )?;
        (self.workloads, self.places) = (workloads, places);
        let names = std::mem::take(&mut self.users).into_keys().collect();
        self.set_cloud(self.cloud.supply().to_vec(), names)
    }

    /// Sets the cloud's supply and its users, who are numbered in the order of their names.
    fn set_cloud(&mut self, supply: Vec<f64>, mut names: BTreeSet<String>) -> Result<(), HeavinessError> {
        for name in self.workloads.iter().map(|info| info.owner.as_str()).chain(self.settings.quotas.users()) {
            if !names.contains(name) {
                names.insert(name.to_owned());
            }
        }
        let amount = |name: &String, resource: &Resource| self.settings.quotas.amount(name, resource.name());
        let quota = |name: &String| self.settings.resources.iter().map(|resource| amount(name, resource)).collect();
        self.cloud = Cloud::new(supply, names.iter().map(quota).collect())?;
        self.users = names.into_iter().enumerate().map(|(user, name)| (name, UserIndex(user))).collect();
        let owners: Vec<UserIndex> = self.workloads.iter().map(|info| self.users[&info.owner]).collect();
        self.known_here = vec![false; self.users.len()];
        let with_quota = self.settings.quotas.users().filter_map(|name| self.users.get(name));
        owners.iter().chain(with_quota).for_each(|user| self.known_here[user.0] = true);
        self.node.set_owners(owners.into_iter().map(|user| user.0).collect())
    }

    /// Computes the node's record from the loads of its workloads, in their order.
    ///
    /// The total use cannot exceed the supply. Where the loads do, for example because a disk is faster than configured, all
    /// are scaled down in proportion, and the resources are returned.
    ///
    /// # Errors
    /// Returns an error unless there is one finite load for each workload.
    pub fn measure(&mut self, loads: &[Load]) -> Result<Measured, HeavinessError> {
        let mut beyond_supply = Vec::new();
        let mut factors = PerResource::from_fn(|_| 1.0);
        for resource in &self.settings.resources {
            let supply = self.settings.supply[*resource];
            let used = loads.iter().map(|load| load[*resource]).sum::<f64>();
            if used > supply {
                factors[*resource] = supply / used;
            }
            // Meters and clocks are not exact.
            if supply > 0.0 && used > 1.02 * supply {
                beyond_supply.push((*resource, used));
            }
        }
        for (index, load) in loads.iter().enumerate() {
            let scaled = PerResource::from_fn(|resource| load[resource] * factors[resource]);
            self.node.set_load(index, &scaled.select(&self.settings.resources))?;
        }
        self.local.update(self.settings.metric.as_ref(), &self.cloud, &self.node)?;
        Ok(Measured { supply: fixed(self.node.supply()), users: self.user_sums(), beyond_supply })
    }

    fn user_sums(&self) -> BTreeMap<String, UserSums> {
        let (resources, terms) = (self.resources(), self.settings.metric.terms(self.resources()));
        // For each user: the use of each resource on this node, and the number of workloads.
        let (mut used, mut counts) = (vec![0.0; self.users.len() * resources], vec![0_u32; self.users.len()]);
        for (workload, owner) in self.node.owners().iter().enumerate() {
            let sum = &mut used[owner * resources..][..resources];
            sum.iter_mut().zip(self.node.load(workload)).for_each(|(sum, load)| *sum += load);
            counts[*owner] += 1;
        }
        let present = self.users.iter().filter(|(_, user)| counts[user.0] > 0);
        let sums = |(name, user): (&String, &UserIndex)| {
            let (of, used) = (&self.local.sums[user.0 * terms..][..terms], &used[user.0 * resources..][..resources]);
            let responses = used.iter().zip(self.node.supply()).map(|(used, supply)| supply * response(*used, *supply));
            let terms = of.iter().copied().chain(responses).chain(used.iter().copied()).map(to_fixed).collect();
            (name.clone(), UserSums { terms, workloads: counts[user.0] })
        };
        present.map(sums).collect()
    }

    /// Takes over the totals of all nodes, and updates the weights. Returns the controllers that rejected their input, which
    /// keep their weights.
    ///
    /// # Errors
    /// Returns an error if the totals are of other resources.
    pub fn update_weights(&mut self, totals: &Totals) -> Result<Vec<ControllerFailure>, HeavinessError> {
        self.set_totals(totals)?;
        let mut failures = Vec::new();
        if let Law::Integral(settings) = self.settings.law {
            for set in 0..self.siblings.len() {
                if let Err(error) = self.update_siblings(set, settings) {
                    let first = self.siblings[set].members.first();
                    let parent = first.map_or("", |member| parent(&self.workloads[member.0].path)).to_owned();
                    failures.push(ControllerFailure { parent, error });
                }
            }
        }
        Ok(failures)
    }

    /// Takes over the totals of all nodes: users, their sums, and the heaviness of users and workloads. Weights stay.
    ///
    /// # Errors
    /// Returns an error if the totals are of other resources.
    pub fn set_totals(&mut self, totals: &Totals) -> Result<(), HeavinessError> {
        let supply: Vec<f64> = totals.supply.iter().map(|s| s.to_f64()).collect();
        let mut reported = totals.users.keys().peekable();
        let is_known = |(name, user): (&String, &UserIndex)| {
            reported.next_if(|reported| *reported == name).is_some() || self.known_here[user.0]
        };
        let same = self.users.iter().all(is_known) && reported.next().is_none();
        if supply != self.cloud.supply() || !same {
            self.set_cloud(supply, totals.users.keys().cloned().collect())?;
            // With the new norm, which some metrics use in their terms.
            self.local.update(self.settings.metric.as_ref(), &self.cloud, &self.node)?;
        }
        let terms = self.settings.metric.terms(self.resources());
        self.sums.clear();
        self.sums.resize(self.users.len() * terms, 0.0);
        self.responses.clear();
        self.responses.resize(self.users.len(), 0.0);
        // Both are sorted by name, and the reported users are among those of the cloud.
        let mut users = self.users.iter();
        for (name, sums) in &totals.users {
            let Some((_, user)) = users.find(|(user, _)| *user == name) else { break };
            let (of, extra) = sums.terms.split_at(terms.min(sums.terms.len()));
            self.sums[user.0 * terms..][..terms].iter_mut().zip(of).for_each(|(sum, of)| *sum = of.to_f64());
            let responses = self.cloud.norm().iter().zip(extra);
            self.responses[user.0] = responses.map(|(norm, response)| norm * response.to_f64()).sum();
        }
        user_heaviness(self.settings.metric.as_ref(), &self.cloud, &self.sums, &mut self.heaviness);
        combined_heaviness(&self.node, &self.local.workloads, &self.heaviness, &mut self.precedence);
        Ok(())
    }

    /// Updates the weights of one set of siblings.
    fn update_siblings(&mut self, set: usize, settings: IntegralSettings) -> Result<(), ControllerError> {
        let (supply, norm) = (self.node.supply(), self.cloud.norm());
        let (mut heaviness, mut activity, mut gain) = (Vec::new(), Vec::new(), 0.0_f64);
        for member in &self.siblings[set].members {
            let load = self.node.load(member.0);
            let parts = || load.iter().zip(supply).filter(|(_, s)| **s > 0.0);
            heaviness.push(self.precedence[member.0]);
            activity.push(parts().map(|(load, supply)| load / supply).sum());
            let of_workload = load
                .iter()
                .zip(supply)
                .zip(norm)
                .map(|((load, supply), norm)| norm * supply * response(*load, *supply));
            let of_owner = self.responses[self.node.owners()[member.0]];
            let steepest = self.settings.metric.max_slope().unwrap_or(1.0);
            gain = gain.max(row_gain(steepest, of_workload.sum(), of_owner));
        }
        let settings =
            if gain > 0.0 { settings.with_stable_gain_for_delay(gain, self.settings.delay) } else { settings };
        let controller = &mut self.siblings[set].controller;
        controller.set_gain(settings.gain)?;
        controller.update(&heaviness, &activity)
    }

    /// Moves all weights towards 1, for when no other node is reachable: the fraction `part` of the distance remains.
    pub fn decay_weights(&mut self, part: f64) {
        self.siblings.iter_mut().for_each(|siblings| siblings.controller.decay_weights(part));
    }

    fn weight(&self, workload: WorkloadIndex) -> f64 {
        self.places.get(workload.0).map_or(1.0, |(set, place)| self.siblings[*set].controller.weight(*place))
    }

    /// Iterates over the results of all workloads, in their order.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = WorkloadOutcome> {
        (0..self.workloads.len()).map(|index| WorkloadOutcome {
            heaviness: self.local.workloads.get(index).copied().unwrap_or(0.0),
            precedence: self.precedence.get(index).copied().unwrap_or(0.0),
            weight: self.weight(WorkloadIndex(index)),
        })
    }

    /// Maps the precedence of the workload at this position to a range, by the linear map of Poullie et al. (2016).
    pub fn linear_value(&self, workload: usize, range: WeightRange) -> u64 {
        LinearMap { range }.value(self.precedence.get(workload).copied().unwrap_or(0.0))
    }

    /// Returns the results of all users, by name.
    pub fn users(&self, totals: &Totals) -> BTreeMap<String, UserOutcome> {
        let terms = self.settings.metric.terms(self.resources()) + self.resources();
        let none = UserSums::default();
        let shares = |of: &[f64]| {
            let share = |(of, supply): (&f64, &f64)| if *supply > 0.0 { of / supply } else { 0.0 };
            of.iter().zip(self.cloud.supply()).map(share).collect::<Vec<f64>>()
        };
        let outcome = |(name, user): (&String, &UserIndex)| {
            let sums = totals.users.get(name).unwrap_or(&none);
            let mut used: Vec<f64> = sums.terms.iter().skip(terms).map(|u| u.to_f64()).collect();
            used.resize(self.resources(), 0.0);
            let outcome = UserOutcome {
                heaviness: self.heaviness.get(user.0).copied().unwrap_or(0.0),
                shares: shares(&used),
                entitlements: shares(self.cloud.endowment(user.0)),
                workloads: sums.workloads,
            };
            (name.clone(), outcome)
        };
        self.users.iter().map(outcome).collect()
    }

    /// Iterates over the gains of the controllers at the last update, one for each set of siblings.
    pub fn gains(&self) -> impl Iterator<Item = f64> {
        self.siblings.iter().map(|siblings| siblings.controller.gain())
    }
}

/// The content of a node's record about its users.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The supply of each counted resource, in units of the reference node.
    pub supply: Vec<Fixed>,
    /// The sums of every user with workloads here.
    pub users: BTreeMap<String, UserSums>,
    /// The resources of which more was used than the supply, and the use.
    pub beyond_supply: Vec<(Resource, f64)>,
}

fn response(used: f64, supply: f64) -> f64 {
    if supply > 0.0 { elasticity(used / supply) } else { 0.0 }
}

fn fixed(numbers: &[f64]) -> Vec<Fixed> {
    numbers.iter().copied().map(to_fixed).collect()
}

fn to_fixed(number: f64) -> Fixed {
    Fixed::from_f64(number).unwrap_or(Fixed::ZERO)
}
