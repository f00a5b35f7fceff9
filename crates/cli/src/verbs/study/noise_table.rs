//! The noise of a study that was repeated, below its table.

use evenhand_study::record::{ComparisonRecord, Estimate, RepeatsRecord, RunRecord, StudyRecord};

use crate::output::table::Table;

/// Follows a number that differs from that of the compared policy by no more than the noise.
pub(super) const WITHIN_NOISE: &str = " ~";

/// Returns whether the mean over users of a run differs from that of the compared policy by no more than the noise.
pub(super) fn within_noise(comparison: &ComparisonRecord) -> bool {
    let difference = comparison.noise.as_ref().map(|noise| noise.users_mean_wait_difference_s);
    difference.is_some_and(|difference| difference.is_none_or(|d| d.includes_zero()))
}

/// Returns how many users are better or worse by no more than the noise.
pub(super) fn users_within_noise(comparison: &ComparisonRecord) -> Option<u64> {
    let beyond = comparison.users_better_beyond_noise? + comparison.users_worse_beyond_noise?;
    Some((comparison.users_better + comparison.users_worse).saturating_sub(beyond))
}

/// Describes how the repeats were made.
pub(super) fn describe(repeats: &RepeatsRecord) -> String {
    let resolution = match repeats.resolution_s {
        s if s < 1e-6 => "1 ns".to_string(),
        s if s < 1e-3 => "1 µs".to_string(),
        s if s < 1.0 => "1 ms".to_string(),
        s => format!("{s:.0} s"),
    };
    let vary = |name: &String| match name.as_str() {
        "arrivals" => format!("arrivals within {resolution}"),
        name => name.to_string(),
    };
    let vary: Vec<String> = repeats.vary.iter().map(vary).collect();
    format!("{} repeats; what varies: {}", repeats.done, vary.join(", "))
}

/// Returns the table of intervals; empty if the study was not repeated.
pub(super) fn table(
    record: &StudyRecord,
    names: impl Fn(&RunRecord) -> [String; 2],
    wait: impl Fn(f64) -> String,
    against: &str,
) -> String {
    let Some(repeats) = &record.repeats else { return String::new() };
    let interval = |estimate: Option<Estimate>, sign: fn(f64) -> &'static str| match estimate {
        None => "-".to_string(),
        Some(Estimate { interval: [low, high], .. }) => {
            format!("{}{} to {}{}", sign(low), wait(low), sign(high), wait(high))
        }
    };
    let plain = |_: f64| "";
    let signed = |x: f64| if x > 0.0 { "+" } else { "" };
    let mut table =
        Table::new(2, ["capacity", "policy", "mean wait", "users' mean", &format!("users' mean against {against}")]);
    for run in &record.runs {
        let [capacity, policy] = names(run);
        let noise = run.noise.as_ref();
        let comparison = record.comparisons.iter().find(|c| c.run == run.id);
        let difference = comparison.and_then(|c| c.noise.as_ref()).and_then(|n| n.users_mean_wait_difference_s);
        table.row(vec![
            capacity,
            policy,
            interval(noise.and_then(|n| n.mean_wait_s), plain),
            interval(noise.and_then(|n| n.users_mean_wait_s), plain),
            interval(difference, signed),
        ]);
    }
    format!("\n\n95 % of repeats lie between ({}):\n\n{}", describe(repeats), table.render())
}
