//! Bottleneck-based fairness: an allocation without justified complaints.

use evenhand_model::Rational;

use crate::ceei::{market, no_accounts};
use crate::mechanism::{MechanismError, MechanismOptions};
use crate::properties::has_all_wanted;
use crate::{Allocation, Feasible, LinearProgram, Mechanism, NoJustifiedComplaint, Optimum, Problem, Relation};

/// Bottleneck-based fairness (Dolev et al., ITCS'12): who wants more has his entitlement of a resource
/// that is used up. Many allocations are so.
///
/// In `f64` it is the market equilibrium of [`Ceei`](crate::Ceei), which is one of them (Gutman and Nisan,
/// AAMAS'12): of prices that sum to at most 1, who spends all of e_i has at least e_i of something that costs.
/// Then the property is checked.
///
/// Exactly, that point can be irrational, but the allocations without complaints are finitely many
/// polyhedra with rational corners: for each set J of resources, those with load 1 on J and
/// x_i >= min(X_i, e_i / max_{j in J} r_ij). Here J is what has a price in equilibrium, and who has all he wants there
/// keeps it. Of that polyhedron it is the point with the largest sum of dominant shares; of several, that in which
/// the least dominant share for its weight is largest; then that with the most for the first user, for the
/// second, and so on. Should rounding have hidden the right J,
/// other sets are tried, in the end every set of resources whose load is about 1 (if they are few).
#[derive(Clone, Copy, Debug, Default)]
pub struct Bbf;

const NAME: &str = "bbf";
/// How large complaints about computed allocations may be, relative to entitlements.
const TOLERANCE: f64 = 1e-9;
/// Up to so many resources that may be used up every set of them is tried.
const EVERY_SET: usize = 12;
/// Those are the resources with a load this near to 1.
const ABOUT: f64 = 1e-4;

impl Mechanism for Bbf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "give whoever wants more his entitlement of a resource that is used up (no justified complaints)"
    }

    fn divide(&self, problem: &Problem<f64>, _: &MechanismOptions) -> Result<Allocation<f64>, MechanismError> {
        let allocation = market(NAME, problem)?;
        let complaints = NoJustifiedComplaint::check(problem, &allocation.tasks, &TOLERANCE).len();
        if complaints > 0 {
            let why = format!("{complaints} users can complain of more than a part of {TOLERANCE:.0e}");
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
                let about = (0..loads.len()).filter(|r| loads[*r] > 1.0 - ABOUT).collect();
                (guesses(&float, &equilibrium, &loads), about)
            }
            Err(MechanismError::NotCertified { .. }) => {
                (Vec::new(), (0..problem.resource_count()).collect::<Vec<usize>>())
            }
            Err(error) => return Err(error),
        };
        let guessed = guesses.iter().find_map(|guess| certified(problem, guess));
        match guessed.or_else(|| every_set(problem, &about)) {
            Some(tasks) => Ok(Allocation::new(tasks)),
            None => {
                let why = format!("none of {} guesses from the equilibrium in f64 holds exactly", guesses.len());
                Err(MechanismError::NotCertified { mechanism: NAME, why })
            }
        }
    }
}

/// Which resources are used up, and who has all he wants for certain.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pattern {
    used_up: Vec<bool>,
    satisfied: Vec<bool>,
}

/// What the equilibrium may look like without rounding, the likeliest first.
fn guesses(problem: &Problem<f64>, equilibrium: &Allocation<f64>, loads: &[f64]) -> Vec<Pattern> {
    let mut guesses: Vec<Pattern> = Vec::new();
    for tolerance in [1e-9, 1e-12, 1e-6, 1e-4] {
        let used_up: Vec<bool> =
            equilibrium.prices.iter().zip(loads).map(|(p, load)| *p > tolerance && *load > 1.0 - tolerance).collect();
        let satisfied = equilibrium.tasks.iter().enumerate();
        let satisfied = satisfied.map(|(i, x)| has_all_wanted(problem, i, x, &tolerance)).collect();
        let nobody = vec![false; problem.users()];
        for guess in [Pattern { used_up: used_up.clone(), satisfied }, Pattern { used_up, satisfied: nobody }] {
            if !guesses.contains(&guess) {
                guesses.push(guess);
            }
        }
    }
    guesses
}

/// The first point of any set of these resources, as binary numbers, the first resource the lowest digit.
fn every_set(problem: &Problem<Rational>, among: &[usize]) -> Option<Vec<Rational>> {
    if among.len() > EVERY_SET {
        return None;
    }
    (0..1_u32 << among.len()).find_map(|set| {
        let mut used_up = vec![false; problem.resource_count()];
        for (digit, &r) in among.iter().enumerate() {
            used_up[r] = set >> digit & 1 == 1;
        }
        certified(problem, &Pattern { used_up, satisfied: vec![false; problem.users()] })
    })
}

/// The best point of a pattern, if it has one; checked.
fn certified(problem: &Problem<Rational>, pattern: &Pattern) -> Option<Vec<Rational>> {
    let tasks = best_point(problem, pattern)?;
    let tolerance = Rational::ZERO;
    let holds = NoJustifiedComplaint::check(problem, &tasks, &tolerance).is_empty()
        && Feasible::check(problem, &tasks, &tolerance).is_empty();
    holds.then_some(tasks)
}

fn best_point(problem: &Problem<Rational>, pattern: &Pattern) -> Option<Vec<Rational>> {
    // Everybody has at least this; who can have more is a variable of the linear program.
    let mut tasks = Vec::with_capacity(problem.users());
    let mut variables = Vec::new();
    for (i, satisfied) in pattern.satisfied.iter().enumerate() {
        let shares = problem.demand(i).iter().zip(&pattern.used_up).filter(|(_, used_up)| **used_up);
        let most_held = shares.map(|(d, _)| d).max().filter(|d| !d.is_zero());
        let enough = most_held.map(|d| problem.entitlement(i) / d);
        let (x, is_variable) = match (enough, problem.limit(i)) {
            (None, None) => return None,
            (None, Some(most)) => (most.clone(), false),
            (Some(_), Some(most)) if *satisfied => (most.clone(), false),
            (Some(enough), Some(most)) if *most <= enough => (most.clone(), false),
            (Some(enough), _) => (enough, true),
        };
        tasks.push(x);
        if is_variable {
            variables.push(i);
        }
    }
    // The last variable is the least dominant share for weight of all that can have more.
    let least = variables.len();
    let mut program = LinearProgram::new(least + 1);
    let zeros = vec![Rational::ZERO; least + 1];
    for (r, load) in problem.loads(&tasks).into_iter().enumerate() {
        let free = Rational::ONE - load;
        if free < Rational::ZERO {
            return None;
        }
        let mut row: Vec<Rational> = variables.iter().map(|i| problem.demand(*i)[r].clone()).collect();
        row.push(Rational::ZERO);
        program.constrain(row, if pattern.used_up[r] { Relation::Equal } else { Relation::AtMost }, free);
    }
    for (v, &i) in variables.iter().enumerate() {
        if let Some(most) = problem.limit(i) {
            program.bound_above(v, most - &tasks[i]);
        }
        let for_weight = problem.dominant_demand(i) / problem.weight(i);
        let mut row = zeros.clone();
        row[v] = -for_weight.clone();
        row[least] = Rational::ONE;
        program.constrain(row, Relation::AtMost, for_weight * &tasks[i]);
    }
    let mut sum: Vec<Rational> = variables.iter().map(|i| problem.dominant_demand(*i).clone()).collect();
    sum.push(Rational::ZERO);
    program.maximize(sum);
    let mut worst_off = zeros;
    worst_off[least] = Rational::ONE;
    program.maximize(worst_off);
    if variables.is_empty() {
        program.bound_above(least, Rational::ZERO);
    }
    program.maximize_each_variable();
    let Optimum::Found(more) = program.solve() else { return None };
    // The last one is no user's.
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

    /// Whatever the numbers, one of the sets has a point: allocations without complaints always exist.
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
            assert!(every_set(&problem, &[0, 1, 2]).is_some(), "{problem:?}");
        }
    }

    #[test]
    fn guesses_that_cannot_hold_give_nothing() {
        let users = [User::new([q(1, 1), q(1, 2)]), User::new([q(1, 2), q(1, 1)]).limit(q(1, 10))];
        let problem = Problem::new(2, users).unwrap();
        let point = |used_up: [bool; 2]| {
            certified(&problem, &Pattern { used_up: used_up.to_vec(), satisfied: vec![false, true] })
        };
        assert_eq!(point([true, false]), Some(vec![q(19, 20), q(1, 10)]));
        assert_eq!(point([false, false]), None);
        assert_eq!(point([false, true]), None);
        assert_eq!(point([true, true]), None);
    }
}
