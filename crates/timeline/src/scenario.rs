//! Scenarios: who wants what, and when.

use evenhand_mechanisms::{Account, AccountTree, Number, Problem, ProblemError, User};
use evenhand_model::Rational;
use thiserror::Error;

/// Period in which a user is present, and what it wants then.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Start, in seconds.
    pub from: Rational,
    /// End, in seconds; `None` if it does not end.
    pub until: Option<Rational>,
    /// Share of each resource's capacity that one task takes.
    pub demand: Vec<Rational>,
    /// Largest number of tasks wanted at a time; `None` for no limit.
    pub limit: Option<Rational>,
    /// Work, in task-seconds, on whose completion the phase ends; `None` for none.
    pub work: Option<Rational>,
}

impl Phase {
    /// Creates a phase from a second on, without end, limit or work.
    pub fn new(from: Rational, demand: impl Into<Vec<Rational>>) -> Phase {
        Phase { from, until: None, demand: demand.into(), limit: None, work: None }
    }

    /// Sets the second at which the phase ends.
    #[must_use]
    pub fn until(self, until: Rational) -> Phase {
        Phase { until: Some(until), ..self }
    }

    /// Sets the largest number of tasks wanted at a time.
    #[must_use]
    pub fn limit(self, limit: Rational) -> Phase {
        Phase { limit: Some(limit), ..self }
    }

    /// Sets the task-seconds on whose completion the phase ends.
    #[must_use]
    pub fn work(self, work: Rational) -> Phase {
        Phase { work: Some(work), ..self }
    }
}

/// User of a scenario, present during its phases and absent between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Participant {
    /// Weight, greater than 0.
    pub weight: Rational,
    /// Phases, in order of time.
    pub phases: Vec<Phase>,
    /// Commitment of each resource at the first event, as a share of capacity; empty for none. Only `sdrf` uses it.
    pub commitment: Vec<Rational>,
}

impl Participant {
    /// Creates a user of weight 1 without commitment.
    pub fn new(phases: impl Into<Vec<Phase>>) -> Participant {
        Participant { weight: Rational::ONE, phases: phases.into(), commitment: Vec::new() }
    }

    /// Sets the weight.
    #[must_use]
    pub fn weight(self, weight: Rational) -> Participant {
        Participant { weight, ..self }
    }
}

/// Users who arrive and leave. Every resource has capacity 1, as in a [`Problem`].
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    width: usize,
    users: Vec<Participant>,
    accounts: Option<Accounts>,
}

/// Accounts, each after its parent, and the account that each user belongs to.
#[derive(Clone, Debug, PartialEq)]
struct Accounts {
    accounts: Vec<Account<Rational>>,
    user_accounts: Vec<Option<usize>>,
}

/// Reason why users do not form a valid scenario. Users and phases are numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// A number is invalid for a mechanism, or a row has the wrong length.
    #[error("{0}")]
    Problem(#[from] ProblemError),
    /// A user has no phase.
    #[error("user {user} has no phase, expected at least one")]
    NoPhase {
        /// The user.
        user: usize,
    },
    /// A phase ends at or before its start.
    #[error("phase {phase} of user {user} ends at second {until}, expected later than its start at second {from}")]
    Order {
        /// The user.
        user: usize,
        /// The phase.
        phase: usize,
        /// Its start, in seconds.
        from: Rational,
        /// Its end, in seconds.
        until: Rational,
    },
    /// Two phases of one user overlap.
    #[error(
        "phase {phase} of user {user} starts at second {from}, expected a user's phases in order of time, \
             each after the end of the previous one"
    )]
    Overlap {
        /// The user.
        user: usize,
        /// The later phase.
        phase: usize,
        /// Its start, in seconds.
        from: Rational,
    },
    /// The work of a phase is not above 0.
    #[error("the work of phase {phase} of user {user} must be above 0")]
    NoWork {
        /// The user.
        user: usize,
        /// The phase.
        phase: usize,
    },
}

impl Scenario {
    /// Creates a scenario of `width` resources.
    ///
    /// # Errors
    /// Returns an error if a user has no phase, a phase is empty or overlaps another of the same user, or a number is
    /// one that [`Problem::new`] rejects.
    pub fn new(width: usize, users: impl Into<Vec<Participant>>) -> Result<Scenario, ScenarioError> {
        let scenario = Scenario { width, users: users.into(), accounts: None };
        for (user, participant) in scenario.users.iter().enumerate() {
            if participant.phases.is_empty() {
                return Err(ScenarioError::NoPhase { user });
            }
            let mut free_from: Option<&Rational> = None;
            let mut is_open = false;
            for (phase, Phase { from, until, work, .. }) in participant.phases.iter().enumerate() {
                if is_open || free_from.is_some_and(|free| from < free) {
                    return Err(ScenarioError::Overlap { user, phase, from: from.clone() });
                }
                if let Some(until) = until.as_ref().filter(|until| *until <= from) {
                    return Err(ScenarioError::Order { user, phase, from: from.clone(), until: until.clone() });
                }
                if work.as_ref().is_some_and(|work| *work <= Rational::ZERO) {
                    return Err(ScenarioError::NoWork { user, phase });
                }
                free_from = until.as_ref();
                is_open = until.is_none();
            }
        }
        // Checks every phase as a problem of one user, and reports that user.
        for (user, participant) in scenario.users.iter().enumerate() {
            for phase in 0..participant.phases.len() {
                Problem::new(width, [scenario.user_in_phase::<Rational>(user, phase)])
                    .map_err(|e| numbered(e, user))?;
            }
        }
        Ok(scenario)
    }

    /// Places the users in accounts: `user_accounts` holds the account of each user, `None` for directly under the
    /// root. An account has an entitlement while one of its users is present.
    ///
    /// # Errors
    /// Returns an error if [`AccountTree::new`] does, or if the number of users differs.
    pub fn with_accounts(
        mut self,
        accounts: Vec<Account<Rational>>,
        user_accounts: Vec<Option<usize>>,
    ) -> Result<Scenario, ScenarioError> {
        let tree = AccountTree::new(accounts.clone(), user_accounts.clone())?;
        if tree.users() != self.users.len() {
            return Err(ProblemError::Accounts("its number of users differs").into());
        }
        self.accounts = Some(Accounts { accounts, user_accounts });
        Ok(self)
    }

    /// Returns whether users belong to accounts.
    pub(crate) fn has_accounts(&self) -> bool {
        self.accounts.is_some()
    }

    /// Returns the accounts of these users, in their order, without accounts that none of them belongs to.
    pub(crate) fn tree<N: Number>(
        &self,
        present: impl Iterator<Item = usize>,
    ) -> Option<Result<AccountTree<N>, ProblemError>> {
        let Accounts { accounts, user_accounts } = self.accounts.as_ref()?;
        let user_accounts: Vec<Option<usize>> = present.map(|user| user_accounts[user]).collect();
        let mut is_used = vec![false; accounts.len()];
        user_accounts.iter().flatten().for_each(|home| is_used[*home] = true);
        // Parents precede their children, so one pass from the end reaches all of them.
        for (i, account) in accounts.iter().enumerate().rev() {
            if let (true, Some(parent)) = (is_used[i], account.parent) {
                is_used[parent] = true;
            }
        }
        let number = |account: usize| is_used[..account].iter().filter(|used| **used).count();
        let used = accounts
            .iter()
            .zip(&is_used)
            .filter(|(_, used)| **used)
            .map(|(account, _)| Account { parent: account.parent.map(number), weight: N::from_exact(&account.weight) });
        Some(AccountTree::new(used.collect(), user_accounts.iter().map(|home| home.map(number)).collect()))
    }

    /// Returns the number of resources.
    pub fn resource_count(&self) -> usize {
        self.width
    }

    /// Returns the users.
    pub fn users(&self) -> &[Participant] {
        &self.users
    }

    /// Returns e_i = w_i / sum of w over all users of the scenario, present or not: an entitlement does not grow
    /// because others are absent (Sadok et al., 2021, use the constant 1/n).
    ///
    /// # Panics
    /// Panics if there is no such user.
    pub fn entitlement(&self, user: usize) -> Rational {
        let sum = self.users.iter().fold(Rational::ZERO, |sum, u| sum + &u.weight);
        &self.users[user].weight / sum
    }

    /// Returns a user in a phase, in the form of a mechanism's input.
    pub(crate) fn user_in_phase<N: Number>(&self, user: usize, phase: usize) -> User<N> {
        let Participant { weight, phases, commitment } = &self.users[user];
        let Phase { demand, limit, .. } = &phases[phase];
        let row = |row: &[Rational]| row.iter().map(N::from_exact).collect::<Vec<_>>();
        User {
            weight: N::from_exact(weight),
            demand: row(demand),
            limit: limit.as_ref().map(N::from_exact),
            commitment: row(commitment),
        }
    }
}

/// Returns the same error about this user.
fn numbered(error: ProblemError, user: usize) -> ProblemError {
    match error {
        ProblemError::WrongLength { found, expected, .. } => ProblemError::WrongLength { user, found, expected },
        ProblemError::InvalidNumber { what, .. } => ProblemError::InvalidNumber { user, what },
        ProblemError::ZeroWeight { .. } => ProblemError::ZeroWeight { user },
        ProblemError::NoDemand { .. } => ProblemError::NoDemand { user },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(n: i64, d: u64) -> Rational {
        Rational::from_parts(n.into(), d.into())
    }

    fn phase(from: i64) -> Phase {
        Phase::new(q(from, 1), [q(1, 2)])
    }

    #[test]
    fn an_invalid_scenario_is_rejected_naming_the_user() {
        let of = |phases: Vec<Phase>| {
            Scenario::new(1, [Participant::new([phase(0)]), Participant::new(phases)]).unwrap_err().to_string()
        };
        assert!(of(vec![]).contains("user 1 has no phase"));
        assert!(of(vec![phase(3).until(q(3, 1))]).contains("phase 0 of user 1 ends at second 3"));
        assert!(of(vec![phase(0).until(q(5, 1)), phase(4)]).contains("phase 1 of user 1 starts at second 4"));
        assert!(of(vec![phase(0), phase(4)]).contains("phase 1 of user 1 starts"));
        assert!(of(vec![phase(0).work(q(0, 1))]).contains("work"));
        assert!(of(vec![Phase::new(q(0, 1), [q(0, 1)])]).contains("user 1 demands no resource"));
        assert!(of(vec![Phase::new(q(0, 1), [])]).contains("user 1 has 0 quantities"));
    }

    #[test]
    fn entitlements_count_all_users_and_add_up_to_1() {
        let users = [Participant::new([phase(0)]).weight(q(3, 1)), Participant::new([phase(100)])];
        let scenario = Scenario::new(1, users).unwrap();
        assert_eq!((scenario.entitlement(0), scenario.entitlement(1)), (q(3, 4), q(1, 4)));
    }
}
