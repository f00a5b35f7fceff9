//! Levels for any number of resources, by a linear program whose variables are the levels.
//!
//! It is solved in exact numbers even if the problem is in `f64`: the class sums are few numbers of arbitrary relative
//! size, and in floating point the program could lose a small class or find no optimum (with weights and demands a
//! factor of 1e9 apart). With three resources that takes a fifth of a millisecond, with eight about 40 ms.

use evenhand_model::Rational;

use crate::solvers::simplex::{LinearProgram, Optimum, Relation};
use crate::{MechanismError, Number};

use super::loads;
use super::user_classes::ClassSums;

/// Returns the levels of highest utilization within `free`, none below `floor`; ties as [`Baa`](super::Baa) describes.
pub(super) fn levels<N: Number>(classes: &ClassSums<N>, free: &[N], floor: &[N]) -> Result<Vec<N>, MechanismError> {
    let exact = |values: &[N]| values.iter().map(N::to_exact).collect::<Option<Vec<Rational>>>();
    let why = "a sum over a class of users is infinite";
    let range = || MechanismError::OutOfRange { mechanism: "baa", why };
    let classes = classes.exact().ok_or_else(range)?;
    let (free, floor) = (exact(free).ok_or_else(range)?, exact(floor).ok_or_else(range)?);
    Ok(best(&classes, &free, &floor)?.iter().map(N::from_exact).collect())
}

/// Solves the program. `floor` must be feasible: the simplex method then starts from a feasible point. The variables
/// are the rise of each level above its floor, in multiples of 1 / sum w, so that coefficients are at most 1.
fn best<N: Number>(classes: &ClassSums<N>, free: &[N], floor: &[N]) -> Result<Vec<N>, MechanismError> {
    let width = free.len();
    let present: Vec<usize> = (0..width).filter(|b| classes.has_users(*b)).collect();
    let total = present.iter().fold(N::zero(), |sum, b| sum + classes.weight(*b));
    // One variable more than classes: the lowest level.
    let lowest = present.len();
    let mut program = LinearProgram::new(lowest + 1);
    let row = |entry: &dyn Fn(usize) -> N, lowest: N| {
        let mut row: Vec<N> = present.iter().map(|b| entry(*b)).collect();
        row.push(lowest);
        row
    };
    let at_floor: Vec<N> =
        (0..width).map(|b| if classes.has_users(b) { floor[b].clone() } else { N::zero() }).collect();
    let used = loads(classes, &at_floor);
    let per_unit = |r: usize, b: usize| classes.load(r, b).clone() / &total;
    for r in 0..width {
        let right = (free[r].clone() - &used[r]).larger(N::zero());
        program.constrain(row(&|b| per_unit(r, b), N::zero()), Relation::AtMost, right);
    }
    for &b in &present {
        for &c in present.iter().filter(|c| **c != b && !classes.largest_share(b, **c).is_zero()) {
            // No user of class c has more of b per weight than the users of class b.
            let largest = classes.largest_share(b, c);
            let right = (floor[b].clone() - largest.clone() * &floor[c]).larger(N::zero()) * &total;
            let entry =
                |k: usize| if k == c { largest.clone() } else { N::from_count(usize::from(k == b)) * -N::one() };
            program.constrain(row(&entry, N::zero()), Relation::AtMost, right);
        }
        let entry = |k: usize| N::from_count(usize::from(k == b)) * -N::one();
        program.constrain(row(&entry, N::one()), Relation::AtMost, floor[b].clone() * &total);
    }
    program.maximize(row(&|b| (0..width).fold(N::zero(), |sum, r| sum + per_unit(r, b)), N::zero()));
    program.maximize(row(&|_| N::zero(), N::one()));
    for &b in &present {
        program.maximize(row(&|k| N::from_count(usize::from(k == b)), N::zero()));
    }
    let Optimum::Found(point) = program.solve() else {
        let why = "the linear program for the levels has no optimum".to_owned();
        return Err(MechanismError::NotCertified { mechanism: "baa", why });
    };
    let mut levels = at_floor;
    for (b, rise) in present.iter().zip(point) {
        levels[*b] = levels[*b].clone() + rise / &total;
    }
    Ok(levels)
}
