//! Linear programs, small and exact.
//!
//! The mechanisms that need them (`baa` for more than two resources: as many variables as resources; `bbf`: a vertex of
//! one pattern) need an exact answer, and a deterministic one among several, which floating-point solvers do not give.
//! This is the textbook method: a dense tableau, two phases, and Bland's rule, which guarantees termination under
//! degeneracy. A variable at its upper bound is replaced by its distance from that bound, so that every non-basic
//! variable is 0.

use crate::Number;

/// Relation of a constraint's left side to its right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// sum <= right side
    AtMost,
    /// sum >= right side
    AtLeast,
    /// sum = right side
    Equal,
}

/// Linear program over non-negative variables, with objectives that are maximized one after another
/// (lexicographically).
///
/// ```
/// use evenhand_mechanisms::{LinearProgram, Optimum, Relation};
/// // x + y <= 1: the largest sum, and among those the largest y
/// let mut program = LinearProgram::new(2);
/// program.constrain([1.0, 1.0], Relation::AtMost, 1.0);
/// program.maximize([1.0, 1.0]);
/// program.maximize([0.0, 1.0]);
/// assert_eq!(program.solve(), Optimum::Found(vec![0.0, 1.0]));
/// ```
#[derive(Clone, Debug)]
pub struct LinearProgram<N> {
    variables: usize,
    upper: Vec<Option<N>>,
    rows: Vec<(Vec<N>, Relation, N)>,
    objectives: Vec<Vec<N>>,
    each: bool,
}

/// Result of a linear program.
#[derive(Clone, Debug, PartialEq)]
pub enum Optimum<N> {
    /// An optimal point.
    Found(Vec<N>),
    /// No point satisfies every constraint.
    Infeasible,
    /// An objective is unbounded.
    Unbounded,
}

impl<N: Number> LinearProgram<N> {
    /// Creates a program over so many variables, without constraints and objectives.
    pub fn new(variables: usize) -> LinearProgram<N> {
        LinearProgram { variables, upper: vec![None; variables], rows: Vec::new(), objectives: Vec::new(), each: false }
    }

    /// Adds a linear constraint, `factors · x` in `relation` to `right`.
    ///
    /// # Panics
    /// Panics unless there is one factor per variable.
    pub fn constrain(&mut self, factors: impl Into<Vec<N>>, bound: Relation, right: N) {
        let factors = factors.into();
        assert_eq!(factors.len(), self.variables, "one factor a variable");
        self.rows.push((factors, bound, right));
    }

    /// Bounds a variable above by `upper`, which must be at least 0. Cheaper than a constraint: the tableau does not
    /// grow.
    ///
    /// # Panics
    /// Panics if there is no such variable.
    pub fn bound_above(&mut self, variable: usize, upper: N) {
        let tighter = match self.upper[variable].take() {
            Some(bound) => bound.smaller(upper),
            None => upper,
        };
        self.upper[variable] = Some(tighter);
    }

    /// Adds an objective: among the optimal points of the objectives before it, those that maximize this one.
    ///
    /// # Panics
    /// Panics unless there is one factor per variable.
    pub fn maximize(&mut self, factors: impl Into<Vec<N>>) {
        let factors = factors.into();
        assert_eq!(factors.len(), self.variables, "one factor a variable");
        self.objectives.push(factors);
    }

    /// Adds each variable as an objective, one after another, after all other objectives.
    pub fn maximize_each_variable(&mut self) {
        self.each = true;
    }

    /// Returns an optimal point: the same one every time. Each pivot takes O(constraints × (variables + constraints));
    /// the number of pivots is exponential in the worst case and small in practice.
    pub fn solve(&self) -> Optimum<N> {
        let mut tableau = Tableau::new(self);
        let artificial: Vec<N> =
            (0..tableau.columns).map(|c| if c >= tableau.first_artificial { -N::one() } else { N::zero() }).collect();
        tableau.maximize(&artificial);
        if !tableau.artificials_are_gone() {
            return Optimum::Infeasible;
        }
        tableau.forbid_artificials();
        let unit = |v| {
            let mut objective = vec![N::zero(); self.variables];
            objective[v] = N::one();
            objective
        };
        let each = if self.each { self.variables } else { 0 };
        for mut objective in self.objectives.iter().cloned().chain((0..each).map(unit)) {
            if tableau.is_a_point() {
                break;
            }
            objective.resize(tableau.columns, N::zero());
            match tableau.maximize(&objective) {
                Some(reduced) => tableau.forbid(&reduced),
                None => return Optimum::Unbounded,
            }
        }
        Optimum::Found(tableau.point(self.variables))
    }
}

/// Coefficients and right sides, each row solved for its basic variable.
struct Tableau<N> {
    /// Each row with its right side at the end.
    rows: Vec<Vec<N>>,
    basis: Vec<usize>,
    columns: usize,
    first_artificial: usize,
    allowed: Vec<bool>,
    /// Upper bound of each column, and whether the column stands for the distance from it.
    upper: Vec<Option<N>>,
    turned: Vec<bool>,
}

/// What ends the rise of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Its own upper bound.
    UpperBound,
    /// The basic variable of a row falls to 0.
    Falls(usize),
    /// The basic variable of a row rises to its upper bound.
    Rises(usize),
}

impl<N: Number> Tableau<N> {
    fn new(lp: &LinearProgram<N>) -> Tableau<N> {
        let slacks = lp.rows.iter().filter(|(_, bound, _)| *bound != Relation::Equal).count();
        let first_artificial = lp.variables + slacks;
        // A row whose slack can start as basic variable needs no artificial variable.
        let positive: Vec<bool> = lp.rows.iter().map(|(_, _, right)| *right >= N::zero()).collect();
        let starts_with_slack = |bound: Relation, positive: bool| match bound {
            Relation::AtMost => positive,
            Relation::AtLeast => !positive,
            Relation::Equal => false,
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
            let own_slack = (*bound != Relation::Equal).then(|| {
                row[slack] = if *bound == Relation::AtMost { N::one() } else { -N::one() };
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
        let mut upper = lp.upper.clone();
        upper.resize(columns, None);
        let (allowed, turned) = (vec![true; columns], vec![false; columns]);
        Tableau { rows, basis, columns, first_artificial, allowed, upper, turned }
    }

    /// Moves to an optimal point by Bland's rule. Returns the reduced objective (0 for columns that can still change
    /// without loss, below 0 for the others), or `None` if the objective is unbounded.
    fn maximize(&mut self, objective: &[N]) -> Option<Vec<N>> {
        let mut reduced = objective.to_vec();
        reduced.push(N::zero());
        for (value, _) in reduced.iter_mut().zip(&self.turned).filter(|(_, turned)| **turned) {
            *value = -value.clone();
        }
        for (row, &basic) in self.rows.iter().zip(&self.basis) {
            let factor = reduced[basic].clone();
            subtract(&mut reduced, row, &factor);
        }
        loop {
            let enters = (0..self.columns).find(|&c| self.allowed[c] && reduced[c] > N::rounding());
            let Some(column) = enters else { return Some(reduced) };
            let row = match self.end(column)? {
                End::UpperBound => {
                    self.turn(column);
                    reduced[column] = -reduced[column].clone();
                    continue;
                }
                End::Falls(row) => row,
                End::Rises(row) => {
                    self.turn_basic(row);
                    row
                }
            };
            self.pivot(row, column);
            let factor = reduced[column].clone();
            subtract(&mut reduced, &self.rows[row], &factor);
            reduced[column] = N::zero();
        }
    }

    /// Returns what first ends the rise of a column; ties go to the variable with the smallest number.
    fn end(&self, column: usize) -> Option<End> {
        let mut first: Option<(N, usize, End)> =
            self.upper[column].clone().map(|upper| (upper, column, End::UpperBound));
        for (r, row) in self.rows.iter().enumerate() {
            let (factor, right, basic) = (&row[column], &row[self.columns], self.basis[r]);
            let (at, end) = if *factor > N::rounding() {
                (right.clone() / factor, End::Falls(r))
            } else if -factor.clone() > N::rounding() {
                let Some(upper) = &self.upper[basic] else { continue };
                ((upper.clone() - right) / &-factor.clone(), End::Rises(r))
            } else {
                continue;
            };
            let is_first = first
                .as_ref()
                .is_none_or(|(earliest, variable, _)| at < *earliest || (at == *earliest && basic < *variable));
            if is_first {
                first = Some((at, basic, end));
            }
        }
        first.map(|(_, _, end)| end)
    }

    /// Replaces a non-basic variable by its distance from its other bound.
    fn turn(&mut self, column: usize) {
        let Some(upper) = self.upper[column].clone() else { return };
        let columns = self.columns;
        for row in self.rows.iter_mut().filter(|row| !row[column].is_zero()) {
            let moved = row[column].clone() * &upper;
            row[columns] -= &moved;
            row[column] = -row[column].clone();
        }
        self.turned[column] = !self.turned[column];
    }

    /// Replaces the basic variable of a row by its distance from its other bound.
    fn turn_basic(&mut self, row: usize) {
        let basic = self.basis[row];
        let Some(upper) = self.upper[basic].clone() else { return };
        for value in self.rows[row].iter_mut().filter(|v| !v.is_zero()) {
            *value = -value.clone();
        }
        self.rows[row][basic] = N::one();
        self.rows[row][self.columns] += &upper;
        self.turned[basic] = !self.turned[basic];
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

    /// Returns whether every artificial variable is 0, that is, whether the constraints are feasible.
    fn artificials_are_gone(&self) -> bool {
        // Sums of hundreds of rounded terms: a thousand times the rounding of one comparison.
        let slack = N::rounding() * N::from_count(1000);
        let left = self.rows.iter().zip(&self.basis).filter(|(_, basic)| **basic >= self.first_artificial);
        left.into_iter().all(|(row, _)| row[self.columns] <= slack)
    }

    /// Removes artificial variables from the basis where another variable can replace them, and from further pivots.
    fn forbid_artificials(&mut self) {
        for r in 0..self.rows.len() {
            if self.basis[r] >= self.first_artificial {
                let other = (0..self.first_artificial)
                    .find(|&c| self.rows[r][c] > N::rounding() || -self.rows[r][c].clone() > N::rounding());
                if let Some(column) = other {
                    self.pivot(r, column);
                }
            }
        }
        self.allowed[self.first_artificial..].fill(false);
    }

    /// Fixes every column at 0 that cannot rise without loss.
    fn forbid(&mut self, reduced: &[N]) {
        for (allowed, value) in self.allowed.iter_mut().zip(reduced) {
            *allowed &= -value.clone() <= N::rounding();
        }
    }

    /// Returns whether the optimum is unique, so that further objectives do not matter.
    fn is_a_point(&self) -> bool {
        let mut moves = self.allowed.clone();
        for &basic in &self.basis {
            moves[basic] = false;
        }
        !moves.contains(&true)
    }

    fn point(&self, variables: usize) -> Vec<N> {
        let mut point = vec![N::zero(); variables];
        for (row, &basic) in self.rows.iter().zip(&self.basis).filter(|(_, basic)| **basic < variables) {
            point[basic] = row[self.columns].clone().larger(N::zero());
        }
        for (value, (upper, turned)) in point.iter_mut().zip(self.upper.iter().zip(&self.turned)) {
            if let Some(upper) = upper.as_ref().filter(|_| *turned) {
                *value = (upper.clone() - &*value).larger(N::zero());
            }
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
    use proptest::{collection, prop_assert_eq, proptest};

    fn q(n: i64, d: u64) -> Rational {
        Rational::from_parts(n.into(), d.into())
    }

    fn row(values: &[i64]) -> Vec<Rational> {
        values.iter().map(|v| q(*v, 1)).collect()
    }

    #[test]
    fn rows_of_all_kinds() {
        let mut lp = LinearProgram::new(2);
        lp.constrain(row(&[1, 2]), Relation::AtMost, q(4, 1));
        lp.constrain(row(&[3, 1]), Relation::AtMost, q(6, 1));
        lp.constrain(row(&[-1, -1]), Relation::AtMost, q(-1, 1));
        lp.maximize(row(&[1, 1]));
        assert_eq!(lp.solve(), Optimum::Found(vec![q(8, 5), q(6, 5)]));
        lp.constrain(row(&[1, -1]), Relation::Equal, q(0, 1));
        assert_eq!(lp.solve(), Optimum::Found(vec![q(4, 3), q(4, 3)]));
        lp.constrain(row(&[1, 0]), Relation::AtLeast, q(2, 1));
        assert_eq!(lp.solve(), Optimum::Infeasible);
    }

    #[test]
    fn what_grows_for_ever_and_what_is_said_twice() {
        let mut lp = LinearProgram::new(2);
        lp.maximize(row(&[1, 0]));
        assert_eq!(lp.solve(), Optimum::Unbounded);
        for _ in 0..2 {
            lp.constrain(row(&[1, 1]), Relation::Equal, q(1, 1));
        }
        lp.maximize(row(&[0, 1]));
        assert_eq!(lp.solve(), Optimum::Found(vec![q(1, 1), q(0, 1)]));
    }

    #[test]
    fn limits_are_rows_that_cost_nothing() {
        // max x + y + z with x + y + z <= 2, x + 2 y = 3/2, each at most 1, then the smallest x.
        let lp = |as_rows: bool| {
            let mut lp = LinearProgram::new(3);
            lp.constrain(row(&[1, 1, 1]), Relation::AtMost, q(2, 1));
            lp.constrain(row(&[1, 2, 0]), Relation::Equal, q(3, 2));
            for v in 0..3 {
                if as_rows {
                    let mut unit = row(&[0, 0, 0]);
                    unit[v] = q(1, 1);
                    lp.constrain(unit, Relation::AtMost, q(1, 1));
                } else {
                    lp.bound_above(v, q(3, 1));
                    lp.bound_above(v, q(1, 1));
                }
            }
            lp.maximize(row(&[1, 1, 1]));
            lp.maximize(row(&[-1, 0, 0]));
            lp.solve()
        };
        assert_eq!(lp(true), Optimum::Found(vec![q(1, 2), q(1, 2), q(1, 1)]));
        assert_eq!(lp(false), lp(true));
    }

    #[test]
    fn each_variable_after_all_objectives() {
        let mut lp = LinearProgram::new(3);
        lp.constrain(row(&[1, 1, 0]), Relation::AtMost, q(1, 1));
        lp.bound_above(2, q(1, 1));
        lp.maximize(row(&[0, 0, 1]));
        assert_eq!(lp.solve(), Optimum::Found(row(&[0, 0, 1])));
        lp.maximize_each_variable();
        assert_eq!(lp.solve(), Optimum::Found(row(&[1, 0, 1])));
        // Not before them.
        lp.maximize(row(&[0, 1, 0]));
        assert_eq!(lp.solve(), Optimum::Found(row(&[0, 1, 1])));
    }

    proptest! {
        /// A limit says the same as a row, whatever the program.
        #[test]
        fn limits_and_rows_agree(
            factors in collection::vec(collection::vec(-3i64..4, 4), 1..5),
            bounds in collection::vec(0..3u8, 5),
            rights in collection::vec(-2i64..6, 5),
            limits in collection::vec(0i64..4, 4),
            objectives in collection::vec(collection::vec(-2i64..4, 4), 1..4),
        ) {
            let lp = |as_rows: bool| {
                let mut lp = LinearProgram::new(4);
                for ((f, bound), right) in factors.iter().zip(&bounds).zip(&rights) {
                    let bound = [Relation::AtMost, Relation::AtLeast, Relation::Equal][usize::from(*bound)];
                    lp.constrain(row(f), bound, q(*right, 1));
                }
                for (v, limit) in limits.iter().enumerate() {
                    let mut unit = row(&[0, 0, 0, 0]);
                    unit[v] = q(1, 1);
                    if as_rows { lp.constrain(unit, Relation::AtMost, q(*limit, 2)) } else { lp.bound_above(v, q(*limit, 2)) }
                }
                // To the last digit: every variable is decided.
                objectives.iter().for_each(|o| lp.maximize(row(o)));
                lp.maximize_each_variable();
                lp.solve()
            };
            prop_assert_eq!(lp(false), lp(true));
        }
    }

    /// Beale's example, on which the simplex method without Bland's rule goes round in a circle.
    #[test]
    fn it_ends_where_constraints_meet() {
        let mut lp = LinearProgram::new(4);
        lp.constrain(vec![q(1, 4), q(-60, 1), q(-1, 25), q(9, 1)], Relation::AtMost, q(0, 1));
        lp.constrain(vec![q(1, 2), q(-90, 1), q(-1, 50), q(3, 1)], Relation::AtMost, q(0, 1));
        lp.constrain(row(&[0, 0, 1, 0]), Relation::AtMost, q(1, 1));
        lp.maximize(vec![q(3, 4), q(-150, 1), q(1, 50), q(-6, 1)]);
        assert_eq!(lp.solve(), Optimum::Found(vec![q(1, 25), q(0, 1), q(1, 1), q(0, 1)]));
    }
}
