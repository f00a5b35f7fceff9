//! The noise of a study that was repeated, below its table.

use evenhand_model::counted;
use evenhand_model::duration_text::interval;
use evenhand_study::record::{ComparisonRecord, Estimate, RepeatsRecord, RunRecord, StudyRecord};

use crate::output::human_units;
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

/// How many repeats are suggested: their intervals are reasonable.
const SUGGESTED: u32 = 10;

/// Returns the cost of repeats of a study that was not repeated, as a sentence.
pub(super) fn cost(record: &StudyRecord, threads: usize) -> Option<String> {
    if record.repeats.is_some() || record.comparisons.is_empty() {
        return None;
    }
    let once: f64 = record.runs.iter().filter(|run| run.scheduler.is_some()).map(|run| run.elapsed_s).sum();
    // Variations are drawn and measured, too, which takes about as long as a short simulation.
    let all = 2.0 * f64::from(SUGGESTED - 1) * once / threads.max(1) as f64;
    let time = human_units::duration(all.max(1.0).ceil());
    Some(format!(
        "Which differences are luck was not measured: --repeat {SUGGESTED} finds out in about {time}, in the same folder."
    ))
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
    format!("{}; what varies: {}", counted(repeats.done, "repeat", "repeats"), vary.join(", "))
}

/// Returns the table of intervals; empty if the study was not repeated.
pub(super) fn table(
    record: &StudyRecord,
    names: impl Fn(&RunRecord) -> [String; 2],
    wait: impl Fn(f64) -> String,
    against: &str,
) -> String {
    let Some(repeats) = &record.repeats else { return String::new() };
    let of_estimate = |estimate: Option<Estimate>, sign: fn(f64) -> &'static str| match estimate {
        None => "-".to_string(),
        Some(Estimate { interval: ends, .. }) => interval(ends.map(|end| format!("{}{}", sign(end), wait(end)))),
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
            of_estimate(noise.and_then(|n| n.mean_wait_s), plain),
            of_estimate(noise.and_then(|n| n.users_mean_wait_s), plain),
            of_estimate(difference, signed),
        ]);
    }
    format!("\n\n95 % of repeats lie between ({}):\n\n{}", describe(repeats), table.render())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_repeats_counts_simulated_runs_and_threads() {
        let run = |scheduler: Option<&str>, elapsed_s| RunRecord {
            scheduler: scheduler.map(str::to_string),
            elapsed_s,
            ..RunRecord::default()
        };
        let runs = vec![run(None, 50.0), run(Some("easy"), 2.0), run(Some("easy"), 3.0)];
        let mut record = StudyRecord { runs, comparisons: vec![ComparisonRecord::default()], ..StudyRecord::default() };
        assert!(cost(&record, 2).unwrap().contains("--repeat 10 finds out in about 45 s"), "{:?}", cost(&record, 2));
        record.repeats = Some(RepeatsRecord::default());
        assert_eq!(cost(&record, 2), None);
    }
}
