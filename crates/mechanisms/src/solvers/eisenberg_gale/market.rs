//! The market of the Eisenberg-Gale program: its buyers, what they buy at given prices, and the derivatives of that.

use super::{Equilibrium, residual};
use crate::Problem;

/// Users who take part, each counted in units of its dominant share, so that tiny and huge tasks are alike.
pub(super) struct Market {
    pub(super) width: usize,
    /// User-major; the largest demand of each user is 1.
    demands: Vec<f64>,
    /// Budget (entitlement) and limit of each.
    buyers: Vec<(f64, f64)>,
    /// Index of each in the problem.
    users: Vec<usize>,
    pub(super) budgets: f64,
    /// Softness of limits: for a user whose limit X binds as if a task cost it l more, l (X - x) = soft e. With 0 a
    /// limit has no effect before it is reached, and g has an edge there; with more, g is smooth.
    pub(super) soft: f64,
}

/// Users whose terms are summed before they are added to the rest: the error of a sum of n terms is then that of n /
/// BLOCK + BLOCK roundings instead of n.
const BLOCK: usize = 64;

impl Market {
    pub(super) fn new(problem: &Problem<f64>) -> Option<Market> {
        let width = problem.resource_count();
        let mut market =
            Market { width, demands: Vec::new(), buyers: Vec::new(), users: Vec::new(), budgets: 0.0, soft: 0.0 };
        for i in 0..problem.users() {
            let dominant = *problem.dominant_demand(i);
            let budget = problem.entitlement(i);
            let limit = problem.limit(i).map_or(f64::INFINITY, |limit| limit * dominant);
            if !budget.is_normal() || !(1.0 / dominant).is_finite() {
                return None;
            }
            if limit == 0.0 {
                continue;
            }
            market.users.push(i);
            market.buyers.push((budget, limit));
            market.demands.extend(problem.demand(i).iter().map(|d| d / dominant));
            market.budgets += budget;
        }
        Some(market)
    }

    fn rows(&self) -> impl Iterator<Item = (&[f64], &(f64, f64))> {
        self.demands.chunks_exact(self.width).zip(&self.buyers)
    }

    /// Sets the same price for every resource that some user demands; the prices sum to all budgets.
    pub(super) fn start(&self, prices: &mut [f64]) {
        prices.fill(0.0);
        for (row, _) in self.rows() {
            prices.iter_mut().zip(row).filter(|(_, d)| **d > 0.0).for_each(|(p, _)| *p = self.budgets);
        }
        let priced = prices.iter().filter(|p| **p > 0.0).count().max(1) as f64;
        prices.iter_mut().for_each(|p| *p /= priced);
    }

    /// Computes the load of each resource at these prices; returns whether all are finite.
    pub(super) fn loads(&self, prices: &[f64], loads: &mut [f64]) -> bool {
        loads.fill(0.0);
        let mut block = vec![0.0; self.width];
        let mut finite = true;
        for (rows, buyers) in self.demands.chunks(BLOCK * self.width).zip(self.buyers.chunks(BLOCK)) {
            block.fill(0.0);
            for (row, &(budget, limit)) in rows.chunks_exact(self.width).zip(buyers) {
                let (bought, _) = bought(budget, limit, cost(row, prices), self.soft);
                finite &= bought < f64::INFINITY;
                block.iter_mut().zip(row).for_each(|(load, d)| *load += bought * d);
            }
            loads.iter_mut().zip(&block).for_each(|(load, b)| *load += b);
        }
        finite
    }

    /// Computes the second derivatives of g: sum r_ij r_ik times the rate at which x_i falls with the cost of a task,
    /// which is x_i^2 / e_i or, for a user at a hard limit, 0. Lower triangle, row-major.
    pub(super) fn second_order(&self, prices: &[f64], curvature: &mut [f64]) {
        curvature.fill(0.0);
        for (row, &(budget, limit)) in self.rows() {
            let (_, fall) = bought(budget, limit, cost(row, prices), self.soft);
            if fall == 0.0 {
                continue;
            }
            let mut at = 0;
            for (j, d) in row.iter().enumerate() {
                let scaled = d * fall;
                for (h, other) in curvature[at..=at + j].iter_mut().zip(row) {
                    *h += scaled * other;
                }
                at += j + 1;
            }
        }
    }

    /// Returns what is bought at these prices, scaled down until it is feasible.
    pub(super) fn equilibrium(&self, problem: &Problem<f64>, prices: Vec<f64>, steps: usize) -> Option<Equilibrium> {
        let mut loads = vec![0.0; self.width];
        let finite = self.loads(&prices, &mut loads);
        let over = loads.iter().copied().fold(1.0, f64::max);
        let mut tasks = vec![0.0; problem.users()];
        for ((row, &(budget, limit)), &user) in self.rows().zip(&self.users) {
            let (bought, _) = bought(budget, limit, cost(row, &prices), self.soft);
            let all = problem.limit(user).filter(|_| bought == limit);
            tasks[user] = all.map_or_else(|| bought / problem.dominant_demand(user), |all| *all) / over;
        }
        if !finite || !tasks.iter().all(|x| x.is_finite()) {
            return None;
        }
        // g(p) - sum e_i log x_i with x_i = x_i(p) / over is sum_j p_j (1 - load_j) + sum_i e_i log over, plus soft e_i
        // for each user with a limit; the logarithm is at most over - 1. Then the rounding of all that.
        let spent: f64 = prices.iter().zip(&loads).map(|(p, load)| p * (1.0 - load)).sum();
        let roundings = (BLOCK + self.users.len() / BLOCK + 4 * self.width + 8) as f64;
        let money = self.budgets + prices.iter().zip(&loads).map(|(p, load)| p * load.max(1.0)).sum::<f64>();
        let duality_gap = spent.max(0.0) + self.budgets * (over - 1.0 + self.soft) + roundings * f64::EPSILON * money;
        Some(Equilibrium { tasks, residual: residual(&prices, &loads), prices, duality_gap, steps })
    }
}

/// Returns the cost of one task.
pub(super) fn cost(row: &[f64], prices: &[f64]) -> f64 {
    row.iter().zip(prices).map(|(d, p)| d * p).sum()
}

/// Returns how many tasks a user buys, and how fast that falls with the cost of a task. With limits of softness s: from
/// e/x = c + l and l (X - x) = s e, the root of c x^2 - (c X + e + s e) x + e X = 0 below X.
pub(super) fn bought(budget: f64, limit: f64, cost: f64, soft: f64) -> (f64, f64) {
    let free = budget / cost;
    if soft == 0.0 || limit == f64::INFINITY {
        return if free > limit { (limit, 0.0) } else { (free, free / cost) };
    }
    let (all, soft) = (cost * limit, soft * budget);
    let root = ((all - budget) * (all - budget) + soft * (soft + 2.0 * (all + budget))).sqrt();
    let bought = 2.0 * budget * limit / (all + budget + soft + root);
    // X - x is s e / l, where the difference itself would be all rounding.
    let left = if all > budget { limit - bought } else { soft / (budget / bought - cost) };
    (bought, bought * left.min(limit) / root)
}
