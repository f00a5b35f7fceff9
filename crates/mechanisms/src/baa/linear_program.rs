//! Any number of resources: a linear program whose variables are the levels.
//!
//! It is solved in exact numbers, also where the problem is in `f64`: what is summed up of the classes is few
//! numbers, of any size to each other, and in floating point the program then may lose a small class or
//! find no best point (weights and demands a factor of 1e9 apart). With three resources that takes a
//! fifth of a millisecond, with eight about 40.

use evenhand_model::Rational;

use crate::solvers::simplex::{LinearProgram, Optimum, Relation};
use crate::{MechanismError, Number};

use super::loads;
use super::user_classes::ClassSums;

/// The levels that use the most of what is free, none below `floor`; ties as [`Baa`](super::Baa) says.
pub(super) fn levels<N: Number>(classes: &ClassSums<N>, free: &[N], floor: &[N]) -> Result<Vec<N>, MechanismError> {
    let exact = |values: &[N]| values.iter().map(N::to_exact).collect::<Option<Vec<Rational>>>();
    let why = "a sum over a class of users is infinite";
    let range = || MechanismError::OutOfRange { mechanism: "baa", why };
    let classes = classes.exact().ok_or_else(range)?;
    let (free, floor) = (exact(free).ok_or_else(range)?, exact(floor).ok_or_else(range)?);
    Ok(best(&classes, &free, &floor)?.iter().map(N::from_exact).collect())
}

/// The floor must be possible: then the program starts from a point that satisfies every row. Variables are
/// what each level rises above its floor, in multiples of 1 / sum w, so that factors are at most 1.
fn best<N: Number>(classes: &ClassSums<N>, free: &[N], floor: &[N]) -> Result<Vec<N>, MechanismError> {
    let width = free.len();
    let present: Vec<usize> = (0..width).filter(|b| classes.has(*b)).collect();
    let total = present.iter().fold(N::zero(), |sum, b| sum + classes.weight(*b));
    // One more variable than classes: the least level.
    let least = present.len();
    let mut program = LinearProgram::new(least + 1);
    let row = |entry: &dyn Fn(usize) -> N, least: N| {
        let mut row: Vec<N> = present.iter().map(|b| entry(*b)).collect();
        row.push(least);
        row
    };
    let at_floor: Vec<N> = (0..width).map(|b| if classes.has(b) { floor[b].clone() } else { N::zero() }).collect();
    let used = loads(classes, &at_floor);
    let per_unit = |r: usize, b: usize| classes.load(r, b).clone() / &total;
    for r in 0..width {
        let right = (free[r].clone() - &used[r]).larger(N::zero());
        program.constrain(row(&|b| per_unit(r, b), N::zero()), Relation::AtMost, right);
    }
    for &b in &present {
        for &c in present.iter().filter(|c| **c != b && !classes.most(b, **c).is_zero()) {
            // Nobody of class c has more of b than the users of class b.
            let most = classes.most(b, c);
            let right = (floor[b].clone() - most.clone() * &floor[c]).larger(N::zero()) * &total;
            let entry = |k: usize| if k == c { most.clone() } else { N::from_count(usize::from(k == b)) * -N::one() };
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
        let why = "the linear program of the levels has no best point".to_owned();
        return Err(MechanismError::NotCertified { mechanism: "baa", why });
    };
    let mut levels = at_floor;
    for (b, rise) in present.iter().zip(point) {
        levels[*b] = levels[*b].clone() + rise / &total;
    }
    Ok(levels)
}
