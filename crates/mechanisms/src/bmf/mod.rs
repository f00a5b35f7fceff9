//! Bottleneck max fairness: everybody has the largest share of something that is used up.

mod binding_pattern;
mod enumerate_solutions;
mod iterate_levels;

use evenhand_model::Rational;

use crate::properties::bottleneck_max_fair::{BottleneckMaxFair, largest_shares};
use crate::properties::feasible::Feasible;
use crate::properties::has_all_wanted;
use crate::{Allocation, Mechanism, MechanismError, MechanismOptions, Number, Problem};
pub use enumerate_solutions::{BmfSolutions, bmf_solutions};

/// Bottleneck max fairness (Bonald and Roberts, SIGMETRICS'15; weighted, with limits: reference 2.5).
///
/// Each resource j has a level mu_j, and user i has `x_i = min(X_i, min_j w_i mu_j / d_ij)` tasks. Levels are
/// such that every resource is either used up or binds nobody. Then everybody who wants more has the
/// largest share for his weight of some resource that is used up, and the other way round.
///
/// There is always such a point; for two resources there was never more than one in random problems, for three
/// there can be several, and even a line of them (Bonald and Roberts' example). Which one is given:
///
/// * Small problems ([`bmf_solutions`] finds every point, in at most about `100 000` steps; that is 300
///   users of two resources, 50 of three, 20 of four): the one where the worst off is best off. The
///   vectors of dominant shares over weight, sorted from the least up, are compared from the first
///   entry on, and the largest wins; if two are equal, the vectors by the order of users. Shares within
///   1e-9 of each other count as equal here, so that f64 chooses as exact numbers do.
/// * Larger ones: the point that [`bmf_by_iteration`] reaches from its start.
///
/// Every answer is held against the property itself before it is given: exact ones without tolerance,
/// computed ones with 1e-9. An exact answer of a large problem comes from who is bound by what at the
/// point found in `f64`, and the linear system for the levels that follows from it.
///
/// Not strategy-proof (reference 2.5). Accounts are refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bmf;

impl Mechanism for Bmf {
    fn name(&self) -> &'static str {
        "bmf"
    }

    fn about(&self) -> &'static str {
        "everybody who wants more has, for his weight, the largest share of some resource that is used up"
    }

    fn divide(&self, problem: &Problem<f64>, _: &MechanismOptions) -> Result<Allocation<f64>, MechanismError> {
        no_accounts(problem)?;
        if !enumerate_solutions::is_small(problem) {
            return bmf_by_iteration(problem);
        }
        // Where rounding leaves open whether a point solves the problem, exact numbers decide.
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

/// How far apart shares may be and count as equal when an answer in `f64` is certified.
const TOLERANCE: f64 = 1e-9;

fn no_accounts<N: Number>(problem: &Problem<N>) -> Result<(), MechanismError> {
    match problem.account_tree() {
        Some(_) => Err(MechanismError::AccountsUnsupported { mechanism: "bmf" }),
        None => Ok(()),
    }
}

fn no_point() -> MechanismError {
    MechanismError::NotCertified { mechanism: "bmf", why: "no division of users among resources fits".to_owned() }
}

/// The point that iterating the levels reaches, whatever the size of the problem.
///
/// Levels start at `mu_j = 1 / (sum of the weights of all who demand j)`, the least each can be in the
/// end. Then, in turn:
///
/// 1. Passes `mu_j <- mu_j / load_j^eta`, with eta = 1/2 at first: what is overfull goes down, the rest up.
/// 2. From where these are, active sets: who is bound by what at these levels makes every load a linear
///    function of them; the levels that fill the resources are the next ones, until they fill them
///    truly. Where that goes round in a circle or out of the positive, the passes go on, with half the
///    eta; every fourth time from another start, 24 starts in all.
///
/// There is no proof that this arrives, and where it does not, that is an error and not an answer. Of 116 160
/// random problems (1 to 8 resources; 4, 10, 100, 1000 and 4000 users; demands even between .05 and 1.05, or
/// even in their logarithm over two decades, or of sixteenths, the latter two with a fifth of zeros; without
/// limits and with three in ten limited) it failed on five: 10 or 100 users with five resources or more and
/// no zeros. `cargo bench --bench levels -- arrives` counts again.
///
/// # Errors
/// If the problem has accounts, or no point was reached that the property accepts within 1e-9.
pub fn bmf_by_iteration(problem: &Problem<f64>) -> Result<Allocation<f64>, MechanismError> {
    no_accounts(problem)?;
    let mu = iterate_levels::levels(problem)?;
    certified(problem, binding_pattern::tasks(problem, &mu), &TOLERANCE)
}

/// Reads from the point in `f64` who is bound by what, and solves for it; where that was misread, the exact
/// levels say so, and correct it.
fn exact_by_levels(problem: &Problem<Rational>) -> Result<Vec<Rational>, MechanismError> {
    const CORRECTIONS: usize = 16;
    let why = "numbers that f64 does not hold apart from 0 or infinity";
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

/// The point at which the worst off is best off.
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

/// The answer, if it is one.
fn certified<N: Number>(problem: &Problem<N>, tasks: Vec<N>, tolerance: &N) -> Result<Allocation<N>, MechanismError> {
    match violations(problem, &tasks, tolerance) {
        0 => Ok(Allocation { levels: levels_at(problem, &tasks, tolerance), ..Allocation::new(tasks) }),
        found => {
            let why = format!("{found} things are wrong with the point reached");
            Err(MechanismError::NotCertified { mechanism: "bmf", why })
        }
    }
}

/// The level of each resource that is used up and of which somebody who wants more has the largest share.
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
