//! Progressive filling of a tree of accounts: hierarchical DRF.
//!
//! The children of every account rise in proportion to their weights, and an account's own share rises by the largest
//! component of what its children get together. An account is thus charged for what it takes of the resource it takes
//! most of, however its users' demands complement each other, and never for the sum. With U the children of p that can
//! still get more,
//!
//! ```text
//! direction_p = sum over U of w_j direction_j / kappa_p,   kappa_p = the largest component of that sum
//! d share_p = kappa_p d level_p,   share_j = w_j level_p for j in U
//! ```
//!
//! and the direction of a user is its demand at dominant share 1. While no user stops, this is the H-DRF of
//! Bhattacharya et al. (SoCC'13): children are rescaled to the smallest of them, their vectors added, and the largest
//! component taken. When a user has all it wants, or a resource it demands is saturated, it no longer counts in the
//! direction, but its account remains charged for it: shares never fall.
//!
//! Naive hierarchical DRF takes an account's share as the largest component of all that its users hold. An account in
//! which one user alone holds a resource that no other user demands then counts as served, and its other users starve.
//! Excluding users who stopped (with all they hold, as if they had never been served) errs in the other direction: with
//! limits, their account gets what they hold on top of its share, and its siblings get less than their weights entitle
//! them to.
//!
//! Every direction has components of at most 1, so kappa_p is at most the sum of the weights of U: at root share 1,
//! before which nothing can be saturated, every user has its entitlement or its limit. With one resource all directions
//! are 1 and shares are what is held: max-min fairness, account by account.
//!
//! There is at most one event per user and one per resource. Each node keeps the sum of its children's directions and
//! the level of the next event below it in a binary tree over its children; an event changes only the path to the root:
//! O(depth × resources × log users). When a resource saturates everything is rebuilt: O(users × resources).

use crate::{AccountTree, Allocation, Number, Problem};

/// Divides a problem by the accounts of `tree`.
pub(crate) fn fill_accounts<N: Number>(problem: &Problem<N>, tree: &AccountTree<N>) -> Allocation<N> {
    HierarchicalFilling::new(problem, tree).run()
}

#[derive(Clone, Copy)]
enum Child {
    User(usize),
    Node(usize),
}

/// The root, or an account.
struct Node<N> {
    /// Parent, and place among its children; `None` for the root.
    parent: Option<(usize, usize)>,
    weight: N,
    children: Vec<Child>,
    /// Level at the last event below it; in between, the share rises by kappa per level.
    level: N,
    share: N,
    active: ActiveChildren<N>,
}

impl<N: Number> Node<N> {
    /// Raises the level.
    fn rise_to(&mut self, level: N) {
        let level = self.level.clone().larger(level);
        self.share += &((level.clone() - &self.level) * self.active.kappa());
        self.level = level;
    }

    /// Raises the share.
    fn rise_to_share(&mut self, share: N) {
        let rise = (share - &self.share).larger(N::zero());
        self.level += &(rise.clone() / self.active.kappa());
        self.share += &rise;
    }
}

/// Children that can still get more: a binary tree of sums of directions and lowest event levels. The children are at
/// places `size..2 * size`; place 1 is the root of the tree.
struct ActiveChildren<N> {
    width: usize,
    size: usize,
    directions: Vec<N>,
    is_active: Vec<bool>,
    events: Vec<Option<N>>,
}

impl<N: Number> ActiveChildren<N> {
    fn new(width: usize, children: usize) -> ActiveChildren<N> {
        let size = children.max(1);
        ActiveChildren {
            width,
            size,
            directions: vec![N::zero(); 2 * size * width],
            is_active: vec![false; 2 * size],
            events: vec![None; 2 * size],
        }
    }

    fn direction(&self) -> &[N] {
        &self.directions[self.width..][..self.width]
    }

    fn kappa(&self) -> N {
        self.direction().iter().cloned().fold(N::zero(), N::larger)
    }

    fn set(&mut self, child: usize, direction: impl Iterator<Item = N>, event: Option<N>) {
        let place = self.size + child;
        self.directions[place * self.width..][..self.width].iter_mut().zip(direction).for_each(|(d, new)| *d = new);
        self.is_active[place] = true;
        self.events[place] = event;
    }

    fn close(&mut self, child: usize) {
        let place = self.size + child;
        self.directions[place * self.width..][..self.width].fill(N::zero());
        self.is_active[place] = false;
        self.events[place] = None;
    }

    fn combine(&mut self, place: usize) {
        let (left, right) = (2 * place, 2 * place + 1);
        for r in 0..self.width {
            let sum = self.directions[left * self.width + r].clone() + &self.directions[right * self.width + r];
            self.directions[place * self.width + r] = sum;
        }
        self.is_active[place] = self.is_active[left] || self.is_active[right];
        self.events[place] = match (&self.events[left], &self.events[right]) {
            (Some(a), Some(b)) => Some(a.clone().smaller(b.clone())),
            (a, b) => a.clone().or_else(|| b.clone()),
        };
    }

    fn update(&mut self, child: usize) {
        let mut place = (self.size + child) / 2;
        while place > 0 {
            self.combine(place);
            place /= 2;
        }
    }

    fn build(&mut self) {
        (1..self.size).rev().for_each(|place| self.combine(place));
    }

    /// Returns the child whose event is next.
    fn next(&self) -> usize {
        let mut place = 1;
        while place < self.size {
            place = 2 * place + usize::from(self.events[2 * place] != self.events[place]);
        }
        place - self.size
    }
}

struct HierarchicalFilling<'a, N> {
    problem: &'a Problem<N>,
    /// Each after its parent; the root first.
    nodes: Vec<Node<N>>,
    tasks: Vec<N>,
    loads: Vec<N>,
}

impl<'a, N: Number> HierarchicalFilling<'a, N> {
    fn new(problem: &'a Problem<N>, tree: &AccountTree<N>) -> HierarchicalFilling<'a, N> {
        let node = |parent, weight| Node {
            parent,
            weight,
            children: Vec::new(),
            level: N::zero(),
            share: N::zero(),
            active: ActiveChildren::new(problem.resource_count(), 0),
        };
        let mut nodes: Vec<Node<N>> = vec![node(None, N::one())];
        for (a, account) in tree.accounts().iter().enumerate() {
            let parent = account.parent.map_or(0, |p| p + 1);
            nodes.push(node(Some((parent, nodes[parent].children.len())), account.weight.clone()));
            nodes[parent].children.push(Child::Node(a + 1));
        }
        for user in 0..problem.users() {
            nodes[tree.account_of(user).map_or(0, |h| h + 1)].children.push(Child::User(user));
        }
        for node in &mut nodes {
            node.active = ActiveChildren::new(problem.resource_count(), node.children.len());
            for (place, child) in node.children.iter().enumerate() {
                let Child::User(user) = *child else { continue };
                let (weight, dominant) = (problem.weight(user), problem.dominant_demand(user));
                let rate = weight.clone() / dominant;
                let event = problem.limit(user).map(|limit| limit.clone() / &rate);
                node.active.set(place, problem.demand(user).iter().map(|d| d.clone() * &rate), event);
            }
        }
        let zeros = |n| vec![N::zero(); n];
        let mut filling = HierarchicalFilling {
            problem,
            nodes,
            tasks: zeros(problem.users()),
            loads: zeros(problem.resource_count()),
        };
        filling.build();
        filling
    }

    fn run(mut self) -> Allocation<N> {
        let mut level = None;
        while self.nodes[0].active.is_active[1] {
            let root = &self.nodes[0];
            let direction = root.active.direction().iter().enumerate().filter(|(_, d)| d.is_positive());
            let rises = direction.map(|(r, d)| ((N::one() - &self.loads[r]).larger(N::zero()) / d, r));
            let Some((rise, resource)) = rises.reduce(|a, b| if b.0 < a.0 { b } else { a }) else { break };
            let full = root.level.clone() + rise;
            match &root.active.events[1] {
                Some(event) if *event < full => self.satisfy_next(),
                _ => {
                    self.rise_to(full.clone());
                    self.stop_at_full_resources(resource);
                    level = Some(full);
                }
            }
        }
        Allocation { level, ..Allocation::new(self.tasks) }
    }

    /// Raises the root; nodes below it follow at their own events.
    fn rise_to(&mut self, level: N) {
        let root = &mut self.nodes[0];
        let rise = (level.clone() - &root.level).larger(N::zero());
        for (load, d) in self.loads.iter_mut().zip(root.active.direction()) {
            if !d.is_zero() {
                *load += &(rise.clone() * d);
            }
        }
        root.rise_to(level);
    }

    /// Rises to the next level at which a user has all it wants, and stops that user.
    fn satisfy_next(&mut self) {
        let mut at = 0;
        let place = loop {
            let active = &self.nodes[at].active;
            let place = active.next();
            let event = active.events[active.size + place].clone();
            if let Some(event) = event {
                if at == 0 { self.rise_to(event) } else { self.nodes[at].rise_to(event) }
            }
            match self.nodes[at].children[place] {
                Child::Node(below) => at = below,
                Child::User(user) => {
                    self.tasks[user] = self.problem.limit(user).cloned().unwrap_or_else(N::zero);
                    break place;
                }
            }
        };
        self.nodes[at].active.close(place);
        self.nodes[at].active.update(place);
        while let Some((parent, place)) = self.update_parent(at) {
            self.nodes[parent].active.update(place);
            at = parent;
        }
    }

    /// Updates the parent's entry of a node: how it rises, and the next event below it.
    fn update_parent(&mut self, node: usize) -> Option<(usize, usize)> {
        let node = &self.nodes[node];
        let (parent, place) = node.parent?;
        if node.active.is_active[1] {
            let kappa = node.active.kappa();
            let ahead = |event: &N| (event.clone() - &node.level).larger(N::zero()) * &kappa;
            let event = node.active.events[1].as_ref().map(|e| (node.share.clone() + ahead(e)) / &node.weight);
            let direction: Vec<N> = node.active.direction().iter().map(|d| d.clone() / &kappa * &node.weight).collect();
            self.nodes[parent].active.set(place, direction.into_iter(), event);
        } else {
            self.nodes[parent].active.close(place);
        }
        Some((parent, place))
    }

    fn build(&mut self) {
        for node in (0..self.nodes.len()).rev() {
            self.nodes[node].active.build();
            self.update_parent(node);
        }
    }

    /// Stops the users who demand some of a saturated resource. The resource that ended the rise is saturated even if
    /// rounding leaves a residue.
    fn stop_at_full_resources(&mut self, resource: usize) {
        let is_full: Vec<bool> =
            (0..self.loads.len()).map(|r| r == resource || N::one() - &self.loads[r] <= N::rounding()).collect();
        for at in 0..self.nodes.len() {
            if let Some((parent, _)) = self.nodes[at].parent
                && self.nodes[at].active.is_active[1]
            {
                let share = self.nodes[parent].level.clone() * &self.nodes[at].weight;
                self.nodes[at].rise_to_share(share);
            }
            let Node { level, children, active, .. } = &mut self.nodes[at];
            for (place, child) in children.iter().enumerate() {
                let Child::User(user) = *child else { continue };
                let demand = self.problem.demand(user);
                let is_stopped = is_full.iter().zip(demand).any(|(full, d)| *full && !d.is_zero());
                if active.is_active[active.size + place] && is_stopped {
                    let rate = self.problem.weight(user).clone() / self.problem.dominant_demand(user);
                    let tasks = rate * &*level;
                    self.tasks[user] = match self.problem.limit(user) {
                        Some(limit) => tasks.smaller(limit.clone()),
                        None => tasks,
                    };
                    active.close(place);
                }
            }
        }
        self.build();
    }
}
