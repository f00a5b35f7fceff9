//! A policy whose key is of the job: the user whose first job asks for most of the first resource.

use std::cmp::Reverse;

use evenhand_model::{Time, UserId};
use evenhand_policies::{Job, LogPlace, Policy, Standing};

/// By user: the first waiting job's first amount, and its place in the log.
pub(crate) struct LargestFirst(Vec<Option<(u64, LogPlace)>>);

impl LargestFirst {
    pub(crate) fn new(users: usize) -> LargestFirst {
        LargestFirst(vec![None; users])
    }
}

impl Policy for LargestFirst {
    fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        self.0[user.index()] = first.map(|job| (job.demand[0].0, job.place));
    }

    fn started(&mut self, _: Time, _: &Job<'_>) {}

    fn finished(&mut self, _: Time, _: &Job<'_>) {}

    fn next(&mut self, _: Time) -> Option<UserId> {
        let waiting = (0..).zip(&self.0).filter_map(|(user, first)| Some((user, (*first)?)));
        let first = waiting.min_by_key(|(_, (amount, place))| (Reverse(*amount), place.submitted, place.position));
        first.map(|(user, _)| UserId(user))
    }

    fn standing(&mut self, _: Time, _: UserId) -> Standing {
        Standing::default()
    }
}
