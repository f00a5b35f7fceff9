//! When tasks are submitted: at the times of the log, or as users react to the ends of their tasks.
//!
//! A log's times of submission are an effect of the scheduler that made it: users wait for results, look at them, and
//! submit what follows. A replay that keeps the times keeps the load of that scheduler, and cannot show that users get
//! more done under a better policy. [`Reactions`] keeps what users did instead: what they waited for, and how long they
//! thought afterwards (Zakay and Feitelson, MASCOTS 2014; Shmueli and Feitelson, IEEE TPDS 2009).
//!
//! The rule, for the tasks of one user in the order of submission: task j was submitted after task j - 1, and after the
//! end of every earlier task that had ended by then (a task without duration: before then). The time from the latest of these events to its own submission is
//! its *think time*; if that is above [`SESSION_GAP`], the task opens a *session*. In a replay
//!
//! ```text
//! submission of j = the latest of the same events in the replay + think time of j
//! ```
//!
//! except that, with [`Arrivals::Sessions`], a task that opens a session is submitted at its time in the log, or at the
//! latest of these events if that is later. The first task of a user is always submitted at its time in the log. Thus a
//! replay whose starts are those of the log has its submissions, too, and each user's tasks keep their order.

mod reacted;
mod reactions;
mod submissions;

use evenhand_model::Span;

pub use reacted::Reacted;
pub use reactions::Reactions;
pub(crate) use submissions::{SubmissionTimes, Submissions};

/// What determines when tasks are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// The log's times.
    #[default]
    Clock,
    /// The log's times of sessions; within a session, the ends of the user's tasks and think times.
    Sessions,
    /// The ends of the user's tasks and think times, also between sessions.
    Closed,
}

/// The kinds of arrivals, by name.
pub const ARRIVALS: [(&str, Arrivals); 3] =
    [("clock", Arrivals::Clock), ("sessions", Arrivals::Sessions), ("closed", Arrivals::Closed)];

impl Arrivals {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        ARRIVALS.iter().find(|(_, arrivals)| *arrivals == self).map_or("", |(name, _)| name)
    }
}

/// A user who neither submits a task nor has one end for longer than this has left: the next task opens a session.
/// Twenty minutes, as Zakay and Feitelson have it.
pub const SESSION_GAP: Span = Span::from_secs(20 * 60);
