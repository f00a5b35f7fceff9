//! Generates submission times: sessions of work, with a daily and a weekly profile.

use evenhand_model::random::Stream;

/// Jobs per hour of the day over their mean, from the start of Google's trace (19:00 local time), measured over 29
/// days.
const HOURS: [f64; 24] = [
    1.04, 1.02, 0.94, 0.88, 0.84, 1.10, 1.00, 0.97, 0.94, 1.10, 0.84, 0.83, 0.88, 0.95, 0.93, 1.05, 1.01, 0.97, 0.98,
    0.93, 1.07, 1.18, 1.15, 1.05,
];
/// Jobs per day of the week over their mean. The trace starts on a Sunday evening; its quiet days are 5 and 6.
const DAYS: [f64; 7] = [1.02, 1.06, 1.04, 1.06, 1.04, 0.96, 0.82];

/// The cumulative rate of submission over a period, which maps uniform random numbers to times.
pub(super) struct ArrivalProfile {
    horizon_us: u64,
    /// The share of all submissions before the start of each hour.
    before: Vec<f64>,
}

const HOUR_US: f64 = 3_600e6;

impl ArrivalProfile {
    pub(super) fn new(horizon_us: u64) -> ArrivalProfile {
        let hours = (horizon_us as f64 / HOUR_US).ceil().max(1.0) as usize;
        let mut before = Vec::with_capacity(hours + 1);
        let mut sum = 0.0;
        for hour in 0..hours {
            before.push(sum);
            // The last hour may be cut short.
            let share = (horizon_us as f64 / HOUR_US - hour as f64).min(1.0);
            sum += HOURS[hour % 24] * DAYS[hour / 24 % 7] * share;
        }
        before.push(sum);
        before.iter_mut().for_each(|b| *b /= sum);
        ArrivalProfile { horizon_us, before }
    }

    /// Returns the length of the period in microseconds.
    pub(super) fn horizon_us(&self) -> u64 {
        self.horizon_us
    }

    /// Returns the time in microseconds before which the fraction `p` of all submissions happens.
    fn time(&self, p: f64) -> u64 {
        let hour = self.before.partition_point(|&b| b <= p).clamp(1, self.before.len() - 1) - 1;
        let (from, to) = (self.before[hour], self.before[hour + 1]);
        let length = (self.horizon_us as f64 - hour as f64 * HOUR_US).min(HOUR_US);
        let t = hour as f64 * HOUR_US + length * (p - from) / (to - from);
        (t as u64).min(self.horizon_us - 1)
    }
}

/// The pattern in which the jobs of a user follow each other.
pub(super) struct SubmissionPattern {
    /// The exponent of the number of sessions: a user with n jobs has about n^`sessions` of them.
    pub(super) sessions: f64,
    /// The probability that a job follows the one before immediately.
    pub(super) at_once: f64,
    /// The longest gap between jobs that follow immediately, in microseconds.
    pub(super) at_once_us: u64,
    /// The mean pause between other jobs of a session, in microseconds.
    pub(super) pause_us: f64,
}

/// Generates the submission times of the jobs of one user, in microseconds from the start, session by session.
pub(super) fn submissions(
    jobs: usize,
    profile: &ArrivalProfile,
    pattern: &SubmissionPattern,
    random: &mut Stream,
) -> Vec<u64> {
    let horizon = profile.horizon_us();
    let sessions = libm::pow(jobs as f64, pattern.sessions).max(1.0);
    let mean = jobs as f64 / sessions;
    // In a short period, sessions are short, too.
    let pause = pattern.pause_us.min(horizon as f64 / 8.0);
    let mut times = Vec::with_capacity(jobs);
    while times.len() < jobs {
        let length = (1.0 + random.exponential(mean - 1.0)) as usize;
        let mut t = profile.time(random.uniform());
        for _ in 0..length.clamp(1, jobs - times.len()) {
            times.push(t % horizon);
            t += if random.uniform() < pattern.at_once {
                1 + random.below(pattern.at_once_us)
            } else {
                1 + random.exponential(pause) as u64
            };
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submissions_fill_the_period_and_follow_the_week() {
        for horizon in [1, 1_000_000, 90_000_000_000, 29 * 86_400_000_000] {
            let r = ArrivalProfile::new(horizon);
            assert_eq!(r.time(0.0), 0);
            assert!(r.time(1.0) < horizon && r.time(0.999_999) >= horizon / 2);
        }
        let r = ArrivalProfile::new(28 * 86_400_000_000);
        let mut random = Stream::new(1, "profile", 0);
        let mut days = [0u32; 28];
        for _ in 0..100_000 {
            days[(r.time(random.uniform()) / 86_400_000_000) as usize] += 1;
        }
        assert!(days[6] < days[0] && days[13] < days[8]);
    }

    #[test]
    fn a_user_has_as_many_submissions_as_jobs() {
        let pattern = SubmissionPattern { sessions: 0.6, at_once: 0.25, at_once_us: 3000, pause_us: 1e8 };
        for jobs in [1, 2, 17, 1000] {
            let times = submissions(jobs, &ArrivalProfile::new(1_000_000), &pattern, &mut Stream::new(1, "jobs", 0));
            assert_eq!(times.len(), jobs);
            assert!(times.iter().all(|&t| t < 1_000_000));
        }
    }
}
