//! Bottleneck-based fairness: an allocation without justified complaints.

use evenhand_model::Rational;

use crate::ceei::{market, no_accounts};
use crate::mechanism::{MechanismError, MechanismOptions};
use crate::properties::has_all_wanted;
use crate::{Allocation, Feasible, LinearProgram, Mechanism, NoJustifiedComplaint, Optimum, Problem, Relation};

/// Bottleneck-based fairness (Dolev et al., ITCS'12): every user who wants more has its entitlement of a saturated
/// resource. In general many allocations satisfy this.
///
/// In `f64` it returns the market equilibrium of [`Ceei`](crate::Ceei), which satisfies it (Gutman and Nisan,
/// AAMAS'12): at prices that sum to at most 1, a user who spends all of e_i has at least e_i of some resource with a
/// price. The property is then checked.
///
/// In exact numbers, that point can be irrational, but the allocations without complaints form finitely many polyhedra
/// with rational vertices: for each set J of resources, those with load 1 on J and x_i >= min(X_i, e_i / max_{j in J}
/// r_ij). J is taken as the set of resources with a price in equilibrium, and users who have all they want there keep
/// it. Of that polyhedron the answer is the point with the largest sum of dominant shares; among several, the one whose
/// smallest dominant share per weight is largest; then the one with the most tasks for the first user, for the second,
/// and so on. If rounding hides the right J, other sets are tried, finally every set of resources whose load is about 1
/// (if they are few).
///
/// Trees of accounts are not supported. Complexity in `f64` as for `Ceei`; in exact numbers a linear program over users
/// and resources for each set that is tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bbf;

const NAME: &str = "bbf";
/// Largest complaint about a computed allocation that is tolerated, relative to the entitlement.
const TOLERANCE: f64 = 1e-9;
/// Largest number of possibly saturated resources of which every set is tried.
const MAX_RESOURCES_FOR_ALL_SETS: usize = 12;
/// Largest distance of such a resource's load from 1.
const POSSIBLY_SATURATED: f64 = 1e-4;

impl Mechanism for Bbf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "give every user who wants more its entitlement of a saturated resource (no justified complaints)"
    }

    fn divide(&self, problem: &Problem<f64>, _: &MechanismOptions) -> Result<Allocation<f64>, MechanismError> {
        let allocation = market(NAME, problem)?;
        let complaints = NoJustifiedComplaint::check(problem, &allocation.tasks, &TOLERANCE).len();
        if complaints > 0 {
            let why = format!("{complaints} users have complaints larger than {TOLERANCE:.0e} of their entitlement");
            return Err(MechanismError::NotCertified { mechanism: NAME, why });
        }
        Ok(allocation)
    }

    fn divide_exact(
        &self,
        problem: &Problem<Rational>,
        _: &MechanismOptions,
    ) -> Result<Allocation<Rational>, MechanismError> {
        no_accounts(NAME, problem.account_tree().is_some())?;
        let why = "a number is too large or too near to 0";
        let float = problem.to_f64().ok_or(MechanismError::OutOfRange { mechanism: NAME, why })?;
        let (guesses, about) = match market(NAME, &float) {
            Ok(equilibrium) => {
                let loads = float.loads(&equilibrium.tasks);
                let about = (0..loads.len()).filter(|r| loads[*r] > 1.0 - POSSIBLY_SATURATED).collect();
                (guesses(&float, &equilibrium, &loads), about)
            }
            Err(MechanismError::NotCertified { .. }) => {
                (Vec::new(), (0..problem.resource_count()).collect::<Vec<usize>>())
            }
            Err(error) => return Err(error),
        };
        let guessed = guesses.iter().find_map(|guess| certified(problem, guess));
        match guessed.or_else(|| any_set(problem, &about)) {
            Some(tasks) => Ok(Allocation::new(tasks)),
            None => {
                let why = format!("none of {} patterns guessed from the equilibrium in f64 is exact", guesses.len());
                Err(MechanismError::NotCertified { mechanism: NAME, why })
            }
        }
    }
}

/// Which resources are saturated, and which users certainly have all they want.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    saturated: Vec<bool>,
    satisfied: Vec<bool>,
}

/// Returns the patterns that the equilibrium may have without rounding, the most likely first.
fn guesses(problem: &Problem<f64>, equilibrium: &Allocation<f64>, loads: &[f64]) -> Vec<Pattern> {
    let mut guesses: Vec<Pattern> = Vec::new();
    for tolerance in [1e-9, 1e-12, 1e-6, 1e-4] {
        let saturated: Vec<bool> =
            equilibrium.prices.iter().zip(loads).map(|(p, load)| *p > tolerance && *load > 1.0 - tolerance).collect();
        let satisfied = equilibrium.tasks.iter().enumerate();
        let satisfied = satisfied.map(|(i, x)| has_all_wanted(problem, i, x, &tolerance)).collect();
        let none = vec![false; problem.users()];
        for guess in [Pattern { saturated: saturated.clone(), satisfied }, Pattern { saturated, satisfied: none }] {
            if !guesses.contains(&guess) {
                guesses.push(guess);
            }
        }
    }
    guesses
}

/// Returns the point of the first feasible set of these resources, in the order of binary numbers with the first
/// resource as the lowest digit.
fn any_set(problem: &Problem<Rational>, among: &[usize]) -> Option<Vec<Rational>> {
    if among.len() > MAX_RESOURCES_FOR_ALL_SETS {
        return None;
    }
    (0..1_u32 << among.len()).find_map(|set| {
        let mut saturated = vec![false; problem.resource_count()];
        for (digit, &r) in among.iter().enumerate() {
            saturated[r] = set >> digit & 1 == 1;
        }
        certified(problem, &Pattern { saturated, satisfied: vec![false; problem.users()] })
    })
}

/// Returns the best point of a pattern, if it has one that passes the check.
fn certified(problem: &Problem<Rational>, pattern: &Pattern) -> Option<Vec<Rational>> {
    let tasks = best_point(problem, pattern)?;
    let tolerance = Rational::ZERO;
    let holds = NoJustifiedComplaint::check(problem, &tasks, &tolerance).is_empty()
        && Feasible::check(problem, &tasks, &tolerance).is_empty();
    holds.then_some(tasks)
}

/// Returns the best point of a pattern by linear programming.
fn best_point(problem: &Problem<Rational>, pattern: &Pattern) -> Option<Vec<Rational>> {
    // Every user has at least `tasks`; those who can have more are variables of the program.
    let mut tasks = Vec::with_capacity(problem.users());
    let mut variables = Vec::new();
    for (i, satisfied) in pattern.satisfied.iter().enumerate() {
        let shares = problem.demand(i).iter().zip(&pattern.saturated).filter(|(_, saturated)| **saturated);
        let largest_demand = shares.map(|(d, _)| d).max().filter(|d| !d.is_zero());
        let enough = largest_demand.map(|d| problem.entitlement(i) / d);
        let (x, is_variable) = match (enough, problem.limit(i)) {
            (None, None) => return None,
            (None, Some(limit)) => (limit.clone(), false),
            (Some(_), Some(limit)) if *satisfied => (limit.clone(), false),
            (Some(enough), Some(limit)) if *limit <= enough => (limit.clone(), false),
            (Some(enough), _) => (enough, true),
        };
        tasks.push(x);
        if is_variable {
            variables.push(i);
        }
    }
    // The last variable is the smallest dominant share per weight of all users who can have more.
    let smallest = variables.len();
    let mut program = LinearProgram::new(smallest + 1);
    let zeros = vec![Rational::ZERO; smallest + 1];
    for (r, load) in problem.loads(&tasks).into_iter().enumerate() {
        let free = Rational::ONE - load;
        if free < Rational::ZERO {
            return None;
        }
        let mut row: Vec<Rational> = variables.iter().map(|i| problem.demand(*i)[r].clone()).collect();
        row.push(Rational::ZERO);
        program.constrain(row, if pattern.saturated[r] { Relation::Equal } else { Relation::AtMost }, free);
    }
    for (v, &i) in variables.iter().enumerate() {
        if let Some(limit) = problem.limit(i) {
            program.bound_above(v, limit - &tasks[i]);
        }
        let for_weight = problem.dominant_demand(i) / problem.weight(i);
        let mut row = zeros.clone();
        row[v] = -for_weight.clone();
        row[smallest] = Rational::ONE;
        program.constrain(row, Relation::AtMost, for_weight * &tasks[i]);
    }
    let mut sum: Vec<Rational> = variables.iter().map(|i| problem.dominant_demand(*i).clone()).collect();
    sum.push(Rational::ZERO);
    program.maximize(sum);
    let mut worst_off = zeros;
    worst_off[smallest] = Rational::ONE;
    program.maximize(worst_off);
    if variables.is_empty() {
        program.bound_above(smallest, Rational::ZERO);
    }
    program.maximize_each_variable();
    let Optimum::Found(more) = program.solve() else { return None };
    // The last value belongs to no user.
    for (i, more) in variables.into_iter().zip(more) {
        tasks[i] += more;
    }
    Some(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User;

    fn q(n: i64, d: u64) -> Rational {
        Rational::from_parts(n.into(), d.into())
    }

    /// Allocations without complaints always exist, so one of the sets has a point.
    #[test]
    fn some_set_always_has_a_point() {
        for case in 0..400_u64 {
            let digit = |k: u64, of: u64| (case * 2_654_435_761 + k * 40_503 + (case * k) % 97) / 7 % of;
            let users = (0..1 + digit(1, 4)).map(|i| {
                let mut demand: Vec<Rational> = (0..3).map(|r| q(digit(10 * i + r, 6) as i64, 5)).collect();
                if demand.iter().all(Rational::is_zero) {
                    demand[1] = q(1, 2);
                }
                let user = User::new(demand).weight(q(1 + digit(100 + i, 4) as i64, 4));
                if digit(200 + i, 3) == 0 { user.limit(q(digit(300 + i, 5) as i64, 7)) } else { user }
            });
            let problem = Problem::new(3, users.collect::<Vec<_>>()).unwrap();
            assert!(any_set(&problem, &[0, 1, 2]).is_some(), "{problem:?}");
        }
    }

    #[test]
    fn guesses_that_cannot_hold_give_nothing() {
        let users = [User::new([q(1, 1), q(1, 2)]), User::new([q(1, 2), q(1, 1)]).limit(q(1, 10))];
        let problem = Problem::new(2, users).unwrap();
        let point = |saturated: [bool; 2]| {
            certified(&problem, &Pattern { saturated: saturated.to_vec(), satisfied: vec![false, true] })
        };
        assert_eq!(point([true, false]), Some(vec![q(19, 20), q(1, 10)]));
        assert_eq!(point([false, false]), None);
        assert_eq!(point([false, true]), None);
        assert_eq!(point([true, true]), None);
    }
}
