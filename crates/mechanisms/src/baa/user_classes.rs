//! Classes of users by dominant resource, summed up.

use evenhand_model::Rational;

use crate::{Number, Problem};

/// Sums over the users of each class. The row of class b has `1 + 2 m` numbers: the sum of weights; for each resource,
/// the load at a level of 1; and for each resource, the largest share per weight that one user then has. The row of a
/// class without users is all zeros.
#[derive(Clone, Debug)]
pub(super) struct ClassSums<N> {
    width: usize,
    rows: Vec<Vec<N>>,
}

impl<N: Number> ClassSums<N> {
    /// Converts to exact numbers; `None` if one is not finite.
    pub(super) fn exact(&self) -> Option<ClassSums<Rational>> {
        let row = |row: &Vec<N>| row.iter().map(N::to_exact).collect::<Option<Vec<Rational>>>();
        Some(ClassSums { width: self.width, rows: self.rows.iter().map(row).collect::<Option<_>>()? })
    }

    /// Returns the sum of the weights of class b.
    pub(super) fn weight(&self, b: usize) -> &N {
        &self.rows[b][0]
    }

    /// Returns whether class b has a user.
    pub(super) fn has_users(&self, b: usize) -> bool {
        self.rows[b][0].is_positive()
    }

    /// Returns whether no class has a user.
    pub(super) fn is_empty(&self) -> bool {
        (0..self.width).all(|b| !self.has_users(b))
    }

    /// Returns the load of resource r at a level of 1 for class b.
    pub(super) fn load(&self, r: usize, b: usize) -> &N {
        &self.rows[b][1 + r]
    }

    /// Returns the largest share per weight of resource r that one user of class b has at a level of 1.
    pub(super) fn largest_share(&self, r: usize, b: usize) -> &N {
        &self.rows[b][1 + self.width + r]
    }
}

/// Users of each class, in the order in which rising levels satisfy them.
///
/// The sums over the users that remain are kept for every position of a queue and computed from its end: subtracting
/// the satisfied users from the whole would leave rounding errors where little remains.
#[derive(Debug)]
pub(super) struct ClassQueues<N> {
    width: usize,
    dominant: Vec<u32>,
    /// For each class, the users with limits and the level that satisfies each, by level (ties: by number).
    limited: Vec<Vec<(u32, N)>>,
    /// For each class, a row of [`ClassSums`] for each position in `limited` and for its end.
    remaining: Vec<Vec<N>>,
    next: Vec<usize>,
}

impl<N: Number> ClassQueues<N> {
    pub(super) fn new(problem: &Problem<N>) -> ClassQueues<N> {
        let (n, width) = (problem.users(), problem.resource_count());
        let row = 1 + 2 * width;
        let dominant: Vec<u32> = (0..n).map(|i| problem.dominant_resource(i) as u32).collect();
        let mut limited: Vec<Vec<(u32, N)>> = vec![Vec::new(); width];
        let mut ends = vec![vec![N::zero(); row]; width];
        for (i, b) in dominant.iter().map(|b| *b as usize).enumerate() {
            match problem.limit(i) {
                Some(limit) => {
                    let satisfied_at = limit.clone() * &problem.demand(i)[b] / problem.weight(i);
                    limited[b].push((i as u32, satisfied_at));
                }
                None => add(problem, i, b, &mut ends[b]),
            }
        }
        let mut remaining = Vec::with_capacity(width);
        for (b, (queue, mut total)) in limited.iter_mut().zip(ends).enumerate() {
            queue.sort_unstable_by(|a, b| a.1.compare(&b.1).then(a.0.cmp(&b.0)));
            let mut rows = vec![N::zero(); (queue.len() + 1) * row];
            rows[queue.len() * row..].clone_from_slice(&total);
            for (position, (i, _)) in queue.iter().enumerate().rev() {
                add(problem, *i as usize, b, &mut total);
                rows[position * row..][..row].clone_from_slice(&total);
            }
            remaining.push(rows);
        }
        ClassQueues { width, dominant, limited, remaining, next: vec![0; width] }
    }

    /// Returns the sum of the weights of all users who are not satisfied.
    pub(super) fn weight_sum(&self) -> N {
        let classes = self.classes();
        (0..self.width).fold(N::zero(), |sum, b| sum + classes.weight(b))
    }

    /// Returns the sums over the users who are not satisfied.
    pub(super) fn classes(&self) -> ClassSums<N> {
        let row = 1 + 2 * self.width;
        let rows = self.remaining.iter().zip(&self.next).map(|(rows, next)| rows[next * row..][..row].to_vec());
        ClassSums { width: self.width, rows: rows.collect() }
    }

    /// Removes the users whom these levels satisfy and adds their use to `used`; returns whether there were any.
    pub(super) fn satisfy(&mut self, problem: &Problem<N>, levels: &[N], used: &mut [N]) -> bool {
        let mut any = false;
        for ((queue, next), level) in self.limited.iter().zip(&mut self.next).zip(levels) {
            while let Some((i, at)) = queue.get(*next)
                && at <= level
            {
                let user = *i as usize;
                if let Some(limit) = problem.limit(user) {
                    for (used, d) in used.iter_mut().zip(problem.demand(user)).filter(|(_, d)| !d.is_zero()) {
                        *used += &(limit.clone() * d);
                    }
                }
                *next += 1;
                any = true;
            }
        }
        any
    }

    /// Returns the tasks of all users: the limits of the satisfied ones, and what the levels give the others.
    pub(super) fn tasks(&self, problem: &Problem<N>, levels: &[N]) -> Vec<N> {
        let at_level = |(i, b): (usize, &u32)| {
            let b = *b as usize;
            problem.weight(i).clone() * &levels[b] / &problem.demand(i)[b]
        };
        let mut tasks: Vec<N> = self.dominant.iter().enumerate().map(at_level).collect();
        for (queue, next) in self.limited.iter().zip(&self.next) {
            for (i, _) in &queue[..*next] {
                if let Some(limit) = problem.limit(*i as usize) {
                    tasks[*i as usize] = limit.clone();
                }
            }
        }
        tasks
    }
}

/// Adds a user of class b to the class's row.
fn add<N: Number>(problem: &Problem<N>, user: usize, b: usize, row: &mut [N]) {
    let (weight, demand) = (problem.weight(user), problem.demand(user));
    row[0] += weight;
    let (loads, largest) = row[1..].split_at_mut(demand.len());
    for ((load, largest), d) in loads.iter_mut().zip(largest).zip(demand).filter(|(_, d)| !d.is_zero()) {
        let share = d.clone() / &demand[b];
        *load += &(share.clone() * weight);
        if share > *largest {
            *largest = share;
        }
    }
}
