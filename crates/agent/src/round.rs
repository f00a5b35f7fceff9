//! One update of a node, without the machine: from loads to what other nodes are told, from what all have told to weights.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::discovery::Quotas;
use evenhand_enforcers::cgroups::{Control, parent};
use evenhand_heaviness::controller::{
    IntegralController, IntegralSettings, LinearMap, WeightRange, elasticity, row_gain,
};
use evenhand_heaviness::{
    Cloud, Endowment, HeavinessError, Metric, Node, NodeHeaviness, RunningWorkload, combined_heaviness, user_heaviness,
};
use evenhand_protocol::exchange::{Fixed, Totals, UserSums};

use crate::configuration::Law;
use crate::loads::Load;

/// Everything that does not change while the agent runs.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What heaviness is.
    pub metric: Arc<dyn Metric<f64>>,
    /// How endowments come from sizes.
    pub endowment: Endowment,
    /// What is counted.
    pub resources: Vec<Control>,
    /// What the node has, by [`Control::ALL`], in its own units. 0: nothing, or not known.
    pub supply: Load,
    /// What a processor second of this node is worth in those of the reference node.
    pub speed: f64,
    /// What is due to users. Those who are named count as users also when they have no guests.
    pub quotas: Quotas,
    /// From heaviness to weights.
    pub law: Law,
    /// How many updates old what other nodes say is.
    pub delay: u32,
}

/// What has to be known about a guest.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// The path of its control group. It is weighed against those with the same parent.
    pub path: String,
    /// Which group of that path it is.
    pub identity: u64,
    /// Whose it is.
    pub owner: String,
    /// How large it was sized, by [`Control::ALL`].
    pub sizes: [Option<f64>; 4],
}

/// What followed for a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// h_v
    pub heaviness: f64,
    /// h_p: who has more of it yields.
    pub precedence: f64,
    /// Its weight among its siblings, 1 is neutral.
    pub weight: f64,
}

/// What followed for a user, all nodes taken together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserOutcome {
    /// h_u: 0 is just what is due.
    pub heaviness: f64,
    /// What the user has of each counted resource, as a part of what the cloud has.
    pub shares: Vec<f64>,
    /// What is budgeted for the user of each, as such a part.
    pub entitlements: Vec<f64>,
    /// How many guests run.
    pub guests: u32,
}

/// A node's part of the fairness service (paper 003, Listing 1, lines 5, 6 and 9 to 11).
pub struct Round {
    terms: Terms,
    facts: Vec<Facts>,
    /// The number of each user in `cloud`, in the order of their names.
    users: BTreeMap<String, usize>,
    /// Of each user, whether this node alone is enough to know of them.
    own: Vec<bool>,
    cloud: Cloud<f64>,
    node: Node<f64>,
    local: NodeHeaviness<f64>,
    sets: Vec<Siblings>,
    /// Of each guest, its set and its place there.
    places: Vec<(usize, usize)>,
    heaviness: Vec<f64>,
    precedence: Vec<f64>,
    /// Sums over all nodes, user after user.
    sums: Vec<f64>,
    /// Of each user, what the use of all its guests moves with their weights.
    swings: Vec<f64>,
}

/// Guests that the kernel weighs against each other.
struct Siblings {
    members: Vec<usize>,
    controller: IntegralController,
}

/// After the metric's own terms a user has as many again for each resource, twice: what its use would move with
/// its weights (see `row_gain`), and what it uses. Those are for the gain and for people.
const EXTRA: usize = 2;

impl Round {
    /// Of a node without guests.
    ///
    /// # Errors
    /// If the supply or a quota is none.
    pub fn new(terms: Terms) -> Result<Round, HeavinessError> {
        let cloud = Cloud::new(vec![0.0; terms.resources.len()], Vec::new())?;
        let node =
            Node::new(vec![0.0; terms.resources.len()], vec![1.0; terms.resources.len()], terms.endowment, vec![])?;
        let mut round = Round {
            terms,
            facts: Vec::new(),
            users: BTreeMap::new(),
            own: Vec::new(),
            cloud,
            node,
            local: NodeHeaviness::default(),
            sets: Vec::new(),
            places: Vec::new(),
            heaviness: Vec::new(),
            precedence: Vec::new(),
            sums: Vec::new(),
            swings: Vec::new(),
        };
        round.set_guests(Vec::new())?;
        let supply = round.node.supply().to_vec();
        round.set_cloud(supply, BTreeSet::new())?;
        Ok(round)
    }

    fn resources(&self) -> usize {
        self.terms.resources.len()
    }

    /// How many numbers a user has in a record: the metric's terms, and what is added to them here.
    pub fn width(terms: &Terms) -> usize {
        terms.metric.terms(terms.resources.len()) + EXTRA * terms.resources.len()
    }

    /// The most that a node with this supply may say of all its users together, in a cloud of so many of them.
    pub fn most(metric: &dyn Metric<f64>, users: usize, supply: &[f64]) -> Vec<f64> {
        let mut most = metric.max_terms(users, supply);
        // p (1 - p) <= 1/4 of what is there for each of them, p in sum 1 at most: so at most all of it.
        (0..EXTRA).for_each(|_| most.extend_from_slice(supply));
        most
    }

    /// Who runs here now. Who was here keeps the weight, who comes begins at 1.
    ///
    /// # Errors
    /// If a size is none.
    pub fn set_guests(&mut self, facts: Vec<Facts>) -> Result<(), HeavinessError> {
        let of = |(guest, facts): (usize, &Facts)| ((facts.path.clone(), facts.identity), self.weight(guest));
        let weights: HashMap<(String, u64), f64> = self.facts.iter().enumerate().map(of).collect();
        let settings = match self.terms.law {
            Law::Integral(settings) => settings,
            Law::Linear => IntegralSettings::default(),
        };
        let mut sets: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut members, mut places) = (Vec::<Vec<usize>>::new(), Vec::new());
        for (guest, facts) in facts.iter().enumerate() {
            let set = *sets.entry(parent(&facts.path)).or_insert(members.len());
            members.resize_with(members.len().max(set + 1), Vec::new);
            places.push((set, members[set].len()));
            members[set].push(guest);
        }
        self.sets = members
            .into_iter()
            .filter_map(|members| Some(Siblings { members, controller: IntegralController::new(settings).ok()? }))
            .collect();
        for set in &mut self.sets {
            for guest in &set.members {
                let place = set.controller.add();
                let Facts { path, identity, .. } = &facts[*guest];
                set.controller.set_weight(place, weights.get(&(path.clone(), *identity)).copied().unwrap_or(1.0));
            }
        }
        let mut speed = vec![1.0; self.resources()];
        let is_cpu = |c: &Control| *c == Control::Cpu;
        speed.iter_mut().zip(&self.terms.resources).filter(|(_, c)| is_cpu(c)).for_each(|(s, _)| *s = self.terms.speed);
        let supply = self.terms.resources.iter().map(|c| self.terms.supply[*c as usize]).collect();
        let of = |facts: &Facts| RunningWorkload {
            owner: 0,
            sizes: self.terms.resources.iter().map(|c| facts.sizes[*c as usize]).collect(),
            load: vec![0.0; self.terms.resources.len()],
        };
        self.node = Node::new(supply, speed, self.terms.endowment, facts.iter().map(of).collect())?;
        (self.facts, self.places) = (facts, places);
        let names = std::mem::take(&mut self.users).into_keys().collect();
        self.set_cloud(self.cloud.supply().to_vec(), names)
    }

    /// Who has guests anywhere, and what there is. Users are numbered in the order of their names.
    fn set_cloud(&mut self, supply: Vec<f64>, mut names: BTreeSet<String>) -> Result<(), HeavinessError> {
        for name in self.facts.iter().map(|facts| facts.owner.as_str()).chain(self.terms.quotas.users()) {
            if !names.contains(name) {
                names.insert(name.to_owned());
            }
        }
        let of = |name: &String, c: &Control| self.terms.quotas.of(name, c.resource());
        let quota = |name: &String| self.terms.resources.iter().map(|c| of(name, c)).collect();
        self.cloud = Cloud::new(supply, names.iter().map(quota).collect())?;
        self.users = names.into_iter().enumerate().map(|(user, name)| (name, user)).collect();
        let owners: Vec<usize> = self.facts.iter().map(|facts| self.users[&facts.owner]).collect();
        self.own = vec![false; self.users.len()];
        let quotas = self.terms.quotas.users().filter_map(|name| self.users.get(name));
        owners.iter().chain(quotas).for_each(|user| self.own[*user] = true);
        self.node.set_owners(owners)
    }

    /// What this node has to say, from what its guests use: one load for each, in their order.
    ///
    /// Nobody can use more than there is; where loads say so, as a disk may that is faster than was said, all are
    /// taken for less in proportion, and the resources are named.
    ///
    /// # Errors
    /// If there is not one finite load a guest.
    pub fn measure(&mut self, loads: &[Load]) -> Result<Measured, HeavinessError> {
        let resources = self.terms.resources.clone();
        let mut parts = Vec::new();
        let mut beyond = Vec::new();
        for control in &resources {
            let (supply, used) =
                (self.terms.supply[*control as usize], loads.iter().map(|l| l[*control as usize]).sum::<f64>());
            parts.push(if used > supply { supply / used } else { 1.0 });
            // Meters and clocks are not exact.
            if supply > 0.0 && used > 1.02 * supply {
                beyond.push((*control, used));
            }
        }
        let mut scaled = vec![0.0; resources.len()];
        for (guest, load) in loads.iter().enumerate() {
            for ((scaled, control), part) in scaled.iter_mut().zip(&resources).zip(&parts) {
                *scaled = load[*control as usize] * part;
            }
            self.node.set_load(guest, &scaled)?;
        }
        self.local.update(self.terms.metric.as_ref(), &self.cloud, &self.node)?;
        Ok(Measured { supply: fixed(self.node.supply()), users: self.user_sums(), beyond })
    }

    fn user_sums(&self) -> BTreeMap<String, UserSums> {
        let (resources, terms) = (self.resources(), self.terms.metric.terms(self.resources()));
        // By number: of each resource the user's part of the node; how many guests.
        let (mut used, mut guests) = (vec![0.0; self.users.len() * resources], vec![0_u32; self.users.len()]);
        for (guest, owner) in self.node.owners().iter().enumerate() {
            let sum = &mut used[owner * resources..][..resources];
            sum.iter_mut().zip(self.node.load(guest)).for_each(|(sum, load)| *sum += load);
            guests[*owner] += 1;
        }
        let here = self.users.iter().filter(|(_, user)| guests[**user] > 0);
        let sums = |(name, user): (&String, &usize)| {
            let (of, used) = (&self.local.sums[user * terms..][..terms], &used[user * resources..][..resources]);
            let swings = used.iter().zip(self.node.supply()).map(|(used, supply)| supply * swing(*used, *supply));
            let terms = of.iter().copied().chain(swings).chain(used.iter().copied()).map(number).collect();
            (name.clone(), UserSums { terms, workloads: guests[*user] })
        };
        here.map(sums).collect()
    }

    /// Takes in what all nodes have said, and moves the weights.
    ///
    /// # Errors
    /// If the totals are of other resources.
    pub fn weigh(&mut self, totals: &Totals) -> Result<(), HeavinessError> {
        self.hear(totals)?;
        match self.terms.law {
            Law::Linear => {}
            Law::Integral(settings) => {
                for set in 0..self.sets.len() {
                    self.move_weights(set, settings);
                }
            }
        }
        Ok(())
    }

    /// Takes in what all nodes have said: users, their sums, and how heavy everybody is. No weight moves.
    ///
    /// # Errors
    /// If the totals are of other resources.
    pub fn hear(&mut self, totals: &Totals) -> Result<(), HeavinessError> {
        let supply: Vec<f64> = totals.supply.iter().map(|s| s.to_f64()).collect();
        let mut heard = totals.users.keys().peekable();
        let known =
            |(name, user): (&String, &usize)| heard.next_if(|heard| *heard == name).is_some() || self.own[*user];
        let same = self.users.iter().all(known) && heard.next().is_none();
        if supply != self.cloud.supply() || !same {
            self.set_cloud(supply, totals.users.keys().cloned().collect())?;
            // By the new norm, which some metrics use in their terms.
            self.local.update(self.terms.metric.as_ref(), &self.cloud, &self.node)?;
        }
        let terms = self.terms.metric.terms(self.resources());
        self.sums.clear();
        self.sums.resize(self.users.len() * terms, 0.0);
        self.swings.clear();
        self.swings.resize(self.users.len(), 0.0);
        // Both are in the order of names, and who is heard of is among the users.
        let mut users = self.users.iter();
        for (name, sums) in &totals.users {
            let Some((_, user)) = users.find(|(user, _)| *user == name) else { break };
            let (of, extra) = sums.terms.split_at(terms.min(sums.terms.len()));
            self.sums[user * terms..][..terms].iter_mut().zip(of).for_each(|(sum, of)| *sum = of.to_f64());
            let swings = self.cloud.norm().iter().zip(extra);
            self.swings[*user] = swings.map(|(norm, swing)| norm * swing.to_f64()).sum();
        }
        user_heaviness(self.terms.metric.as_ref(), &self.cloud, &self.sums, &mut self.heaviness);
        combined_heaviness(&self.node, &self.local.workloads, &self.heaviness, &mut self.precedence);
        Ok(())
    }

    /// One update of guests that are weighed against each other.
    fn move_weights(&mut self, set: usize, settings: IntegralSettings) {
        let (supply, norm) = (self.node.supply(), self.cloud.norm());
        let (mut heaviness, mut activity, mut row) = (Vec::new(), Vec::new(), 0.0_f64);
        for guest in &self.sets[set].members {
            let load = self.node.load(*guest);
            let parts = || load.iter().zip(supply).filter(|(_, s)| **s > 0.0);
            heaviness.push(self.precedence[*guest]);
            activity.push(parts().map(|(load, supply)| load / supply).sum());
            let own =
                load.iter().zip(supply).zip(norm).map(|((load, supply), norm)| norm * supply * swing(*load, *supply));
            let owner = self.swings[self.node.owners()[*guest]];
            row = row.max(row_gain(self.terms.metric.max_slope().unwrap_or(1.0), own.sum(), owner));
        }
        let settings = if row > 0.0 { settings.with_stable_gain_for_delay(row, self.terms.delay) } else { settings };
        let controller = &mut self.sets[set].controller;
        // Both refuse only what is not a number, which nothing here can become; the weights then stay.
        let _ = controller.set_gain(settings.gain);
        let _ = controller.update(&heaviness, &activity);
    }

    /// Moves all weights towards 1, for when nothing is heard of others any more: from 0 (at once) to 1 (not at all).
    pub fn age(&mut self, part: f64) {
        self.sets.iter_mut().for_each(|set| set.controller.decay_weights(part));
    }

    fn weight(&self, guest: usize) -> f64 {
        self.places.get(guest).map_or(1.0, |(set, place)| self.sets[*set].controller.weight(*place))
    }

    /// What followed for each guest, in their order.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = Outcome> {
        (0..self.facts.len()).map(|guest| Outcome {
            heaviness: self.local.workloads.get(guest).copied().unwrap_or(0.0),
            precedence: self.precedence.get(guest).copied().unwrap_or(0.0),
            weight: self.weight(guest),
        })
    }

    /// By the paper's map, a guest's value in this range.
    pub fn mapped(&self, guest: usize, range: WeightRange) -> u64 {
        LinearMap { range }.value(self.precedence.get(guest).copied().unwrap_or(0.0))
    }

    /// What followed for each user, by name.
    pub fn users(&self, totals: &Totals) -> BTreeMap<String, UserOutcome> {
        let terms = self.terms.metric.terms(self.resources()) + self.resources();
        let none = UserSums::default();
        let parts = |of: &[f64]| {
            let part = |(of, supply): (&f64, &f64)| if *supply > 0.0 { of / supply } else { 0.0 };
            of.iter().zip(self.cloud.supply()).map(part).collect::<Vec<f64>>()
        };
        let outcome = |(name, user): (&String, &usize)| {
            let sums = totals.users.get(name).unwrap_or(&none);
            let mut used: Vec<f64> = sums.terms.iter().skip(terms).map(|u| u.to_f64()).collect();
            used.resize(self.resources(), 0.0);
            let outcome = UserOutcome {
                heaviness: self.heaviness.get(*user).copied().unwrap_or(0.0),
                shares: parts(&used),
                entitlements: parts(self.cloud.endowment(*user)),
                guests: sums.workloads,
            };
            (name.clone(), outcome)
        };
        self.users.iter().map(outcome).collect()
    }

    /// The gain of each set of siblings at the last update.
    pub fn gains(&self) -> impl Iterator<Item = f64> {
        self.sets.iter().map(|set| set.controller.gain())
    }
}

/// What a node tells others of its users.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What it has of each resource, in units of the reference node.
    pub supply: Vec<Fixed>,
    /// The sums of every user with guests here.
    pub users: BTreeMap<String, UserSums>,
    /// Of which resource more was used than there is, and how much.
    pub beyond: Vec<(Control, f64)>,
}

fn swing(used: f64, supply: f64) -> f64 {
    if supply > 0.0 { elasticity(used / supply) } else { 0.0 }
}

fn fixed(numbers: &[f64]) -> Vec<Fixed> {
    numbers.iter().copied().map(number).collect()
}

fn number(number: f64) -> Fixed {
    Fixed::from_f64(number).unwrap_or(Fixed::ZERO)
}
