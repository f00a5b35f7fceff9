//! Search for profitable misreports.
//!
//! A mechanism is strategy-proof if no user gets more of what it needs by reporting another demand. No search can prove
//! that; this one tries the kinds of misreport that are profitable under mechanisms known not to be strategy-proof, and
//! returns the best it finds.

use evenhand_model::random::Stream;

use crate::{Mechanism, MechanismError, MechanismOptions, Problem, User};

/// False declaration of a user, and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Misreport {
    /// User who misreports.
    pub user: usize,
    /// Reported demand of one task, in shares of capacity.
    pub demand: Vec<f64>,
    /// Reported largest number of tasks wanted; `None` for no limit.
    pub limit: Option<f64>,
    /// Number of tasks that the user gets by reporting the truth.
    pub truthful_tasks: f64,
    /// Number of true tasks that the user can run with what the misreport yields.
    pub misreport_tasks: f64,
}

impl Misreport {
    /// Returns the relative gain in tasks; infinite if the truth yields none.
    pub fn gain(&self) -> f64 {
        if self.misreport_tasks == self.truthful_tasks { 0.0 } else { self.misreport_tasks / self.truthful_tasks - 1.0 }
    }
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct MisreportSearch {
    /// Number of misreports tried.
    pub tried: u64,
    /// Number of them that the mechanism refused (see [`MechanismError::NotCertified`]).
    pub refused: u64,
    /// Misreport with the largest gain above 1e-6, the first found of several.
    pub best: Option<Misreport>,
}

/// Smaller gains are attributed to rounding.
const MINIMUM_GAIN: f64 = 1e-6;

/// Searches for the most profitable misreport of any user, or of the user `only`, while all others report the truth.
///
/// Each user makes up to `tries` reports: the demands of the other users; random ones near the truth and far from it,
/// including demands for resources it does not need; and, from the best of these, steps of decreasing size along each
/// coordinate (the demands, and the limit if there is one). Scaling all demands brings no gain to a user without a
/// limit and is not tried. The result is a function of the arguments. O(tries) divisions per user.
///
/// # Errors
/// Returns an error if the mechanism refuses the problem when all users report the truth.
///
/// # Panics
/// Panics if there is no user `only`.
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
        let mut search = MisreportingUser {
            mechanism,
            problem,
            options,
            user,
            truthful_tasks: truth.tasks[user],
            left: tries,
            refused: 0,
            best: None,
        };
        search.search(&mut Stream::new(seed, "lies", user as u64));
        found.tried += tries - search.left;
        found.refused += search.refused;
        let gain = |best: &Option<Misreport>| best.as_ref().map_or(MINIMUM_GAIN, Misreport::gain);
        if gain(&search.best) > gain(&found.best) {
            found.best = search.best;
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
        // With many users, reserves three quarters of the tries for the rest of the search.
        let others = (0..self.problem.users()).filter(|k| *k != me).take((self.left / 4) as usize);
        for other in others {
            // Scaled to the user's own dominant demand, so that a limit keeps its meaning.
            let scale = self.problem.dominant_demand(me) / self.problem.dominant_demand(other);
            let demand = self.problem.demand(other).iter().map(|d| d * scale).collect();
            self.try_report(demand, truth.limit);
        }
        for _ in 0..self.left / 2 {
            // From steps of a few per cent to factors of a hundred.
            let spread = libm::exp(random.uniform() * 5.0 - 3.0);
            let largest = truth.demand.iter().copied().fold(0.0, f64::max);
            let mut draw = |d: f64, may_raise_zero: bool| match (d == 0.0, random.below(3)) {
                (true, 0) if may_raise_zero => largest * libm::exp(-3.0 * random.uniform()),
                (false, 0 | 1) => d * libm::exp(spread * random.normal()),
                _ => d,
            };
            let demand = truth.demand.iter().map(|d| draw(*d, true)).collect();
            let limit = truth.limit.map(|l| draw(l, false));
            self.try_report(demand, limit);
        }
        self.climb(&truth);
    }

    /// Climbs from the best report so far, or from the truth, along one coordinate after the other.
    fn climb(&mut self, truth: &User<f64>) {
        let (mut demand, mut limit) = match &self.best {
            Some(best) => (best.demand.clone(), best.limit),
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
                    if (next_demand != demand || next_limit != limit)
                        && self.try_report(next_demand.clone(), next_limit)
                    {
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

    /// Tries a report; returns whether it is the best so far.
    fn try_report(&mut self, demand: Vec<f64>, limit: Option<f64>) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let reported = User { demand, limit, ..self.problem.user(self.user) };
        let Some(problem) = self.problem.replace_user(self.user, reported.clone()) else { return false };
        let Ok(given) = self.mechanism.divide(&problem, self.options) else {
            self.refused += 1;
            return false;
        };
        let (needs, held) = (self.problem.demand(self.user), given.tasks[self.user]);
        let needed = needs.iter().zip(&reported.demand).filter(|(need, _)| **need > 0.0);
        let runs = needed.map(|(need, reported)| reported * held / need).fold(f64::INFINITY, f64::min);
        let misreport_tasks = self.problem.limit(self.user).map_or(runs, |limit| runs.min(*limit));
        let truthful_tasks = self.truthful_tasks;
        let misreport = Misreport {
            user: self.user,
            demand: reported.demand,
            limit: reported.limit,
            truthful_tasks,
            misreport_tasks,
        };
        let best = self.best.as_ref().map_or(MINIMUM_GAIN, Misreport::gain);
        let better = misreport.gain() > best;
        if better {
            self.best = Some(misreport);
        }
        better
    }
}
