//! Bottleneck-aware allocation: one level for each class of users.

mod linear_program;
mod two_resources;
mod user_classes;

use crate::mechanism::mechanism;
use crate::{Allocation, MechanismError, MechanismOptions, Number, Problem};
use user_classes::{ClassQueues, ClassSums};

/// Bottleneck-aware allocation (Wang and Varman, FAST'14; Bao, 2015, section 2).
///
/// Users whose tasks take the largest share of the same resource (the first of several) form a class, determined by
/// demands and capacities alone. Class b has a level `rho_b`: each of its users k has the share `w_k rho_b` of resource
/// b. No user of another class may have more of b per weight. Of all such levels, those with the highest utilization
/// (the sum of all resources' loads) are taken.
///
/// * One resource: max-min fairness.
/// * Two: a closed form, O(users). The optimum is unique, and no user gets less than an equal split.
/// * More: a linear program with one level per class, after O(users × resources) for summing up the classes. Its
///   optimum can leave a user below an equal split (in 225 of 6000 random instances with three resources), so `rho_b >=
///   1 / sum w` is a constraint unless [`MechanismOptions::sharing_incentive`] says otherwise. Among optima it takes
///   the one whose lowest level is highest, then the highest level of the first resource, of the second, and so on,
///   which determines the levels uniquely.
///
/// Zero demands are allowed. With them, capacity can remain idle that a user could use at no cost to others: a user who
/// needs only memory has the same share of memory as the rest of its class, even if the class is limited by what its
/// other users need of the CPU.
///
/// The papers have no limits on tasks. Here, a user who would get all it wants or more gets its limit; its use is
/// subtracted, and the rest is divided again among the others until no further user is satisfied. Classes remain as the
/// original capacities determine them, and no level may fall from one round to the next. Without that condition a level
/// can fall: when the user who limited another class is satisfied, that class may rise at the expense of this one,
/// below its satisfied users and below an equal split. With it a feasible point always exists (the levels of the
/// previous round, at which the satisfied users use at most what they used then), so that the constraint of the sharing
/// incentive never makes the program infeasible, and rules 1 to 3 hold for every user who is not satisfied, also
/// relative to satisfied users. Two resources with limits: O(users × log users).
///
/// Not strategy-proof, contrary to the papers' theorems. Trees of accounts are not supported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Baa;

mechanism!(
    Baa,
    "baa",
    "give equal shares, per weight, of each user's dominant resource, at the highest utilization that allows"
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
        if !N::EXACT && problem.users() <= MAX_EXACT_USERS {
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

/// Largest number of users for which `f64` problems are computed in exact numbers. Where weights or demands are a
/// factor of 1e9 apart, what remains for a small class can be so little of the whole that rounded sums over the other
/// users do not determine it.
const MAX_EXACT_USERS: usize = 32;

/// Divides, removes the satisfied users, and divides again until no further user is satisfied.
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
    let levels = levels.into_iter().enumerate().map(|(b, level)| classes.has_users(b).then_some(level)).collect();
    Ok(Allocation { levels, ..Allocation::new(tasks) })
}

/// Returns the load of each resource at these levels of the classes.
fn loads<N: Number>(classes: &ClassSums<N>, levels: &[N]) -> Vec<N> {
    let load = |r: usize| (0..levels.len()).fold(N::zero(), |sum, b| sum + classes.load(r, b).clone() * &levels[b]);
    (0..levels.len()).map(load).collect()
}
