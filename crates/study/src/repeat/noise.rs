//! Intervals and verdicts from the repeats of a study.

use serde::{Deserialize, Serialize};

use super::measurements::Measured;
use super::run_repeats::MeasuredRuns;
use super::statistics::predicted;
use super::{Repeats, resolution};
use crate::class_results::BY_USE;
use crate::compare_classes::reduction;
use crate::compare_runs::{Change, change, mean_reduction};
use crate::record::{ComparisonRecord, RunRecord, StudyRecord, UserRecord, WorkComparison};
use crate::work_done::{mean_difference, relative_change};

/// A mean over repeats, with the interval in which another repeat lies with 95 % probability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean over repeats.
    pub mean: f64,
    /// The interval.
    pub interval: [f64; 2],
}

impl Estimate {
    fn of(values: &[f64]) -> Option<Estimate> {
        predicted(values).map(|(mean, interval)| Estimate { mean, interval })
    }

    /// An estimate of what is never negative.
    fn of_amount(values: &[f64]) -> Option<Estimate> {
        let Estimate { mean, interval: [low, high] } = Estimate::of(values)?;
        Some(Estimate { mean, interval: [low.max(0.0), high] })
    }

    /// Returns whether zero is in the interval.
    pub fn includes_zero(&self) -> bool {
        self.interval[0] <= 0.0 && self.interval[1] >= 0.0
    }
}

/// How the repeats of a study were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepeatsRecord {
    /// How many were asked for, the run of the log itself included.
    pub asked: u32,
    /// How many were made of every run.
    pub done: u32,
    /// What varied: `ties`, `arrivals`, `weeks`, `users`.
    pub vary: Vec<String>,
    /// The resolution of the log's submissions, within which arrivals move.
    pub resolution_s: f64,
    /// The seed.
    pub seed: u64,
}

/// The noise of one run. What is absent does not exist in two repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunNoise {
    /// Mean wait over all started tasks.
    pub mean_wait_s: Option<Estimate>,
    /// Mean over users of their mean waits.
    pub users_mean_wait_s: Option<Estimate>,
    /// Mean bounded slowdown.
    pub mean_bounded_slowdown: Option<Estimate>,
    /// Jain's index over users' mean waits.
    pub jain_wait: Option<Estimate>,
}

/// The noise of a comparison: estimates of paired differences, repeat by repeat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonNoise {
    /// Difference of the mean waits over all tasks.
    pub mean_wait_difference_s: Option<Estimate>,
    /// Difference of the means over users of their mean waits.
    pub users_mean_wait_difference_s: Option<Estimate>,
    /// The reduction `users_mean_wait_reduction`.
    pub users_mean_wait_reduction: Option<Estimate>,
    /// The reduction `mean_user_wait_reduction`.
    pub mean_user_wait_reduction: Option<Estimate>,
}

/// Adds intervals and verdicts to the record of a study. `heavy`: by user, whether it is in the class of heavy users.
pub(crate) fn add_noise(
    record: &mut StudyRecord,
    workload: &evenhand_model::Workload,
    heavy: &[bool],
    repeats: &Repeats,
    runs: &MeasuredRuns,
) {
    let of = |id: &str| runs.get(id).map_or(&[][..], Vec::as_slice);
    let done = record.runs.iter().map(|run| of(&run.id).len()).min().unwrap_or(0);
    record.repeats = Some(RepeatsRecord {
        asked: repeats.count,
        done: done as u32,
        vary: repeats.vary.iter().map(|vary| vary.name().to_string()).collect(),
        resolution_s: resolution(workload).secs_f64(),
        seed: repeats.seed,
    });
    for run in &mut record.runs {
        let measured = &of(&run.id)[..done];
        run.noise = Some(run_noise(measured));
        for (user, record) in run.users.iter_mut().enumerate() {
            let waits: Vec<f64> = measured.iter().filter_map(|m| m.waits[user]).collect();
            record.wait_interval_s = Estimate::of_amount(&waits).map(|estimate| estimate.interval);
        }
        for (at, class) in run.classes.iter_mut().enumerate() {
            let [waits, slowdowns] = [0, 1].map(|which| {
                let numbers: Vec<f64> = measured.iter().filter_map(|m| m.classes.get(at)?[which]).collect();
                Estimate::of_amount(&numbers).map(|estimate| estimate.interval)
            });
            (class.wait_interval_s, class.slowdown_interval) = (waits, slowdowns);
        }
    }
    let StudyRecord { runs, comparisons, .. } = record;
    for comparison in comparisons {
        let (now, then) = (&of(&comparison.run)[..done], &of(&comparison.against)[..done]);
        let undisturbed: Vec<Option<f64>> = runs
            .iter()
            .find(|run| run.id == comparison.against)
            .map_or(Vec::new(), |run| run.users.iter().map(|user| user.mean_wait_s).collect());
        if let Some(run) = runs.iter_mut().find(|run| run.id == comparison.run) {
            compare_repeats(comparison, run, &undisturbed, now, then);
            compare_class_repeats(comparison, run, heavy, now, then);
        }
    }
}

/// Completes the differences of the classes of a run, and their comparison. The first repeat is the log itself, which must
/// agree.
fn compare_class_repeats(
    comparison: &mut ComparisonRecord,
    run: &mut RunRecord,
    heavy: &[bool],
    now: &[Measured],
    then: &[Measured],
) {
    for (at, class) in run.classes.iter_mut().enumerate() {
        let wait = |m: &Measured| m.classes.get(at).and_then(|[wait, _]| *wait);
        let pairs: Vec<(f64, f64)> = now.iter().zip(then).filter_map(|(a, b)| wait(a).zip(wait(b))).collect();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        let of_log = now.first().zip(then.first()).and_then(|(a, b)| wait(a).zip(wait(b)));
        let Some(estimate) = Estimate::of(&differences) else { continue };
        class.difference_interval_s = Some(estimate.interval);
        class.beyond_noise = match of_log.map(|(wait, other)| change(wait, other)) {
            Some(Change::Better) => estimate.interval[1] < 0.0,
            Some(Change::Worse) => estimate.interval[0] > 0.0,
            _ => false,
        };
        let compared = comparison.classes.iter_mut().find(|c| (&c.by, &c.class) == (&class.by, &class.class));
        let Some(compared) = compared else { continue };
        let reductions: Vec<f64> = pairs.iter().filter_map(|(a, b)| reduction(*a, *b)).collect();
        compared.mean_wait_reduction_interval = Estimate::of(&reductions).map(|estimate| estimate.interval);
    }
    for class in comparison.classes.iter_mut().filter(|class| class.by == BY_USE) {
        let users = run
            .users
            .iter()
            .zip(heavy)
            .filter(|(user, heavy)| user.beyond_noise && **heavy == (class.class == "heavy"));
        let below = |user: &UserRecord| user.difference_interval_s.is_some_and(|[_, high]| high < 0.0);
        let (better, worse): (Vec<_>, Vec<_>) = users.partition(|(user, _)| below(user));
        class.users_better_beyond_noise = Some(better.len() as u64);
        class.users_worse_beyond_noise = Some(worse.len() as u64);
    }
}

fn run_noise(measured: &[Measured]) -> RunNoise {
    let estimate = |number: fn(&Measured) -> Option<f64>| {
        Estimate::of_amount(&measured.iter().filter_map(number).collect::<Vec<f64>>())
    };
    RunNoise {
        mean_wait_s: estimate(|m| m.mean_wait_s),
        users_mean_wait_s: estimate(|m| m.users_mean_wait_s),
        mean_bounded_slowdown: estimate(|m| m.mean_bounded_slowdown),
        jain_wait: estimate(|m| m.jain_wait),
    }
}

/// Completes a comparison, and the differences of the users of its run. `against`: the users' waits in the other run of
/// the log itself.
fn compare_repeats(
    comparison: &mut ComparisonRecord,
    run: &mut RunRecord,
    against: &[Option<f64>],
    now: &[Measured],
    then: &[Measured],
) {
    let pairs = || now.iter().zip(then);
    let (mut better, mut worse) = (0, 0);
    for ((user, record), other) in run.users.iter_mut().enumerate().zip(against) {
        let differences: Vec<f64> = pairs().filter_map(|(a, b)| Some(a.waits[user]? - b.waits[user]?)).collect();
        let Some(estimate) = Estimate::of(&differences) else { continue };
        record.difference_interval_s = Some(estimate.interval);
        // The log itself must agree: what is counted here is a part of what the comparison counts.
        let change = record.mean_wait_s.zip(*other).map(|(wait, other)| change(wait, other));
        match change {
            Some(Change::Better) if estimate.interval[1] < 0.0 => better += 1,
            Some(Change::Worse) if estimate.interval[0] > 0.0 => worse += 1,
            _ => continue,
        }
        record.beyond_noise = true;
    }
    if let Some(work) = &mut comparison.work {
        compare_finishes(work, run, now, then);
    }
    let estimate = |number: &dyn Fn(&Measured, &Measured) -> Option<f64>| {
        Estimate::of(&pairs().filter_map(|(a, b)| number(a, b)).collect::<Vec<f64>>())
    };
    comparison.repeats = Some(now.len() as u64);
    comparison.users_better_beyond_noise = Some(better);
    comparison.users_worse_beyond_noise = Some(worse);
    comparison.noise = Some(ComparisonNoise {
        mean_wait_difference_s: estimate(&|a, b| Some(a.mean_wait_s? - b.mean_wait_s?)),
        users_mean_wait_difference_s: estimate(&|a, b| Some(a.users_mean_wait_s? - b.users_mean_wait_s?)),
        users_mean_wait_reduction: estimate(&|a, b| {
            let base = b.users_mean_wait_s.filter(|wait| *wait > 0.0)?;
            Some(1.0 - a.users_mean_wait_s? / base)
        }),
        mean_user_wait_reduction: estimate(&|a, b| {
            mean_reduction(a.waits.iter().zip(&b.waits).filter_map(|(a, b)| (*a).zip(*b)))
        }),
    });
}

/// Completes the comparison of what users get done.
fn compare_finishes(work: &mut WorkComparison, run: &RunRecord, now: &[Measured], then: &[Measured]) {
    let pairs = || now.iter().zip(then);
    let (mut earlier, mut later) = (0, 0);
    for user in 0..run.users.len() {
        let of = |m: &Measured| m.finishes.get(user).copied().flatten();
        let differences: Vec<f64> = pairs().filter_map(|(a, b)| Some(of(a)? - of(b)?)).collect();
        // The first repeat is the log itself, which must agree.
        let (Some(estimate), Some(of_log)) = (Estimate::of(&differences), differences.first()) else { continue };
        earlier += u64::from(estimate.interval[1] < 0.0 && *of_log < 0.0);
        later += u64::from(estimate.interval[0] > 0.0 && *of_log > 0.0);
    }
    let estimate = |number: &dyn Fn(&Measured, &Measured) -> Option<f64>| {
        Estimate::of(&pairs().filter_map(|(a, b)| number(a, b)).collect::<Vec<f64>>())
    };
    work.users_earlier_beyond_noise = Some(earlier);
    work.users_later_beyond_noise = Some(later);
    work.finish_difference_s =
        estimate(&|a, b| mean_difference(a.finishes.iter().copied().zip(b.finishes.iter().copied())));
    work.tasks_change = estimate(&|a, b| relative_change(a.tasks_in_window? as f64, b.tasks_in_window? as f64));
}
