//! Who is bound by what, and the levels that follow.

use crate::{Number, Problem};

/// The resource that binds a user; `None` for one who has all he wants.
pub(super) type Binding = Option<usize>;

/// What a pattern says about the levels.
pub(super) enum Solved<N> {
    /// One level for each resource that binds somebody; `None` for the others.
    Levels(Vec<Option<N>>),
    /// Several levels or none fit: the resources' equations are not independent.
    Singular,
}

/// The tasks each user has at these levels: x_i = min(X_i, min_j w_i mu_j / d_ij). `None` is infinite.
pub(super) fn tasks<N: Number>(problem: &Problem<N>, mu: &[Option<N>]) -> Vec<N> {
    (0..problem.users()).map(|i| binding(problem, mu, i).1).collect()
}

/// What binds each user at these levels; the first resource of several, a limit before resources.
pub(super) fn bound_by<N: Number>(problem: &Problem<N>, mu: &[Option<N>]) -> Vec<Binding> {
    (0..problem.users()).map(|i| binding(problem, mu, i).0).collect()
}

fn binding<N: Number>(problem: &Problem<N>, mu: &[Option<N>], user: usize) -> (Binding, N) {
    let mut least = problem.limit(user).map(|limit| (None, limit.clone()));
    for (j, d) in problem.demand(user).iter().enumerate().filter(|(_, d)| !d.is_zero()) {
        let Some(mu) = &mu[j] else { continue };
        let tasks = problem.weight(user).clone() * mu / d;
        if least.as_ref().is_none_or(|(_, least)| tasks < *least) {
            least = Some((Some(j), tasks));
        }
    }
    least.unwrap_or_else(|| (None, N::zero()))
}

/// The levels at which every resource that binds somebody is full, if users are bound as `bound` says:
/// the sum over k of mu_k * (sum over the users i bound by k of w_i d_ij / d_ik) is what the satisfied leave.
pub(super) fn solve<N: Number>(problem: &Problem<N>, bound: &[Binding]) -> Solved<N> {
    let system = System::new(problem, bound);
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

/// One equation for each resource that binds somebody, in their levels, with the right side at the end.
pub(super) struct System<N> {
    pub(super) resources: Vec<usize>,
    pub(super) rows: Vec<Vec<N>>,
}

impl<N: Number> System<N> {
    pub(super) fn new(problem: &Problem<N>, bound: &[Binding]) -> System<N> {
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
        // What each user takes at a level of 1 (or what the satisfied take), summed in halves: exact
        // fractions stay short for longer.
        let mut sums = Sums::new(size * (size + 1));
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
        System { rows: rows.collect(), resources }
    }
}

/// Sums that add numbers of like size: each slot is a binary counter of partial sums.
struct Sums<N> {
    slots: Vec<Vec<Option<N>>>,
}

impl<N: Number> Sums<N> {
    fn new(slots: usize) -> Sums<N> {
        Sums { slots: vec![vec![None]; slots] }
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

/// Solves a square system given with its right side; `None` if it is singular, or so near that rounding
/// would decide.
pub(super) fn eliminate<N: Number>(mut rows: Vec<Vec<N>>) -> Option<Vec<N>> {
    let size = rows.len();
    let magnitude = |n: &N| if *n < N::zero() { -n.clone() } else { n.clone() };
    // A thousand times what counts as equal: what is left of a row after subtracting others.
    let least = N::rounding() * N::from_count(1000);
    // The factors of a column are of the size of the weights bound there, so each counts against its own.
    let scale: Vec<N> =
        (0..size).map(|c| rows.iter().map(|row| magnitude(&row[c])).fold(N::zero(), N::larger)).collect();
    for step in 0..size {
        let mut best = step;
        for r in step + 1..size {
            if magnitude(&rows[r][step]) > magnitude(&rows[best][step]) {
                best = r;
            }
        }
        if magnitude(&rows[best][step]) <= scale[step].clone() * &least {
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
