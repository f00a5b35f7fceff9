//! When the use of jobs is charged to their users, under policies that give jobs priorities.
//!
//! slurmctld charges running jobs whenever it computes priorities, for the time since it last did. What a job used after that when it
//! ends is charged only where limits are enforced: else `_adjust_limit_usage` of `acct_policy.c` (22.05 and 26.05) returns before it calls
//! `priority_g_job_end`, and the use is never charged.

use std::collections::BTreeMap;

use evenhand_model::{Amount, Time};
use evenhand_policies::{Job, Policy};

/// A job that runs, and what it is charged for if that is more than it asks for.
#[derive(Clone, Debug)]
pub(super) struct ChargedJob<'a> {
    pub(super) job: Job<'a>,
    pub(super) amounts: Option<Box<[Amount]>>,
}

impl ChargedJob<'_> {
    /// The job, as policies are notified of it.
    pub(super) fn job(&self) -> Job<'_> {
        Job { demand: self.amounts.as_deref().unwrap_or(self.job.demand), ..self.job }
    }
}

/// The starts and ends since priorities were last computed, of which the policy is notified when they are computed next.
#[derive(Default)]
pub(super) struct Charges<'a> {
    /// By row: the start of a job that runs.
    started: BTreeMap<u32, (Time, ChargedJob<'a>)>,
    /// Jobs that ran then and have ended since.
    ended: Vec<ChargedJob<'a>>,
}

impl<'a> Charges<'a> {
    pub(super) fn started(&mut self, now: Time, row: u32, job: ChargedJob<'a>) {
        self.started.insert(row, (now, job));
    }

    pub(super) fn ended(&mut self, row: u32, job: ChargedJob<'a>) {
        if self.started.remove(&row).is_none() {
            self.ended.push(job);
        }
    }

    /// Notifies the policy, before priorities are computed anew; they were last computed at `last`.
    pub(super) fn settle(&mut self, last: Time, policy: &mut dyn Policy) {
        for job in self.ended.drain(..) {
            policy.finished(last, &job.job());
        }
        let mut started: Vec<(Time, ChargedJob<'_>)> = std::mem::take(&mut self.started).into_values().collect();
        started.sort_by_key(|(start, _)| *start);
        for (start, job) in started {
            policy.started(start, &job.job());
        }
    }
}
