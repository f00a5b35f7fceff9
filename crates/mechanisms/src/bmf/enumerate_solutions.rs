//! Enumeration of all solutions, for small problems.
//!
//! A solution has a pattern: which resources bind some user, and which of them binds each user (or that it has all it
//! wants). The levels determine the pattern, so of the m^n patterns only those count that some levels produce: a user
//! bound by j and not by k implies `mu_j / mu_k <= d_ij / d_ik`. Such bounds on ratios are kept transitively closed,
//! and a pattern whose bounds are contradictory is abandoned with all its extensions. The remaining patterns are the
//! cells of an arrangement, at most C(n+k-1, k-1) for k resources instead of k^n. A point on the border of cells
//! belongs to one with interior, so cells without interior, which equal users cause, need not be visited.
//!
//! At a solution each level also lies between 1 / (weights of all users who demand the resource) and 1 / (weights of
//! those it binds), since the resource is saturated and no user has more of it per weight.

use evenhand_model::Rational;

use crate::solvers::simplex::{LinearProgram, Optimum, Relation};
use crate::{MechanismError, Number, Problem};

use super::binding_pattern::{Binding, LevelEquations, Solved, solve, tasks};

/// All bottleneck max fair allocations of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct BmfSolutions<N> {
    /// Tasks of each user, in lexicographic order; each solution once.
    pub points: Vec<Vec<N>>,
    /// Number of patterns with infinitely many solutions, because their equations depend on each other. For each of
    /// these, `points` holds the solution in which the worst-off user is best off.
    pub families: usize,
}

/// Returns every bottleneck max fair allocation, exactly.
///
/// Time is proportional to the number of ways in which levels can bind users: at most about C(n+m-1, m-1) for n users
/// and m resources, with limits C(n+m, m). [`Bmf`](crate::Bmf) uses it up to about 100 000 steps.
///
/// # Errors
/// Returns an error if the problem has accounts.
pub fn bmf_solutions(problem: &Problem<Rational>) -> Result<BmfSolutions<Rational>, MechanismError> {
    super::no_accounts(problem)?;
    solutions(problem).ok_or_else(super::no_point)
}

/// Returns whether there are few enough patterns to enumerate in a fraction of a second.
pub(super) fn is_small<N: Number>(problem: &Problem<N>) -> bool {
    const MAX_STEPS: f64 = 1e5;
    let (n, m) = (problem.users(), problem.resource_count());
    let limited = usize::from(problem.has_limits());
    let steps = |k: usize| choose(m, k) * choose(n + k + limited - 1, k + limited - 1) * n as f64;
    (1..=m).map(steps).sum::<f64>() <= MAX_STEPS
}

/// Returns the binomial coefficient.
fn choose(of: usize, some: usize) -> f64 {
    (0..some).map(|i| (of - i) as f64 / (i + 1) as f64).product()
}

/// Returns every solution; `None` if rounding leaves open whether a point is one.
pub(super) fn solutions<N: Number>(problem: &Problem<N>) -> Option<BmfSolutions<N>> {
    let m = problem.resource_count();
    let mut found = BmfSolutions { points: Vec::new(), families: 0 };
    if m >= usize::BITS as usize {
        return None;
    }
    for set in 0..1_usize << m {
        let resources: Vec<usize> = (0..m).filter(|j| set >> j & 1 == 1).collect();
        Search::new(problem, resources, problem.has_limits()).run(&mut found)?;
    }
    let order = |a: &Vec<N>, b: &Vec<N>| {
        a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    found.points.sort_unstable_by(order);
    found.points.dedup();
    Some(found)
}

/// Search over the patterns in which exactly these resources bind users.
struct Search<'a, N> {
    problem: &'a Problem<N>,
    resources: Vec<usize>,
    /// Number of nodes: the resources and, if any user has a limit, one more for users who have all they want.
    nodes: usize,
    /// For each user and node, the part of the node's level that one task takes: d_ij / w_i, and 1 / X_i relative to
    /// the fixed level 1. `None` if the node cannot bind the user.
    takes: Vec<Option<N>>,
    /// Lower bound of each level.
    lower_bounds: Vec<N>,
}

/// Constraints that follow from the users assigned so far.
struct Frame<N> {
    /// Row p, column q: upper bound of mu_p / mu_q; `None` for no bound.
    ratios: Vec<Option<N>>,
    /// Sum of the weights bound by each resource so far.
    weights: Vec<N>,
    /// Node to try next for the next user.
    next: usize,
}

impl<'a, N: Number> Search<'a, N> {
    fn new(problem: &'a Problem<N>, resources: Vec<usize>, has_limits: bool) -> Search<'a, N> {
        let nodes = resources.len() + usize::from(has_limits);
        let mut takes = Vec::with_capacity(problem.users() * nodes);
        let mut demanded = vec![N::zero(); resources.len()];
        for i in 0..problem.users() {
            for (j, demanded) in resources.iter().zip(&mut demanded) {
                let d = &problem.demand(i)[*j];
                takes.push((!d.is_zero()).then(|| d.clone() / problem.weight(i)));
                if !d.is_zero() {
                    *demanded += problem.weight(i);
                }
            }
            if has_limits {
                // A user who wants nothing is satisfied at any level.
                takes.push(problem.limit(i).filter(|x| !x.is_zero()).map(|x| N::one() / x));
            }
        }
        let mut lower_bounds: Vec<N> =
            demanded.into_iter().map(|w| if w.is_zero() { N::zero() } else { N::one() / w }).collect();
        lower_bounds.resize(nodes, N::one());
        Search { problem, resources, nodes, takes, lower_bounds }
    }

    fn takes(&self, user: usize, node: usize) -> Option<&N> {
        self.takes[user * self.nodes + node].as_ref()
    }

    fn wants_nothing(&self, user: usize) -> bool {
        self.problem.limit(user).is_some_and(N::is_zero)
    }

    /// Adds the solutions found; returns `None` if rounding leaves one open.
    fn run(&self, found: &mut BmfSolutions<N>) -> Option<()> {
        let n = self.problem.users();
        let mut bound: Vec<Binding> = Vec::with_capacity(n);
        let ratios = vec![None; self.nodes * self.nodes];
        let mut frames = vec![Frame { ratios, weights: vec![N::zero(); self.resources.len()], next: 0 }];
        while let Some(frame) = frames.last_mut() {
            let user = bound.len();
            let node = frame.next;
            frame.next += 1;
            if user == n {
                if frame.weights.iter().all(N::is_positive) {
                    self.leaf(&bound, &frame.ratios, found)?;
                }
                frame.next = self.nodes;
            }
            if user == n || node >= self.nodes.max(1) {
                frames.pop();
                bound.pop();
                continue;
            }
            if self.wants_nothing(user) {
                frame.next = self.nodes.max(1);
                let (ratios, weights) = (frame.ratios.clone(), frame.weights.clone());
                frames.push(Frame { ratios, weights, next: 0 });
                bound.push(None);
            } else if let Some(next) = self.assign(frame, user, node) {
                frames.push(next);
                bound.push(self.resources.get(node).copied());
            }
        }
        Some(())
    }

    /// Returns the constraints if the node binds the user; `None` if that is impossible.
    fn assign(&self, frame: &Frame<N>, user: usize, node: usize) -> Option<Frame<N>> {
        if node >= self.nodes {
            return None;
        }
        let own = self.takes(user, node)?;
        let (nodes, mut ratios) = (self.nodes, frame.ratios.clone());
        let mut changed = false;
        for other in (0..nodes).filter(|q| *q != node) {
            let Some(theirs) = self.takes(user, other) else { continue };
            let bound = own.clone() / theirs;
            let at = node * nodes + other;
            if ratios[at].as_ref().is_some_and(|b| *b <= bound) {
                continue;
            }
            if let Some(back) = &ratios[other * nodes + node]
                && back.clone() * &bound <= N::one() + N::rounding()
            {
                return None;
            }
            changed = true;
            ratios[at] = Some(bound.clone());
            close(&mut ratios, nodes, node, other, &bound);
        }
        let mut weights = frame.weights.clone();
        if let Some(weight) = weights.get_mut(node) {
            *weight += self.problem.weight(user);
            changed = true;
        }
        // Each of the resources must bind some user.
        let unbound = weights.iter().filter(|w| w.is_zero()).count();
        if unbound >= self.problem.users() - user || changed && !self.is_consistent(&ratios, &weights) {
            return None;
        }
        Some(Frame { ratios, weights, next: 0 })
    }

    /// Returns whether levels within their bounds can satisfy the ratios.
    fn is_consistent(&self, ratios: &[Option<N>], weights: &[N]) -> bool {
        let margin = N::one() - N::rounding() * N::from_count(1000);
        for (q, highest) in (0..self.nodes).filter_map(|q| Some((q, self.upper_bound(q, weights)?))) {
            for p in 0..self.nodes {
                let reach = match &ratios[p * self.nodes + q] {
                    Some(ratio) => ratio.clone() * &highest,
                    None if p == q => highest.clone(),
                    None => continue,
                };
                if reach < self.lower_bounds[p].clone() * &margin {
                    return false;
                }
            }
        }
        true
    }

    /// Returns the upper bound of a node's level, if there is one yet.
    fn upper_bound(&self, node: usize, weights: &[N]) -> Option<N> {
        match weights.get(node) {
            Some(weight) => weight.is_positive().then(|| N::one() / weight),
            None => Some(N::one()),
        }
    }

    /// Adds the solution of a complete pattern, if its levels are in its cell and exceed no capacity.
    fn leaf(&self, bound: &[Binding], ratios: &[Option<N>], found: &mut BmfSolutions<N>) -> Option<()> {
        // Errors that count as 0, and errors that certainly do not.
        let (near, far) = (N::rounding() * N::from_count(10), N::rounding() * N::from_count(100_000));
        let Solved::Levels(mu) = solve(self.problem, bound) else {
            if !N::EXACT {
                return None;
            }
            if let Some(mu) = self.fairest_of_family(bound, ratios) {
                found.families += 1;
                found.points.push(tasks(self.problem, &mu));
            }
            return Some(());
        };
        if !mu.iter().flatten().all(N::is_positive) || !self.is_in_cell(&mu, ratios, &far) {
            return Some(());
        }
        // A user bound elsewhere than the pattern states has less than it states, so that a resource is not saturated.
        let point = tasks(self.problem, &mu);
        let mut error = N::zero();
        for (load, mu) in self.problem.loads(&point).into_iter().zip(&mu) {
            error = error.larger(load.clone() - N::one());
            if mu.is_some() {
                error = error.larger(N::one() - load);
            }
        }
        if error <= near {
            found.points.push(point);
        } else if error <= far {
            return None;
        }
        Some(())
    }

    /// Returns whether the levels satisfy the bounds on their ratios.
    fn is_in_cell(&self, mu: &[Option<N>], ratios: &[Option<N>], tolerance: &N) -> bool {
        let one = N::one();
        let level = |node: usize| match self.resources.get(node) {
            Some(j) => mu[*j].as_ref().unwrap_or(&one),
            None => &one,
        };
        let holds = |p: usize, q: usize| {
            let upper = ratios[p * self.nodes + q].as_ref();
            upper.is_none_or(|upper| level(p).clone() * (N::one() - tolerance) <= upper.clone() * level(q))
        };
        (0..self.nodes).all(|p| (0..self.nodes).all(|q| holds(p, q)))
    }

    /// Of infinitely many solutions of a pattern, returns the levels at which the worst-off user is best off, then the
    /// second worst-off, and so on; `None` if there are none.
    fn fairest_of_family(&self, bound: &[Binding], ratios: &[Option<N>]) -> Option<Vec<Option<N>>> {
        let size = self.resources.len();
        // Levels, and the smallest dominant share per weight of those that can still rise.
        let mut program = LinearProgram::new(size + 1);
        let unit = |at: usize, factor: N| {
            let mut row = vec![N::zero(); size + 1];
            row[at] = factor;
            row
        };
        let system = LevelEquations::new(self.problem, bound);
        for mut row in system.rows {
            let right = std::mem::replace(&mut row[size], N::zero());
            program.constrain(row, Relation::Equal, right);
        }
        for p in 0..size {
            program.constrain(unit(p, N::one()), Relation::AtLeast, self.lower_bounds[p].clone());
        }
        for p in 0..self.nodes {
            for q in 0..self.nodes {
                let Some(ratio) = &ratios[p * self.nodes + q] else { continue };
                let mut row = vec![N::zero(); size + 1];
                let mut right = N::zero();
                match p < size {
                    true => row[p] = N::one(),
                    false => right -= &N::one(),
                }
                match q < size {
                    true => row[q] -= ratio,
                    false => right += ratio,
                }
                program.constrain(row, Relation::AtMost, right);
            }
        }
        for r in (0..self.problem.resource_count()).filter(|r| !self.resources.contains(r)) {
            let (mut row, mut right) = (vec![N::zero(); size + 1], N::one());
            for (i, bound) in bound.iter().enumerate() {
                let demand = self.problem.demand(i);
                match bound.and_then(|k| self.resources.iter().position(|j| *j == k).map(|at| (at, k))) {
                    Some((at, k)) => row[at] += &(self.problem.weight(i).clone() * &demand[r] / &demand[k]),
                    None => right -= &(self.problem.limit(i)?.clone() * &demand[r]),
                }
            }
            program.constrain(row, Relation::AtMost, right);
        }
        // Smallest dominant share per weight of the users whom each resource binds, at a level of 1.
        let mut smallest: Vec<Option<N>> = vec![None; size];
        for (i, bound) in bound.iter().enumerate() {
            let Some(k) = bound else { continue };
            let at = self.resources.iter().position(|j| j == k)?;
            let share = self.problem.dominant_demand(i).clone() / &self.problem.demand(i)[*k];
            smallest[at] = Some(match smallest[at].take() {
                Some(smallest) => smallest.smaller(share),
                None => share,
            });
        }
        let smallest: Vec<N> = smallest.into_iter().collect::<Option<_>>()?;
        let mut rising: Vec<usize> = (0..size).collect();
        let mut point = Vec::new();
        while !rising.is_empty() {
            let mut round = program.clone();
            for at in &rising {
                let mut row = unit(*at, smallest[*at].clone());
                row[size] = -N::one();
                round.constrain(row, Relation::AtLeast, N::zero());
            }
            let mut worst = round.clone();
            worst.maximize(unit(size, N::one()));
            let Optimum::Found(best) = worst.solve() else { return None };
            let share = best[size].clone();
            round.constrain(unit(size, N::one()), Relation::Equal, share.clone());
            let mut stays = Vec::new();
            for at in &rising {
                let mut higher = round.clone();
                higher.maximize(unit(*at, N::one()));
                if let Optimum::Found(other) = higher.solve()
                    && other[*at].clone() * &smallest[*at] <= share
                {
                    stays.push(*at);
                }
            }
            if stays.is_empty() {
                return None;
            }
            for at in &stays {
                program.constrain(unit(*at, N::one()), Relation::Equal, share.clone() / &smallest[*at]);
            }
            rising.retain(|at| !stays.contains(at));
            point = best;
        }
        let mut mu = vec![None; self.problem.resource_count()];
        for (j, level) in self.resources.iter().zip(point) {
            mu[*j] = Some(level);
        }
        Some(mu)
    }
}

/// Lowers every bound that a path through p to q, whose ratio is now at most `bound`, makes lower.
fn close<N: Number>(ratios: &mut [Option<N>], nodes: usize, p: usize, q: usize, bound: &N) {
    for from in 0..nodes {
        let to_p = if from == p {
            N::one()
        } else {
            match &ratios[from * nodes + p] {
                Some(ratio) => ratio.clone(),
                None => continue,
            }
        };
        let to_q = to_p * bound;
        for to in (0..nodes).filter(|to| *to != from) {
            let whole = if to == q {
                to_q.clone()
            } else {
                match &ratios[q * nodes + to] {
                    Some(ratio) => to_q.clone() * ratio,
                    None => continue,
                }
            };
            let at = from * nodes + to;
            if ratios[at].as_ref().is_none_or(|ratio| whole < *ratio) {
                ratios[at] = Some(whole);
            }
        }
    }
}
