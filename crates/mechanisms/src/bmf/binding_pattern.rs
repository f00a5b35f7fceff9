//! Binding patterns: which resource binds each user, and the levels that follow.

use crate::{Number, Problem};

/// Resource that binds a user; `None` for a user who has all it wants.
pub(super) type Binding = Option<usize>;

/// Solution of a pattern's equations.
pub(super) enum Solved<N> {
    /// One level for each resource that binds a user; `None` for the others.
    Levels(Vec<Option<N>>),
    /// The equations are not independent: several levels or none satisfy them.
    Singular,
}

/// Returns the tasks of each user at these levels: x_i = min(X_i, min_j w_i mu_j / d_ij). `None` is infinite.
pub(super) fn tasks<N: Number>(problem: &Problem<N>, mu: &[Option<N>]) -> Vec<N> {
    (0..problem.users()).map(|i| binding(problem, mu, i).1).collect()
}

/// Returns what binds each user at these levels; the first resource of several, a limit before resources.
pub(super) fn bound_by<N: Number>(problem: &Problem<N>, mu: &[Option<N>]) -> Vec<Binding> {
    (0..problem.users()).map(|i| binding(problem, mu, i).0).collect()
}

fn binding<N: Number>(problem: &Problem<N>, mu: &[Option<N>], user: usize) -> (Binding, N) {
    let mut smallest = problem.limit(user).map(|limit| (None, limit.clone()));
    for (j, d) in problem.demand(user).iter().enumerate().filter(|(_, d)| !d.is_zero()) {
        let Some(mu) = &mu[j] else { continue };
        let tasks = problem.weight(user).clone() * mu / d;
        if smallest.as_ref().is_none_or(|(_, smallest)| tasks < *smallest) {
            smallest = Some((Some(j), tasks));
        }
    }
    smallest.unwrap_or_else(|| (None, N::zero()))
}

/// Returns the levels that saturate every binding resource if users are bound as `bound` describes: the sum over k of
/// mu_k * (sum over the users i bound by k of w_i d_ij / d_ik) equals what the satisfied users leave of resource j.
pub(super) fn solve<N: Number>(problem: &Problem<N>, bound: &[Binding]) -> Solved<N> {
    let system = LevelEquations::new(problem, bound);
    match eliminate(system.rows) {
        Some(solution) => {
            let mut mu = vec![None; problem.resource_count()];
            for (j, level) in system.resources.into_iter().zip(solution) {
                mu[j] = Some(level);
            }
            Solved::Levels(mu)
        }
        None => Solved::Singular,
    }
}

/// One equation for each resource that binds a user, in the levels of these resources, with the right side at the end.
pub(super) struct LevelEquations<N> {
    pub(super) resources: Vec<usize>,
    pub(super) rows: Vec<Vec<N>>,
}

impl<N: Number> LevelEquations<N> {
    pub(super) fn new(problem: &Problem<N>, bound: &[Binding]) -> LevelEquations<N> {
        let width = problem.resource_count();
        let mut place = vec![None; width];
        for j in bound.iter().flatten() {
            place[*j] = Some(0);
        }
        let resources: Vec<usize> = (0..width).filter(|j| place[*j].is_some()).collect();
        let size = resources.len();
        for (at, j) in resources.iter().enumerate() {
            place[*j] = Some(at);
        }
        // Use of each user at a level of 1 (or of the satisfied users), summed pairwise: exact fractions then stay
        // short for longer.
        let mut sums = PairwiseSums::new(size * (size + 1));
        for (i, bound) in bound.iter().enumerate() {
            let (column, per_level) = match bound {
                Some(k) => (place[*k].unwrap_or(size), problem.weight(i).clone() / &problem.demand(i)[*k]),
                None => (size, problem.limit(i).cloned().unwrap_or_else(N::zero)),
            };
            for (at, j) in resources.iter().enumerate() {
                let d = &problem.demand(i)[*j];
                if !d.is_zero() {
                    sums.add(at * (size + 1) + column, per_level.clone() * d);
                }
            }
        }
        let total = sums.total();
        let rows = total.chunks_exact(size + 1).map(|row| {
            let mut row = row.to_vec();
            row[size] = N::one() - &row[size];
            row
        });
        LevelEquations { rows: rows.collect(), resources }
    }
}

/// Sums of numbers of similar size: each slot is a binary counter of partial sums.
struct PairwiseSums<N> {
    slots: Vec<Vec<Option<N>>>,
}

impl<N: Number> PairwiseSums<N> {
    fn new(slots: usize) -> PairwiseSums<N> {
        PairwiseSums { slots: vec![vec![None]; slots] }
    }

    fn add(&mut self, slot: usize, value: N) {
        let slot = &mut self.slots[slot];
        if !N::EXACT {
            slot[0] = Some(slot[0].take().map_or(value.clone(), |sum| sum + value));
            return;
        }
        let mut carried = value;
        for part in slot.iter_mut() {
            match part.take() {
                Some(sum) => carried = sum + carried,
                None => {
                    *part = Some(carried);
                    return;
                }
            }
        }
        slot.push(Some(carried));
    }

    fn total(self) -> Vec<N> {
        self.slots.into_iter().map(|parts| parts.into_iter().flatten().fold(N::zero(), |a, b| a + b)).collect()
    }
}

/// Solves a square linear system, given with its right side, by Gaussian elimination with partial pivoting; `None` if
/// it is singular, or so nearly that rounding would decide.
pub(super) fn eliminate<N: Number>(mut rows: Vec<Vec<N>>) -> Option<Vec<N>> {
    let size = rows.len();
    let magnitude = |n: &N| if *n < N::zero() { -n.clone() } else { n.clone() };
    // A thousand times the rounding of one number: the residue of a row after subtracting others.
    let threshold = N::rounding() * N::from_count(1000);
    // The coefficients of a column have the size of the weights bound there, so each is compared with its own column.
    let scale: Vec<N> =
        (0..size).map(|c| rows.iter().map(|row| magnitude(&row[c])).fold(N::zero(), N::larger)).collect();
    for step in 0..size {
        let mut best = step;
        for r in step + 1..size {
            if magnitude(&rows[r][step]) > magnitude(&rows[best][step]) {
                best = r;
            }
        }
        if magnitude(&rows[best][step]) <= scale[step].clone() * &threshold {
            return None;
        }
        rows.swap(step, best);
        let (done, rest) = rows.split_at_mut(step + 1);
        let pivot = &done[step];
        for row in rest.iter_mut().filter(|row| !row[step].is_zero()) {
            let factor = row[step].clone() / &pivot[step];
            for (value, other) in row[step..].iter_mut().zip(&pivot[step..]).filter(|(_, o)| !o.is_zero()) {
                *value -= &(other.clone() * &factor);
            }
        }
    }
    let mut solution = vec![N::zero(); size];
    for r in (0..size).rev() {
        let mut value = rows[r][size].clone();
        for c in r + 1..size {
            value -= &(rows[r][c].clone() * &solution[c]);
        }
        solution[r] = value / &rows[r][r];
    }
    Some(solution)
}
