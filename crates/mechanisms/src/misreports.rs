//! A search for demands that are false and pay.
//!
//! A mechanism is strategy-proof if nobody gets more of what he needs by declaring something else. No
//! search proves that; this one looks where profitable lies of the known non-strategy-proof mechanisms
//! are, and reports the best it finds.

use evenhand_model::random::Stream;

use crate::{Mechanism, MechanismError, MechanismOptions, Problem, User};

/// A false declaration, and what it brings.
#[derive(Clone, Debug, PartialEq)]
pub struct Misreport {
    /// Who lies.
    pub user: usize,
    /// What he says one task of his takes, in shares of capacity.
    pub demand: Vec<f64>,
    /// The most tasks he says he wants; `None` for no limit.
    pub limit: Option<f64>,
    /// The tasks he has if he tells the truth.
    pub truthful_tasks: f64,
    /// The true tasks he can run with what the lie gives him.
    pub misreport_tasks: f64,
}

impl Misreport {
    /// How many more tasks, relative to those of the truth; infinite if the truth gives none.
    pub fn gain(&self) -> f64 {
        if self.misreport_tasks == self.truthful_tasks { 0.0 } else { self.misreport_tasks / self.truthful_tasks - 1.0 }
    }
}

/// What a search did.
#[derive(Clone, Debug, PartialEq)]
pub struct MisreportSearch {
    /// How many declarations were tried.
    pub tried: u64,
    /// How many of them the mechanism did not divide (see [`MechanismError::NotCertified`]).
    pub refused: u64,
    /// The lie with the largest gain, if one gains more than 1e-6: the first found of several.
    pub best: Option<Misreport>,
}

/// Gains below this are taken for rounding.
const LEAST_GAIN: f64 = 1e-6;

/// Looks for the most profitable false demand of any user, or of `only`. Everybody else tells the truth.
///
/// Each user tries, `tries` times in all: the demands of the others; random ones, near the truth and far
/// from it, also pretending to need what he does not; and from the best of these, step by step along each
/// coordinate (demands, and the limit if there is one), with ever smaller steps. A user without a limit
/// gains nothing by scaling all demands, so that is left out.
///
/// # Errors
/// If the mechanism does not divide the problem when all tell the truth.
pub fn search_misreports(
    mechanism: &dyn Mechanism,
    problem: &Problem<f64>,
    options: &MechanismOptions,
    seed: u64,
    tries: u64,
    only: Option<usize>,
) -> Result<MisreportSearch, MechanismError> {
    let truth = mechanism.divide(problem, options)?;
    let users = only.map_or(0..problem.users(), |user| user..user + 1);
    let mut found = MisreportSearch { tried: 0, refused: 0, best: None };
    for user in users {
        let mut liar = MisreportingUser {
            mechanism,
            problem,
            options,
            user,
            truthful_tasks: truth.tasks[user],
            left: tries,
            refused: 0,
            best: None,
        };
        liar.search(&mut Stream::new(seed, "lies", user as u64));
        found.tried += tries - liar.left;
        found.refused += liar.refused;
        let gain = |lie: &Option<Misreport>| lie.as_ref().map_or(LEAST_GAIN, Misreport::gain);
        if gain(&liar.best) > gain(&found.best) {
            found.best = liar.best;
        }
    }
    Ok(found)
}

struct MisreportingUser<'a> {
    mechanism: &'a dyn Mechanism,
    problem: &'a Problem<f64>,
    options: &'a MechanismOptions,
    user: usize,
    truthful_tasks: f64,
    left: u64,
    refused: u64,
    best: Option<Misreport>,
}

impl MisreportingUser<'_> {
    fn search(&mut self, random: &mut Stream) {
        let truth = self.problem.user(self.user);
        if self.problem.is_satisfied(self.user, &self.truthful_tasks) {
            return;
        }
        let me = self.user;
        // In a crowd something must be left for the rest of the search.
        let others = (0..self.problem.users()).filter(|k| *k != me).take((self.left / 4) as usize);
        for other in others {
            // As much of the other's dominant resource as of one's own, so that a limit means the same.
            let scale = self.problem.dominant_demand(me) / self.problem.dominant_demand(other);
            let demand = self.problem.demand(other).iter().map(|d| d * scale).collect();
            self.declare(demand, truth.limit);
        }
        for _ in 0..self.left / 2 {
            // From steps of some per cent to factors of a hundred.
            let spread = libm::exp(random.uniform() * 5.0 - 3.0);
            let largest = truth.demand.iter().copied().fold(0.0, f64::max);
            let mut draw = |d: f64, zero_too: bool| match (d == 0.0, random.below(3)) {
                (true, 0) if zero_too => largest * libm::exp(-3.0 * random.uniform()),
                (false, 0 | 1) => d * libm::exp(spread * random.normal()),
                _ => d,
            };
            let demand = truth.demand.iter().map(|d| draw(*d, true)).collect();
            let limit = truth.limit.map(|l| draw(l, false));
            self.declare(demand, limit);
        }
        self.climb(&truth);
    }

    /// From the best declaration so far, or from the truth, along one coordinate after the other.
    fn climb(&mut self, truth: &User<f64>) {
        let (mut demand, mut limit) = match &self.best {
            Some(lie) => (lie.demand.clone(), lie.limit),
            None => (truth.demand.clone(), truth.limit),
        };
        let mut step = 2.0;
        while step > 1.0 + 1e-5 && self.left > 0 {
            let mut moved = false;
            for coordinate in 0..=demand.len() {
                for factor in [step, 1.0 / step] {
                    let (mut next_demand, mut next_limit) = (demand.clone(), limit);
                    match next_demand.get_mut(coordinate) {
                        Some(d) => *d *= factor,
                        None => next_limit = next_limit.map(|l| l * factor),
                    }
                    if (next_demand != demand || next_limit != limit) && self.declare(next_demand.clone(), next_limit) {
                        (demand, limit) = (next_demand, next_limit);
                        moved = true;
                    }
                }
            }
            if !moved {
                step = libm::sqrt(step);
            }
        }
    }

    /// Whether this is better than everything before.
    fn declare(&mut self, demand: Vec<f64>, limit: Option<f64>) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let lie = User { demand, limit, ..self.problem.user(self.user) };
        let Some(problem) = self.problem.replace_user(self.user, lie.clone()) else { return false };
        let Ok(given) = self.mechanism.divide(&problem, self.options) else {
            self.refused += 1;
            return false;
        };
        let (needs, held) = (self.problem.demand(self.user), given.tasks[self.user]);
        let needed = needs.iter().zip(&lie.demand).filter(|(need, _)| **need > 0.0);
        let runs = needed.map(|(need, said)| said * held / need).fold(f64::INFINITY, f64::min);
        let misreport_tasks = self.problem.limit(self.user).map_or(runs, |most| runs.min(*most));
        let truthful_tasks = self.truthful_tasks;
        let lie = Misreport { user: self.user, demand: lie.demand, limit: lie.limit, truthful_tasks, misreport_tasks };
        let least = self.best.as_ref().map_or(LEAST_GAIN, Misreport::gain);
        let better = lie.gain() > least;
        if better {
            self.best = Some(lie);
        }
        better
    }
}
