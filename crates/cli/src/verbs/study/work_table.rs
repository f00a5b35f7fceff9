//! What users get done, below the table of a study in which they react.

use evenhand_study::record::{RunRecord, StudyRecord, WorkComparison};

use super::noise_table::WITHIN_NOISE;
use crate::output::fold_lines::COLUMNS;
use crate::output::human_units;
use crate::output::table::Table;

/// Returns the table; empty if submissions are those of the log.
pub(super) fn table(
    record: &StudyRecord,
    names: impl Fn(&RunRecord) -> [String; 2],
    time: impl Fn(f64) -> String,
    against: &str,
) -> String {
    let Some(first) = record.runs.iter().find_map(|run| run.work.as_ref()) else { return String::new() };
    let header = ["capacity", "policy", "tasks a day", "change", "work", "users' finish", "change", "earlier", "later"];
    let mut table = Table::new(2, header);
    for run in &record.runs {
        let Some(done) = &run.work else { continue };
        let comparison = record.comparisons.iter().find(|c| c.run == run.id).and_then(|c| c.work.as_ref());
        let of = |cell: &dyn Fn(&WorkComparison) -> Option<String>| comparison.and_then(cell).unwrap_or("-".into());
        let mark = |is_within: bool| if is_within { WITHIN_NOISE } else { "" };
        let [capacity, policy] = names(run);
        table.row(vec![
            capacity,
            policy,
            format!("{:.0}", done.tasks_per_day),
            of(&|c| {
                let is_within = c.tasks_change.is_some_and(|change| change.includes_zero());
                Some(percent(c.tasks_in_window_change?) + mark(is_within))
            }),
            of(&|c| {
                let changes =
                    c.work_in_window_change.iter().map(|(name, change)| format!("{name} {}", percent(*change)));
                Some(changes.collect::<Vec<_>>().join(", "))
            }),
            done.users_mean_finish_s.map_or("-".into(), &time),
            of(&|c| {
                let is_within = c.finish_difference_s.is_some_and(|difference| difference.includes_zero());
                let difference = c.users_mean_finish_difference_s?;
                Some(if difference > 0.0 { "+" } else { "" }.to_string() + &time(difference) + mark(is_within))
            }),
            of(&|c| Some(c.users_earlier_beyond_noise.unwrap_or(c.users_earlier).to_string())),
            of(&|c| Some(c.users_later_beyond_noise.unwrap_or(c.users_later).to_string())),
        ]);
    }
    let rule = match first.arrivals.as_str() {
        "sessions" => "Users come as in the log, wait for their tasks and think as in the log",
        _ => "Users wait for their tasks and think as in the log",
    };
    let noise = if record.repeats.is_some() { " beyond the noise" } else { "" };
    format!(
        "\n\n{rule}; in {} they get done:\n\n{}\n\ntasks a day, work: what is done between the log's first and last submission, against {against}\n\
         users' finish: mean over users of the time from first submission to last end\n\
         earlier, later: users whose finish comes earlier or later{noise}",
        human_units::duration(first.window_s),
        table.fit(COLUMNS, &["work"]).render(),
    )
}

fn percent(change: f64) -> String {
    format!("{:+.1} %", 100.0 * change)
}
