//! Ties in a drawn order, to find out how much of a result depends on them.

use evenhand_model::random::Stream;
use evenhand_model::{Time, UserId};

use crate::{Job, JobPriorities, LogPlace, Policy, Standing};

/// A policy whose ties go by lot instead of by the log: each job draws a number from `seed` and its position, and of two
/// users with equal keys the one whose first pending job drew the lower number goes first.
///
/// Everything else, the keys above all, is the policy's own. The same seed and positions give the same order on every
/// machine, whichever policy it is, so that policies can be compared under the same draws.
///
/// ```
/// use evenhand_model::{Amount, Capacity, Rational, Resource, Time, UserId, Weights};
/// use evenhand_policies::{DrawnTies, Job, Policy, PolicyContext, Registry};
///
/// let capacity = Capacity::new(&[Resource::new("cpu", "")], vec![Rational::from(4)]).unwrap();
/// let weights = Weights::equal(2);
/// let first = |seed| {
///     let drf = Registry::built_in().build("drf", &PolicyContext::new(&capacity, &weights)).unwrap();
///     let mut policy = DrawnTies::new(drf, seed);
///     for user in 0..2 {
///         let job = Job::new(UserId(user), &[Amount(1)]).at(Time::from_secs(0), u64::from(user));
///         policy.set_first_pending(UserId(user), Some(&job));
///     }
///     policy.next(Time::from_secs(0)).unwrap()
/// };
/// // By the log it is always the first user.
/// assert!((0..20).any(|seed| first(seed) == UserId(0)));
/// assert!((0..20).any(|seed| first(seed) == UserId(1)));
/// ```
pub struct DrawnTies {
    policy: Box<dyn Policy>,
    seed: u64,
}

impl DrawnTies {
    /// Draws the ties of `policy`, which must be newly built.
    pub fn new(policy: Box<dyn Policy>, seed: u64) -> DrawnTies {
        DrawnTies { policy, seed }
    }

    /// Returns the number that the job at `position` of the log draws.
    pub fn draw(seed: u64, position: u64) -> u64 {
        Stream::new(seed, "ties", position).bits()
    }
}

impl Policy for DrawnTies {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        let drawn = |job: &Job<'_>| {
            let draw = DrawnTies::draw(self.seed, job.place.position);
            LogPlace { draw, ..job.place }
        };
        let first = first.map(|job| Job { place: drawn(job), ..*job });
        self.policy.set_first_pending(user, first.as_ref());
    }

    fn started(&mut self, now: Time, job: &Job<'_>) {
        self.policy.started(now, job);
    }

    fn finished(&mut self, now: Time, job: &Job<'_>) {
        self.policy.finished(now, job);
    }

    fn next(&mut self, now: Time) -> Option<UserId> {
        self.policy.next(now)
    }

    fn standing(&mut self, now: Time, user: UserId) -> Standing {
        self.policy.standing(now, user)
    }

    fn depends_on_job_details(&self) -> bool {
        self.policy.depends_on_job_details()
    }

    /// The draw is noise: which of a user's jobs draws makes no difference, so that a scheduler need not show all of them.
    fn key_depends_on_job(&self) -> bool {
        self.policy.key_depends_on_job()
    }

    /// Those of the policy: a caller that orders jobs decides ties itself, by the log.
    fn job_priorities(&mut self) -> Option<&mut dyn JobPriorities> {
        self.policy.job_priorities()
    }

    fn order_events(&self) -> u64 {
        self.policy.order_events()
    }
}
