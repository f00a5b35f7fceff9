//! Ties: which of two users with equal keys goes first.
//!
//! The user goes first whose first pending job stands earlier in the log, as in Slurm and in other simulators. A rule by
//! user number would prefer the same users at every tie, and ties are frequent where jobs have round sizes.

use std::cmp::Ordering;

use evenhand_model::{Time, UserId};

use crate::Job;

/// The place of a job in the log: by submission, then by position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPlace {
    /// When the job was submitted.
    pub submitted: Time,
    /// Its position among the jobs submitted at that time: in a replay its row in the workload, on a live engine its
    /// number there.
    pub position: u64,
    /// What decides ties before the place does: 0 for every job, unless [`DrawnTies`](crate::DrawnTies) draws it.
    pub draw: u64,
}

impl LogPlace {
    /// Creates the place of a job; ties are decided by the place.
    pub fn new(submitted: Time, position: u64) -> LogPlace {
        LogPlace { submitted, position, draw: 0 }
    }
}

/// The tie rule: of two users the one whose first pending job has the lower draw, then the lower place in the log, then
/// the one with the lower number, which decides only where a caller gives no positions.
#[derive(Clone, Debug)]
pub struct TieRule {
    /// By user: the place of its first pending job, or of its last first one.
    first: Vec<LogPlace>,
}

impl TieRule {
    /// Creates the rule for users 0 to n - 1.
    pub fn new(users: usize) -> TieRule {
        TieRule { first: vec![LogPlace::default(); users] }
    }

    /// Records a user's first pending job; `None` changes nothing.
    #[inline]
    pub fn set_first_pending(&mut self, user: UserId, first: Option<&Job<'_>>) {
        if let Some(job) = first {
            self.first[user.index()] = job.place;
        }
    }

    /// Returns the place of a user's first pending job, or of its last first one.
    #[inline]
    pub fn place(&self, user: UserId) -> LogPlace {
        self.first[user.index()]
    }

    /// Compares two users with equal keys: `Less` if `a` goes first.
    #[inline]
    pub fn compare(&self, a: UserId, b: UserId) -> Ordering {
        let key = |user: UserId| {
            let LogPlace { submitted, position, draw } = self.first[user.index()];
            (draw, submitted, position, user)
        };
        key(a).cmp(&key(b))
    }
}
