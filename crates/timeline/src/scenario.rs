//! Who wants what, and when.

use evenhand_mechanisms::{Account, AccountTree, Number, Problem, ProblemError, User};
use evenhand_model::Rational;
use thiserror::Error;

/// What a user wants during some time.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// When it begins, in seconds.
    pub from: Rational,
    /// When it ends, in seconds; `None` if it does not.
    pub until: Option<Rational>,
    /// The share of each resource's capacity that one task takes.
    pub demand: Vec<Rational>,
    /// The most tasks wanted at a time; `None` for no limit.
    pub limit: Option<Rational>,
    /// How much is to be done, in task-seconds: the phase ends as soon as it is. `None` for no end.
    pub work: Option<Rational>,
}

impl Phase {
    /// From some second on, without end or limit.
    pub fn new(from: Rational, demand: impl Into<Vec<Rational>>) -> Phase {
        Phase { from, until: None, demand: demand.into(), limit: None, work: None }
    }

    /// Which ends at this second.
    #[must_use]
    pub fn until(self, until: Rational) -> Phase {
        Phase { until: Some(until), ..self }
    }

    /// In which at most so many tasks are wanted at a time.
    #[must_use]
    pub fn limit(self, limit: Rational) -> Phase {
        Phase { limit: Some(limit), ..self }
    }

    /// Which ends when so many task-seconds are done.
    #[must_use]
    pub fn work(self, work: Rational) -> Phase {
        Phase { work: Some(work), ..self }
    }
}

/// One user of a scenario; there during its phases, away between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Participant {
    /// Weight, greater than 0.
    pub weight: Rational,
    /// What is wanted when, in order of time.
    pub phases: Vec<Phase>,
    /// Commitment of each resource at the first event, as a share of capacity; empty for none. Only
    /// `sdrf` heeds it.
    pub commitment: Vec<Rational>,
}

impl Participant {
    /// A user of weight 1 with these phases and no past.
    pub fn new(phases: impl Into<Vec<Phase>>) -> Participant {
        Participant { weight: Rational::ONE, phases: phases.into(), commitment: Vec::new() }
    }

    /// With this weight.
    #[must_use]
    pub fn weight(self, weight: Rational) -> Participant {
        Participant { weight, ..self }
    }
}

/// Users who come and go. Every resource has capacity 1, as in a [`Problem`].
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    width: usize,
    users: Vec<Participant>,
    accounts: Option<Accounts>,
}

/// The accounts, each after its parent, and which of them each user belongs to.
#[derive(Clone, Debug, PartialEq)]
struct Accounts {
    accounts: Vec<Account<Rational>>,
    user_accounts: Vec<Option<usize>>,
}

/// Why users do not make a scenario. Users and phases by number, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// A number that a mechanism could not divide by, or a row too short or too long.
    #[error("{0}")]
    Problem(#[from] ProblemError),
    /// A user who never comes.
    #[error("user {user} never comes: expected at least one phase")]
    NoPhase {
        /// Who.
        user: usize,
    },
    /// A phase that ends before it begins, or at once.
    #[error("phase {phase} of user {user} ends at second {until}, expected later than its begin at second {from}")]
    Order {
        /// Who.
        user: usize,
        /// Which phase.
        phase: usize,
        /// Its begin.
        from: Rational,
        /// Its end.
        until: Rational,
    },
    /// Two phases of one user at the same time.
    #[error(
        "phase {phase} of user {user} begins at second {from}, expected a user's phases in order of time, \
             each after the end of the one before"
    )]
    Overlap {
        /// Who.
        user: usize,
        /// The later phase.
        phase: usize,
        /// Its begin.
        from: Rational,
    },
    /// Work that is not above 0.
    #[error("the work of phase {phase} of user {user} must be above 0")]
    NoWork {
        /// Who.
        user: usize,
        /// Which phase.
        phase: usize,
    },
}

impl Scenario {
    /// Users of `width` resources.
    ///
    /// # Errors
    /// If a user never comes, a phase is empty or overlaps another of the same user, or a number is one
    /// that [`Problem::new`] refuses.
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
        // Every phase as a problem of its own: the same numbers are refused, with the user's number.
        for (user, participant) in scenario.users.iter().enumerate() {
            for phase in 0..participant.phases.len() {
                Problem::new(width, [scenario.user_in_phase::<Rational>(user, phase)])
                    .map_err(|e| numbered(e, user))?;
            }
        }
        Ok(scenario)
    }

    /// The same users, in accounts: of each user the one it belongs to, `None` for directly under the
    /// root. An account has a claim while one of its users is there.
    ///
    /// # Errors
    /// If [`AccountTree::new`] refuses them, or there are not as many user_accounts as users.
    pub fn with_accounts(
        mut self,
        accounts: Vec<Account<Rational>>,
        user_accounts: Vec<Option<usize>>,
    ) -> Result<Scenario, ScenarioError> {
        let tree = AccountTree::new(accounts.clone(), user_accounts.clone())?;
        if tree.users() != self.users.len() {
            return Err(ProblemError::Accounts("it places another number of users").into());
        }
        self.accounts = Some(Accounts { accounts, user_accounts });
        Ok(self)
    }

    /// Whether users belong to accounts.
    pub(crate) fn has_accounts(&self) -> bool {
        self.accounts.is_some()
    }

    /// The accounts of these users, in their order; accounts without any of them are left out.
    pub(crate) fn tree<N: Number>(
        &self,
        present: impl Iterator<Item = usize>,
    ) -> Option<Result<AccountTree<N>, ProblemError>> {
        let Accounts { accounts, user_accounts } = self.accounts.as_ref()?;
        let user_accounts: Vec<Option<usize>> = present.map(|user| user_accounts[user]).collect();
        let mut is_used = vec![false; accounts.len()];
        user_accounts.iter().flatten().for_each(|home| is_used[*home] = true);
        // Parents come first, so one pass from the end reaches all of them.
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

    /// How many resources there are.
    pub fn resource_count(&self) -> usize {
        self.width
    }

    /// The users.
    pub fn users(&self) -> &[Participant] {
        &self.users
    }

    /// e_i = w_i / sum of w over all users of the scenario, whether they are there or not: a right does
    /// not grow because others sleep (paper 001 has the constant 1/n).
    pub fn entitlement(&self, user: usize) -> Rational {
        let sum = self.users.iter().fold(Rational::ZERO, |sum, u| sum + &u.weight);
        &self.users[user].weight / sum
    }

    /// A user in a phase, as a mechanism sees it.
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

/// The same complaint, about this user.
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
    fn what_is_no_scenario_is_refused_with_the_user_named() {
        let of = |phases: Vec<Phase>| {
            Scenario::new(1, [Participant::new([phase(0)]), Participant::new(phases)]).unwrap_err().to_string()
        };
        assert!(of(vec![]).contains("user 1 never comes"));
        assert!(of(vec![phase(3).until(q(3, 1))]).contains("phase 0 of user 1 ends at second 3"));
        assert!(of(vec![phase(0).until(q(5, 1)), phase(4)]).contains("phase 1 of user 1 begins at second 4"));
        assert!(of(vec![phase(0), phase(4)]).contains("phase 1 of user 1 begins"));
        assert!(of(vec![phase(0).work(q(0, 1))]).contains("work"));
        assert!(of(vec![Phase::new(q(0, 1), [q(0, 1)])]).contains("user 1 demands nothing"));
        assert!(of(vec![Phase::new(q(0, 1), [])]).contains("user 1 has 0 quantities"));
    }

    #[test]
    fn entitlements_are_of_all_users_and_add_up() {
        let users = [Participant::new([phase(0)]).weight(q(3, 1)), Participant::new([phase(100)])];
        let scenario = Scenario::new(1, users).unwrap();
        assert_eq!((scenario.entitlement(0), scenario.entitlement(1)), (q(3, 4), q(1, 4)));
    }
}
