//! Repeats of a study: how much of a difference between policies is the policy, and how much is luck.
//!
//! A trace is one of many that could have been recorded. Which of two jobs of the same second came first, how ties
//! between users were decided, and which week was busy, is luck; but a simulation depends on it. A repeat replays a
//! [`variation`](Variation) of the trace that is as likely as the trace itself, under every policy, so that policies are
//! compared pair by pair. A difference that is smaller than how much it varies is within the noise.

mod default_count;
mod measurements;
mod noise;
mod run_repeats;
mod statistics;
mod variation;

use evenhand_model::{Time, Workload};
use evenhand_simulator::Arrivals;
use thiserror::Error;

pub use default_count::DEFAULT_REPEATS;
pub use measurements::Measured;
pub(crate) use noise::add_noise;
pub use noise::{ComparisonNoise, Estimate, RepeatsRecord, RunNoise};
pub use statistics::{predicted, t_quantile};
pub use variation::{Variation, resolution};

use crate::digest::Digest;

/// What varies between the repeats of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vary {
    /// The order of tasks of the same submission time, and which of two users with equal keys goes first.
    Ties,
    /// Submissions, within the resolution of the log.
    Arrivals,
    /// Which weeks of the log occur, in which order: whole weeks are drawn with replacement.
    Weeks,
    /// How users coincide: the tasks of each user move together by a drawn number of weeks.
    Users,
}

/// What can vary, by name.
pub const VARIATIONS: [(&str, Vary); 4] =
    [("ties", Vary::Ties), ("arrivals", Vary::Arrivals), ("weeks", Vary::Weeks), ("users", Vary::Users)];

impl Vary {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        VARIATIONS.iter().find(|(_, v)| *v == self).map_or("", |(name, _)| name)
    }

    /// Returns whether the log is resampled, which needs several weeks.
    fn resamples(self) -> bool {
        matches!(self, Vary::Weeks | Vary::Users)
    }
}

/// How often a study is repeated, and how the repeats differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// How many replays there are of each run; the first is that of the log as it is.
    pub count: u32,
    /// What varies.
    pub vary: Vec<Vary>,
    /// The seed from which variations are drawn.
    pub seed: u64,
}

/// Why a workload cannot be varied as requested.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RepeatError {
    /// Submissions follow from what users wait for.
    #[error(
        "--vary arrivals: moves submissions within the resolution of the log, but with --arrivals {arrivals} they follow \
         from the ends of tasks; expected ties, weeks or users"
    )]
    Reactions {
        /// What determines submissions.
        arrivals: &'static str,
    },
    /// There are too few weeks to draw from.
    #[error("--vary {name}: the submissions of the workload span {days:.1} days; expected two weeks or more", days = span.secs_f64() / 86_400.0)]
    TooShort {
        /// What was to vary.
        name: &'static str,
        /// From the first submission to the last.
        span: evenhand_model::Span,
    },
}

/// A week.
pub(crate) const WEEK: evenhand_model::Span = evenhand_model::Span::from_secs(7 * 86_400);

impl Repeats {
    /// Checks that a workload can be varied in this way.
    ///
    /// # Errors
    /// Returns an error if weeks are to be drawn from less than two of them, or submissions are to move that follow from
    /// the ends of tasks.
    pub fn check(&self, workload: &Workload, arrivals: Arrivals) -> Result<(), RepeatError> {
        if arrivals != Arrivals::Clock && self.vary.contains(&Vary::Arrivals) {
            return Err(RepeatError::Reactions { arrivals: arrivals.name() });
        }
        let submit = &workload.columns().submit;
        let (first, last): (Option<&Time>, Option<&Time>) = (submit.first(), submit.last());
        let span = first.zip(last).map(|(first, last)| *last - *first).unwrap_or_default();
        match self.vary.iter().find(|vary| vary.resamples() && span.nanos() < 2 * WEEK.nanos()) {
            Some(vary) => Err(RepeatError::TooShort { name: vary.name(), span }),
            None => Ok(()),
        }
    }

    /// Adds everything to a digest on which variations depend, apart from the workload. More repeats add variations and
    /// leave the others as they are.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text("repeats 2").number(self.seed);
        VARIATIONS.iter().filter(|(_, vary)| self.vary.contains(vary)).for_each(|(name, _)| {
            digest.text(name);
        });
    }
}
