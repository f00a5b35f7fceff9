//! A policy whose key is of the job: the user whose first job asks for most of the first resource.

use std::cmp::Reverse;

use evenhand_model::{Resource, Time, UserId};
use evenhand_policies::{Job, JobPriorities, LogPlace, Policy, Standing};

pub(crate) struct LargestFirst {
    /// By user: the priority of the first waiting job, and its place in the log.
    first: Vec<Option<(u32, LogPlace)>>,
    /// Whether it groups jobs.
    is_grouped: bool,
}

impl LargestFirst {
    pub(crate) fn new(users: usize, is_grouped: bool) -> LargestFirst {
        LargestFirst { first: vec![None; users], is_grouped }
    }
}

/// The first amount in whole units.
fn priority(job: &Job<'_>) -> u32 {
    u32::try_from(job.demand[0].0 / Resource::new("cpu", "").steps()).unwrap_or(u32::MAX)
}

impl Policy for LargestFirst {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.first[user.index()] = first.map(|job| (priority(job), job.place));
    }

    fn started(&mut self, _: Time, _: &Job<'_>) {}

    fn finished(&mut self, _: Time, _: &Job<'_>) {}

    fn next(&mut self, _: Time) -> Option<UserId> {
        let waiting = (0..).zip(&self.first).filter_map(|(user, first)| Some((user, (*first)?)));
        let first = waiting.min_by_key(|(_, (amount, place))| (Reverse(*amount), place.submitted, place.position));
        first.map(|(user, _)| UserId(user))
    }

    fn standing(&mut self, _: Time, _: UserId) -> Standing {
        Standing::default()
    }

    fn job_priorities(&mut self) -> Option<&mut dyn JobPriorities> {
        self.is_grouped.then_some(self)
    }
}

impl JobPriorities for LargestFirst {
    fn update(&mut self, _: Time) {}

    fn priority(&mut self, _: Time, job: &Job<'_>) -> u32 {
        priority(job)
    }

    /// Finer than need be, so that jobs of two groups tie.
    fn group(&mut self, job: &Job<'_>) -> Option<u64> {
        Some((u64::from(priority(job)) << 32) | (job.requested.nanos() % 3))
    }
}
