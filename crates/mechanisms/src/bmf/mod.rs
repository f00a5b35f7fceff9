//! Bottleneck max fairness: every user has the largest share of some bottleneck.

mod binding_pattern;
mod enumerate_solutions;
mod iterate_levels;

use evenhand_model::Rational;

use crate::properties::bottleneck_max_fair::{BottleneckMaxFair, largest_shares};
use crate::properties::feasible::Feasible;
use crate::properties::has_all_wanted;
use crate::{Allocation, Mechanism, MechanismError, MechanismOptions, Number, Problem};
pub use enumerate_solutions::{BmfSolutions, bmf_solutions};

/// Bottleneck max fairness (Bonald and Roberts, SIGMETRICS'15; here with weights and limits).
///
/// Each resource j has a level mu_j, and user i has `x_i = min(X_i, min_j w_i mu_j / d_ij)` tasks. At the solution
/// every resource either is saturated or binds no user. This is equivalent to: every user who wants more has the
/// largest share per weight of some saturated resource.
///
/// A solution always exists. For two resources, random problems never had more than one; for three there can be
/// several, and even a line of them (Bonald and Roberts' example). Which one is returned:
///
/// * Small problems, for which [`bmf_solutions`] finds every solution in at most about `100 000` steps (300 users of
///   two resources, 50 of three, 20 of four): the solution in which the worst-off user is best off. The vectors of
///   dominant shares per weight, sorted in ascending order, are compared lexicographically, and the largest wins; if
///   two are equal, the vectors in the order of users decide. Shares within 1e-9 of each other count as equal here, so
///   that `f64` chooses as exact numbers do.
/// * Larger problems: the solution that [`bmf_by_iteration`] reaches from its start.
///
/// Every answer is checked against the property before it is returned: exact ones without tolerance, computed ones with
/// 1e-9. The exact answer of a large problem is computed from the binding pattern of the solution in `f64` and the
/// linear system for the levels that follows from it.
///
/// Not strategy-proof. Trees of accounts are not supported.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bmf;

impl Mechanism for Bmf {
    fn name(&self) -> &'static str {
        "bmf"
    }

    fn about(&self) -> &'static str {
        "give every user who wants more, per weight, the largest share of some saturated resource"
    }

    fn divide(&self, problem: &Problem<f64>, _: &MechanismOptions) -> Result<Allocation<f64>, MechanismError> {
        no_accounts(problem)?;
        if !enumerate_solutions::is_small(problem) {
            return bmf_by_iteration(problem);
        }
        // Where rounding leaves open whether a point is a solution, exact numbers decide.
        let tasks = match enumerate_solutions::solutions(problem) {
            Some(found) => fairest(problem, found.points),
            None => fairest_exact(&problem.to_exact())?.map(|x| x.iter().map(Number::to_f64).collect()),
        };
        certified(problem, tasks.ok_or_else(no_point)?, &TOLERANCE)
    }

    fn divide_exact(
        &self,
        problem: &Problem<Rational>,
        _: &MechanismOptions,
    ) -> Result<Allocation<Rational>, MechanismError> {
        no_accounts(problem)?;
        let tasks = if enumerate_solutions::is_small(problem) {
            fairest_exact(problem)?.ok_or_else(no_point)?
        } else {
            exact_by_levels(problem)?
        };
        certified(problem, tasks, &Rational::ZERO)
    }
}

/// Largest difference at which shares count as equal when an answer in `f64` is certified.
const TOLERANCE: f64 = 1e-9;

fn no_accounts<N: Number>(problem: &Problem<N>) -> Result<(), MechanismError> {
    match problem.account_tree() {
        Some(_) => Err(MechanismError::AccountsUnsupported { mechanism: "bmf" }),
        None => Ok(()),
    }
}

fn no_point() -> MechanismError {
    MechanismError::NotCertified {
        mechanism: "bmf",
        why: "no assignment of users to bottlenecks has a solution".to_owned(),
    }
}

/// Computes a solution by iterating the levels, whatever the size of the problem.
///
/// Levels start at `mu_j = 1 / (sum of the weights of all users who demand j)`, a lower bound on their final values.
/// Then, in turn:
///
/// 1. Multiplicative passes `mu_j <- mu_j / load_j^eta`, with eta = 1/2 at first.
/// 2. Active sets, from where the passes end: the resource that binds each user at these levels makes every load a
///    linear function of the levels; the levels that saturate the binding resources are the next ones, until they
///    saturate them truly. Where that cycles or leaves the positive range, the passes continue with half the eta; every
///    fourth time from another start, 24 starts in all.
///
/// Convergence is not proven, and its failure is reported as an error. Of 116 160 random problems (1 to 8 resources; 4,
/// 10, 100, 1000 and 4000 users; demands uniform between .05 and 1.05, or log-uniform over two decades, or sixteenths,
/// the latter two with a fifth of zeros; without limits and with limits for three users in ten) it failed on five: 10
/// or 100 users with five resources or more and no zeros. `cargo bench --bench bottleneck_mechanisms -- convergence`
/// repeats the count.
///
/// O(users × resources) for each pass and O(users × resources + resources³) for each active set.
///
/// # Errors
/// Returns an error if the problem has accounts, or if no point was reached that passes the check within 1e-9.
pub fn bmf_by_iteration(problem: &Problem<f64>) -> Result<Allocation<f64>, MechanismError> {
    no_accounts(problem)?;
    let mu = iterate_levels::levels(problem)?;
    certified(problem, binding_pattern::tasks(problem, &mu), &TOLERANCE)
}

/// Reads the binding pattern from the solution in `f64` and solves for the levels exactly. If the pattern was misread,
/// the exact levels reveal it and correct it.
fn exact_by_levels(problem: &Problem<Rational>) -> Result<Vec<Rational>, MechanismError> {
    const CORRECTIONS: usize = 16;
    let why = "numbers that f64 cannot distinguish from 0 or infinity";
    let float = problem.to_f64().ok_or(MechanismError::OutOfRange { mechanism: "bmf", why })?;
    let mu = iterate_levels::levels(&float)?;
    let mut bound = binding_pattern::bound_by(&float, &mu);
    for _ in 0..CORRECTIONS {
        let binding_pattern::Solved::Levels(mu) = binding_pattern::solve(problem, &bound) else { break };
        let tasks = binding_pattern::tasks(problem, &mu);
        if violations(problem, &tasks, &Rational::ZERO) == 0 {
            return Ok(tasks);
        }
        let next = binding_pattern::bound_by(problem, &mu);
        if next == bound {
            break;
        }
        bound = next;
    }
    let why = "the exact levels for the pattern found in 64-bit numbers do not fill the resources".to_owned();
    Err(MechanismError::NotCertified { mechanism: "bmf", why })
}

fn fairest_exact(problem: &Problem<Rational>) -> Result<Option<Vec<Rational>>, MechanismError> {
    Ok(fairest(problem, bmf_solutions(problem)?.points))
}

/// Returns the point at which the worst-off user is best off.
fn fairest<N: Number>(problem: &Problem<N>, mut points: Vec<Vec<N>>) -> Option<Vec<N>> {
    let shares = |x: &Vec<N>| -> Vec<f64> {
        let share = |(i, x): (usize, &N)| (x.clone() * problem.dominant_demand(i) / problem.weight(i)).to_f64();
        x.iter().enumerate().map(share).collect()
    };
    let by_user: Vec<Vec<f64>> = points.iter().map(shares).collect();
    let mut sorted = by_user.clone();
    sorted.iter_mut().for_each(|row| row.sort_unstable_by(f64::total_cmp));
    let mut left: Vec<usize> = (0..points.len()).collect();
    for order in [&sorted, &by_user] {
        let mut rest: Vec<_> = order.iter().map(|row| row.iter()).collect();
        for _ in 0..problem.users() {
            let next: Vec<f64> = rest.iter_mut().map(|row| row.next().copied().unwrap_or(0.0)).collect();
            let best = left.iter().map(|p| next[*p]).fold(0.0, f64::max);
            left.retain(|p| next[*p] >= best * (1.0 - TOLERANCE));
        }
    }
    left.first().map(|p| points.swap_remove(*p))
}

fn violations<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> usize {
    Feasible::check(problem, tasks, tolerance).len() + BottleneckMaxFair::check(problem, tasks, tolerance).len()
}

/// Returns the allocation of a point that passes the check.
fn certified<N: Number>(problem: &Problem<N>, tasks: Vec<N>, tolerance: &N) -> Result<Allocation<N>, MechanismError> {
    match violations(problem, &tasks, tolerance) {
        0 => Ok(Allocation { levels: levels_at(problem, &tasks, tolerance), ..Allocation::new(tasks) }),
        found => {
            let why = format!("the point reached has {found} violations");
            Err(MechanismError::NotCertified { mechanism: "bmf", why })
        }
    }
}

/// Returns the level of each saturated resource of which a user who wants more has the largest share.
fn levels_at<N: Number>(problem: &Problem<N>, tasks: &[N], tolerance: &N) -> Vec<Option<N>> {
    let near = N::one() - tolerance;
    let largest: Vec<N> = largest_shares(problem, tasks).into_iter().map(|(share, _)| share).collect();
    let full: Vec<bool> = problem.loads(tasks).into_iter().map(|load| load >= near).collect();
    let mut decides = vec![false; problem.resource_count()];
    for (i, x) in tasks.iter().enumerate() {
        if has_all_wanted(problem, i, x, tolerance) {
            continue;
        }
        let per_weight = x.clone() / problem.weight(i);
        for (r, d) in problem.demand(i).iter().enumerate().filter(|(r, _)| full[*r]) {
            decides[r] |= per_weight.clone() * d >= largest[r].clone() * &near;
        }
    }
    largest.into_iter().zip(decides).map(|(level, decides)| decides.then_some(level)).collect()
}
