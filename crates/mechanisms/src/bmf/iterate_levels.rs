//! Levels by iteration, in `f64`: multiplicative passes that converge slowly from anywhere, then active sets that
//! converge in a few steps from nearby.

use crate::{MechanismError, Problem};

use super::binding_pattern::eliminate;

/// Largest distance from 1 of the load of a binding resource, and largest excess of any load over 1: above the rounding
/// of sums over a million users, and a hundredth of the tolerance that answers are checked with.
const FULL: f64 = 1e-11;
/// Rounds of passes and active sets before giving up.
const ROUNDS: usize = 96;
/// Rounds from each start.
const ROUNDS_PER_START: usize = 4;
/// Passes, and at most so many active sets, in a round.
const PASSES: usize = 40;
const ACTIVE_SETS: usize = 24;

/// Returns levels that saturate every binding resource; `None` for the others.
pub(super) fn levels(problem: &Problem<f64>) -> Result<Vec<Option<f64>>, MechanismError> {
    let users = Users::new(problem);
    let mut mu = users.start(0);
    let mut halvings = 1;
    for round in 0..ROUNDS {
        if round > 0 && round % ROUNDS_PER_START == 0 {
            mu = users.start(round / ROUNDS_PER_START);
            halvings = 1;
        }
        for _ in 0..PASSES {
            let measured = users.measure(&mu);
            if let Some(done) = measured.converged(&mu) {
                return Ok(done);
            }
            measured.pass(&mut mu, halvings);
        }
        if let Some(done) = active_sets(&users, mu.clone()) {
            return Ok(done);
        }
        halvings += 1;
    }
    let why =
        format!("{ROUNDS} rounds of {PASSES} passes and {ACTIVE_SETS} active sets did not saturate the resources");
    Err(MechanismError::NotCertified { mechanism: "bmf", why })
}

/// Repeatedly solves for the levels at which the users whom each resource binds now would saturate it. A level changes
/// by at most a factor of four in a step: a resource that binds few users may ask for anything.
fn active_sets(users: &Users, mut mu: Vec<f64>) -> Option<Vec<Option<f64>>> {
    for _ in 0..ACTIVE_SETS {
        let measured = users.measure(&mu);
        if let Some(done) = measured.converged(&mu) {
            return Some(done);
        }
        let next = measured.solved()?;
        for (j, (mu, next)) in mu.iter_mut().zip(next).enumerate() {
            match next {
                Some(next) => *mu = next.max(*mu / 4.0).min(*mu * 4.0),
                None if measured.loads[j] > 1.0 => *mu = measured.largest[j] / measured.loads[j],
                None => {}
            }
        }
    }
    None
}

/// Problem in the form that the iteration reads.
struct Users<'a> {
    problem: &'a Problem<f64>,
    /// w_i / d_ij, the tasks of user i at a level of 1; infinite for no demand. User-major.
    per_level: Vec<f64>,
    limits: Vec<f64>,
    /// 1 / (sum of the weights of all users who demand j); 1 if there are none.
    first: Vec<f64>,
}

impl<'a> Users<'a> {
    fn new(problem: &'a Problem<f64>) -> Users<'a> {
        let (n, m) = (problem.users(), problem.resource_count());
        let mut per_level = Vec::with_capacity(n * m);
        let mut demanded = vec![0.0; m];
        for i in 0..n {
            let weight = *problem.weight(i);
            for (d, demanded) in problem.demand(i).iter().zip(&mut demanded) {
                per_level.push(if *d > 0.0 { weight / d } else { f64::INFINITY });
                *demanded += if *d > 0.0 { weight } else { 0.0 };
            }
        }
        let limits = (0..n).map(|i| problem.limit(i).copied().unwrap_or(f64::INFINITY)).collect();
        let first = demanded.into_iter().map(|w| if w > 0.0 { 1.0 / w } else { 1.0 }).collect();
        Users { problem, per_level, limits, first }
    }

    /// Returns the levels to start from: `first` at the first attempt, then up to twice that, spread by the golden
    /// ratio.
    fn start(&self, attempt: usize) -> Vec<f64> {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let spread = |j: usize| if attempt == 0 { 1.0 } else { 1.0 + (GOLDEN * (attempt * (j + 1)) as f64).fract() };
        self.first.iter().enumerate().map(|(j, mu)| mu * spread(j)).collect()
    }

    /// Computes loads and binding resources at these levels.
    fn measure(&self, mu: &[f64]) -> Measured {
        let m = mu.len();
        let mut used = vec![0.0; (m + 1) * m];
        let mut binds = vec![false; m + 1];
        let mut largest = vec![0.0_f64; m];
        for (i, (per_level, limit)) in self.per_level.chunks_exact(m).zip(&self.limits).enumerate() {
            let demand = self.problem.demand(i);
            let (mut tasks, mut by) = (*limit, m);
            for (j, (mu, per_level)) in mu.iter().zip(per_level).enumerate() {
                let at = mu * per_level;
                if at < tasks {
                    (tasks, by) = (at, j);
                }
            }
            binds[by] = true;
            let rate = if by < m { per_level[by] } else { *limit };
            for (used, d) in used[by * m..][..m].iter_mut().zip(demand) {
                *used += d * rate;
            }
        }
        let column = |k: usize| &used[k * m..][..m];
        let mut loads = column(m).to_vec();
        for (k, mu) in mu.iter().enumerate().filter(|(k, _)| binds[*k]) {
            for (load, used) in loads.iter_mut().zip(column(k)) {
                *load += used * mu;
            }
        }
        for (j, largest) in largest.iter_mut().enumerate().filter(|(j, _)| !binds[*j] && loads[*j] > 1.0) {
            *largest = self.largest(mu, j);
        }
        Measured { used, binds, loads, largest }
    }

    /// Returns the largest share per weight of resource j.
    fn largest(&self, mu: &[f64], j: usize) -> f64 {
        let m = mu.len();
        let mut largest = 0.0_f64;
        for (per_level, limit) in self.per_level.chunks_exact(m).zip(&self.limits) {
            let tasks = mu.iter().zip(per_level).fold(*limit, |tasks, (mu, per_level)| tasks.min(mu * per_level));
            largest = largest.max(tasks / per_level[j]);
        }
        largest
    }
}

/// Loads and binding resources at some levels.
struct Measured {
    /// For each resource k, the use of each resource at a level of 1 by the users that k binds; then the use of the
    /// satisfied users.
    used: Vec<f64>,
    /// Whether each resource binds a user; then whether any user is satisfied.
    binds: Vec<bool>,
    loads: Vec<f64>,
    /// Largest share per weight of each overloaded resource that binds no user; else 0.
    largest: Vec<f64>,
}

impl Measured {
    /// Returns the levels if they solve the problem.
    fn converged(&self, mu: &[f64]) -> Option<Vec<Option<f64>>> {
        let good = |(j, load): (usize, &f64)| *load <= 1.0 + FULL && (!self.binds[j] || *load >= 1.0 - FULL);
        let all = self.loads.iter().enumerate().all(good);
        all.then(|| mu.iter().zip(&self.binds).map(|(mu, binds)| binds.then_some(*mu)).collect())
    }

    /// Sets mu_j <- mu_j / load_j^eta, with eta = 2^-halvings: square roots have the same bits on every platform. A
    /// resource that binds no user and is not overloaded keeps its level: the level has no effect, and must not drift
    /// from where it may be needed.
    fn pass(&self, mu: &mut [f64], halvings: u32) {
        for (j, mu) in mu.iter_mut().enumerate() {
            let root = (0..halvings).fold(self.loads[j], |root, _| root.sqrt());
            if self.binds[j] {
                *mu /= root;
            } else if self.loads[j] > 1.0 {
                *mu = self.largest[j] / root;
            }
        }
    }

    /// Returns the levels at which the users bound now would saturate what binds them; `None` within for resources that
    /// bind no user, and `None` as a whole if the equations depend on each other.
    fn solved(&self) -> Option<Vec<Option<f64>>> {
        let m = self.loads.len();
        let binding: Vec<usize> = (0..m).filter(|j| self.binds[*j]).collect();
        let row = |j: &usize| {
            let mut row: Vec<f64> = binding.iter().map(|k| self.used[k * m + j]).collect();
            row.push(1.0 - self.used[m * m + j]);
            row
        };
        let solution = eliminate(binding.iter().map(row).collect())?;
        let mut next = vec![None; m];
        for (j, level) in binding.into_iter().zip(solution) {
            next[j] = Some(level);
        }
        Some(next)
    }
}
