//! Linear programs, small and exact.
//!
//! The mechanisms that need one (`baa` for more than two resources: as many variables as resources;
//! `bbf`: a vertex of one pattern) need an exact answer and a deterministic one among several, which
//! the solvers in floating point do not give. This is the textbook method: a dense tableau, two phases,
//! Bland's rule, so that it ends even where many constraints meet in a point.

use crate::Number;

/// How a row is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// sum <= right side
    AtMost,
    /// sum >= right side
    AtLeast,
    /// sum = right side
    Equal,
}

/// Variables at least 0, linear rows, objectives to be maximised one after another.
///
/// ```
/// use evenhand_mechanisms::{Bound, LinearProgram, Optimum};
/// // x + y <= 1: the largest sum, and among those the largest y
/// let mut lp = LinearProgram::new(2);
/// lp.row([1.0, 1.0], Bound::AtMost, 1.0);
/// lp.maximise([1.0, 1.0]);
/// lp.maximise([0.0, 1.0]);
/// assert_eq!(lp.solve(), Optimum::Found(vec![0.0, 1.0]));
/// ```
#[derive(Clone, Debug)]
pub struct LinearProgram<N> {
    variables: usize,
    rows: Vec<(Vec<N>, Bound, N)>,
    objectives: Vec<Vec<N>>,
}

/// What there is to be found.
#[derive(Clone, Debug, PartialEq)]
pub enum Optimum<N> {
    /// A best point.
    Found(Vec<N>),
    /// No point satisfies every row.
    Infeasible,
    /// An objective grows for ever.
    Unbounded,
}

impl<N: Number> LinearProgram<N> {
    /// Over so many variables, with no row and no objective.
    pub fn new(variables: usize) -> LinearProgram<N> {
        LinearProgram { variables, rows: Vec::new(), objectives: Vec::new() }
    }

    /// Demands a row.
    pub fn row(&mut self, factors: impl Into<Vec<N>>, bound: Bound, right: N) {
        let factors = factors.into();
        assert_eq!(factors.len(), self.variables, "one factor a variable");
        self.rows.push((factors, bound, right));
    }

    /// Adds an objective: among the best points of the objectives before it, the best of this one.
    pub fn maximise(&mut self, factors: impl Into<Vec<N>>) {
        let factors = factors.into();
        assert_eq!(factors.len(), self.variables, "one factor a variable");
        self.objectives.push(factors);
    }

    /// A best point; the same one every time.
    pub fn solve(&self) -> Optimum<N> {
        let mut tableau = Tableau::new(self);
        let artificial: Vec<N> =
            (0..tableau.columns).map(|c| if c >= tableau.first_artificial { -N::one() } else { N::zero() }).collect();
        tableau.maximise(&artificial);
        if !tableau.artificials_are_gone() {
            return Optimum::Infeasible;
        }
        tableau.forbid_artificials();
        for objective in &self.objectives {
            let mut padded = objective.clone();
            padded.resize(tableau.columns, N::zero());
            match tableau.maximise(&padded) {
                Some(reduced) => tableau.forbid(&reduced),
                None => return Optimum::Unbounded,
            }
        }
        Optimum::Found(tableau.point(self.variables))
    }
}

/// Rows of factors and right side, each solved for its basic variable.
struct Tableau<N> {
    /// Each row with its right side at the end.
    rows: Vec<Vec<N>>,
    basis: Vec<usize>,
    columns: usize,
    first_artificial: usize,
    allowed: Vec<bool>,
}

impl<N: Number> Tableau<N> {
    fn new(lp: &LinearProgram<N>) -> Tableau<N> {
        let slacks = lp.rows.iter().filter(|(_, bound, _)| *bound != Bound::Equal).count();
        let first_artificial = lp.variables + slacks;
        // A row whose slack can start as basic needs no artificial variable.
        let positive: Vec<bool> = lp.rows.iter().map(|(_, _, right)| *right >= N::zero()).collect();
        let starts_with_slack = |bound: Bound, positive: bool| match bound {
            Bound::AtMost => positive,
            Bound::AtLeast => !positive,
            Bound::Equal => false,
        };
        let artificials =
            lp.rows.iter().zip(&positive).filter(|((_, bound, _), p)| !starts_with_slack(*bound, **p)).count();
        let columns = first_artificial + artificials;
        let (mut slack, mut artificial) = (lp.variables, first_artificial);
        let mut rows = Vec::with_capacity(lp.rows.len());
        let mut basis = Vec::with_capacity(lp.rows.len());
        for ((factors, bound, right), positive) in lp.rows.iter().zip(positive) {
            let mut row = factors.clone();
            row.resize(columns + 1, N::zero());
            row[columns] = right.clone();
            let own_slack = (*bound != Bound::Equal).then(|| {
                row[slack] = if *bound == Bound::AtMost { N::one() } else { -N::one() };
                slack += 1;
                slack - 1
            });
            if !positive {
                for value in &mut row {
                    *value = -value.clone();
                }
            }
            basis.push(match own_slack.filter(|_| starts_with_slack(*bound, positive)) {
                Some(own) => own,
                None => {
                    row[artificial] = N::one();
                    artificial += 1;
                    artificial - 1
                }
            });
            rows.push(row);
        }
        Tableau { rows, basis, columns, first_artificial, allowed: vec![true; columns] }
    }

    /// Moves to a best point by Bland's rule. Returns the reduced objective (0 for every column that can
    /// still move without loss, below 0 for the others), or `None` if there is no best point.
    fn maximise(&mut self, objective: &[N]) -> Option<Vec<N>> {
        let mut reduced = objective.to_vec();
        reduced.push(N::zero());
        for (row, &basic) in self.rows.iter().zip(&self.basis) {
            let factor = reduced[basic].clone();
            subtract(&mut reduced, row, &factor);
        }
        loop {
            let enters = (0..self.columns).find(|&c| self.allowed[c] && reduced[c] > N::slack());
            let Some(column) = enters else { return Some(reduced) };
            let mut leaves: Option<(usize, N)> = None;
            for (r, row) in self.rows.iter().enumerate() {
                if row[column] <= N::slack() {
                    continue;
                }
                let ratio = row[self.columns].clone() / &row[column];
                let sooner = match &leaves {
                    None => true,
                    Some((best, least)) => ratio < *least || (ratio == *least && self.basis[r] < self.basis[*best]),
                };
                if sooner {
                    leaves = Some((r, ratio));
                }
            }
            let (row, _) = leaves?;
            self.pivot(row, column);
            let factor = reduced[column].clone();
            subtract(&mut reduced, &self.rows[row], &factor);
            reduced[column] = N::zero();
        }
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let factor = self.rows[row][column].clone();
        for value in self.rows[row].iter_mut().filter(|v| !v.is_zero()) {
            *value = value.clone() / &factor;
        }
        self.rows[row][column] = N::one();
        let pivot_row = self.rows[row].clone();
        for (r, other) in self.rows.iter_mut().enumerate().filter(|(r, _)| *r != row) {
            debug_assert_ne!(r, row);
            let factor = other[column].clone();
            subtract(other, &pivot_row, &factor);
            other[column] = N::zero();
        }
        self.basis[row] = column;
    }

    /// Whether every artificial variable is 0, that is, whether the rows can all hold.
    fn artificials_are_gone(&self) -> bool {
        // Sums of hundreds of rounded terms: a thousand times the slack of one comparison.
        let slack = N::slack() * N::from_count(1000);
        let left = self.rows.iter().zip(&self.basis).filter(|(_, basic)| **basic >= self.first_artificial);
        left.into_iter().all(|(row, _)| row[self.columns] <= slack)
    }

    /// Takes artificial variables out of the basis where another can stand for them, and out of the game.
    fn forbid_artificials(&mut self) {
        for r in 0..self.rows.len() {
            if self.basis[r] >= self.first_artificial {
                let other = (0..self.first_artificial)
                    .find(|&c| self.rows[r][c] > N::slack() || -self.rows[r][c].clone() > N::slack());
                if let Some(column) = other {
                    self.pivot(r, column);
                }
            }
        }
        self.allowed[self.first_artificial..].fill(false);
    }

    /// Holds every column at 0 that cannot rise without loss.
    fn forbid(&mut self, reduced: &[N]) {
        for (allowed, value) in self.allowed.iter_mut().zip(reduced) {
            *allowed &= -value.clone() <= N::slack();
        }
    }

    fn point(&self, variables: usize) -> Vec<N> {
        let mut point = vec![N::zero(); variables];
        for (row, &basic) in self.rows.iter().zip(&self.basis).filter(|(_, basic)| **basic < variables) {
            point[basic] = row[self.columns].clone().or_more(N::zero());
        }
        point
    }
}

fn subtract<N: Number>(from: &mut [N], row: &[N], factor: &N) {
    if factor.is_zero() {
        return;
    }
    for (value, other) in from.iter_mut().zip(row) {
        if !other.is_zero() {
            *value -= &(other.clone() * factor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::Rational;

    fn q(n: i64, d: u64) -> Rational {
        Rational::from_parts(n.into(), d.into())
    }

    fn row(values: &[i64]) -> Vec<Rational> {
        values.iter().map(|v| q(*v, 1)).collect()
    }

    #[test]
    fn rows_of_all_kinds() {
        let mut lp = LinearProgram::new(2);
        lp.row(row(&[1, 2]), Bound::AtMost, q(4, 1));
        lp.row(row(&[3, 1]), Bound::AtMost, q(6, 1));
        lp.row(row(&[-1, -1]), Bound::AtMost, q(-1, 1));
        lp.maximise(row(&[1, 1]));
        assert_eq!(lp.solve(), Optimum::Found(vec![q(8, 5), q(6, 5)]));
        lp.row(row(&[1, -1]), Bound::Equal, q(0, 1));
        assert_eq!(lp.solve(), Optimum::Found(vec![q(4, 3), q(4, 3)]));
        lp.row(row(&[1, 0]), Bound::AtLeast, q(2, 1));
        assert_eq!(lp.solve(), Optimum::Infeasible);
    }

    #[test]
    fn what_grows_for_ever_and_what_is_said_twice() {
        let mut lp = LinearProgram::new(2);
        lp.maximise(row(&[1, 0]));
        assert_eq!(lp.solve(), Optimum::Unbounded);
        for _ in 0..2 {
            lp.row(row(&[1, 1]), Bound::Equal, q(1, 1));
        }
        lp.maximise(row(&[0, 1]));
        assert_eq!(lp.solve(), Optimum::Found(vec![q(1, 1), q(0, 1)]));
    }

    /// Beale's example, on which the simplex method without Bland's rule goes round in a circle.
    #[test]
    fn it_ends_where_constraints_meet() {
        let mut lp = LinearProgram::new(4);
        lp.row(vec![q(1, 4), q(-60, 1), q(-1, 25), q(9, 1)], Bound::AtMost, q(0, 1));
        lp.row(vec![q(1, 2), q(-90, 1), q(-1, 50), q(3, 1)], Bound::AtMost, q(0, 1));
        lp.row(row(&[0, 0, 1, 0]), Bound::AtMost, q(1, 1));
        lp.maximise(vec![q(3, 4), q(-150, 1), q(1, 50), q(-6, 1)]);
        assert_eq!(lp.solve(), Optimum::Found(vec![q(1, 25), q(0, 1), q(1, 1), q(0, 1)]));
    }
}
