//! Bottleneck-aware allocation: one level for each class of users.

mod linear_program;
mod two_resources;
mod user_classes;

use crate::mechanism::mechanism;
use crate::{Allocation, MechanismError, MechanismOptions, Number, Problem};
use user_classes::{ClassQueues, ClassSums};

/// Bottleneck-aware allocation (Wang and Varman, FAST'14; paper 002, section 2; reference 4.1 to 4.3).
///
/// Users whose tasks take the largest share of the same resource (the first of several) are a class, by
/// their demands and the capacities alone. A class b has a level `rho_b`: each of its users has the share
/// `w_k rho_b` of resource b. Nobody of another class may have more of b for his weight. Of all such
/// levels it takes those that use the most: the sum of the loads of all resources.
///
/// * One resource: max-min.
/// * Two: a closed form, O(n). There is one best point, and it leaves nobody below an equal split.
/// * More: a linear program with a level a class, after O(n m) for summing up the classes. Its best point
///   can leave a user below an equal split (in 225 of 6000 random instances with three resources,
///   reference 4.2), so `rho_b >= 1 / sum w` is a constraint unless
///   [`MechanismOptions::sharing_incentive`] says otherwise. Among points of equal use it takes the one whose
///   least level is highest, then the highest level of the first resource, of the second, and so on.
///   That settles everything, since a point is nothing but its levels.
///
/// Zero demands are allowed. With them something can be left over that a user could have for nothing
/// (capacities 1 and 1, shares of work .1 … 1 and 0: reference 4.3): whoever needs memory only has the
/// same share of memory as the rest of his class, even if the class is held down by what its other users
/// need of the processors.
///
/// The papers know no limits on tasks. Here, who would get all he wants or more gets that; what he then
/// uses is taken off, and the rest is divided again among the others, until nobody new is satisfied. The
/// classes stay as the original capacities make them, and no level may fall from one round to the next.
/// Without that last condition it can: when the user who held the other class back is satisfied, that class
/// may rise at the cost of this one, below the satisfied users of this class and below an equal split. With
/// it there is always a point (the levels of the round before: the satisfied use at most what they used
/// then), so the constraint of the sharing incentive never makes the program infeasible, and rules 1 to 3 hold
/// for everybody who is not satisfied, against the satisfied as well. Two resources with limits:
/// O(n log n).
///
/// Not strategy-proof, whatever the papers say (reference 4.3). Accounts are refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baa;

mechanism!(
    Baa,
    "baa",
    "equal shares, for the weight, of the resource a user needs most; as much use of all as that allows"
);

impl Baa {
    pub(crate) fn solve<N: Number>(
        problem: &Problem<N>,
        options: &MechanismOptions,
    ) -> Result<Allocation<N>, MechanismError> {
        if problem.account_tree().is_some() {
            return Err(MechanismError::AccountsUnsupported { mechanism: "baa" });
        }
        if problem.users() == 0 {
            return Ok(Allocation { levels: vec![None; problem.resource_count()], ..Allocation::new(Vec::new()) });
        }
        if !N::EXACT && problem.users() <= MOST_EXACT_USERS {
            let exact = Baa::solve(&problem.to_exact(), options)?;
            let levels = exact.levels.iter().map(|l| l.as_ref().map(N::from_exact)).collect();
            return Ok(Allocation { levels, ..Allocation::new(exact.tasks.iter().map(N::from_exact).collect()) });
        }
        if problem.resource_count() == 2 && !problem.has_limits() {
            return Ok(two_resources::divide_unlimited(problem));
        }
        in_rounds(problem, options)
    }
}

/// Up to so many users, f64 is computed in exact numbers throughout. Where weights or demands are a factor of
/// 1e9 apart, what is left for a small class can be so little of the whole that rounded sums over the other
/// users do not determine it.
const MOST_EXACT_USERS: usize = 32;

/// Divides, takes out who is satisfied, and divides again.
fn in_rounds<N: Number>(problem: &Problem<N>, options: &MechanismOptions) -> Result<Allocation<N>, MechanismError> {
    let width = problem.resource_count();
    let mut queues = ClassQueues::new(problem);
    let mut used = vec![N::zero(); width];
    let incentive = width > 2 && options.sharing_incentive.unwrap_or(true);
    let first = if incentive { N::one() / queues.weight_sum() } else { N::zero() };
    let mut levels = vec![first; width];
    loop {
        let classes = queues.classes();
        if classes.is_empty() {
            break;
        }
        let free: Vec<N> = used.iter().map(|u| (N::one() - u).larger(N::zero())).collect();
        levels = match width {
            1 => vec![(free[0].clone() / classes.weight(0)).larger(levels[0].clone())],
            2 => two_resources::levels(&classes, &free, &levels),
            _ => linear_program::levels(&classes, &free, &levels)?,
        };
        if !queues.satisfy(problem, &levels, &mut used) {
            break;
        }
    }
    let tasks = queues.tasks(problem, &levels);
    let classes = queues.classes();
    let levels = levels.into_iter().enumerate().map(|(b, level)| classes.has(b).then_some(level)).collect();
    Ok(Allocation { levels, ..Allocation::new(tasks) })
}

/// What a level of each class uses of each resource.
fn loads<N: Number>(classes: &ClassSums<N>, levels: &[N]) -> Vec<N> {
    let load = |r: usize| (0..levels.len()).fold(N::zero(), |sum, b| sum + classes.load(r, b).clone() * &levels[b]);
    (0..levels.len()).map(load).collect()
}
