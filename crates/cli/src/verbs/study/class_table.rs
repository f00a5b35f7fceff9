//! The table of `--classes`: results by class of users and tasks.

use evenhand_model::duration_text::interval;
use evenhand_study::record::{ClassComparison, RunRecord, StudyRecord};

use super::noise_table::WITHIN_NOISE;
use crate::output::fold_lines::table_width;
use crate::output::numbers::rounded;
use crate::output::table::Table;

/// Returns the table of all runs, with the meaning of its columns below. `against`: the compared policy.
pub(super) fn table(
    record: &StudyRecord,
    names: impl Fn(&RunRecord) -> [String; 2],
    wait: impl Fn(f64) -> String,
    against: &str,
) -> String {
    let is_repeated = record.repeats.is_some();
    let mut header = vec!["capacity", "policy", "class", "users", "tasks", "mean wait"];
    header.extend(is_repeated.then_some("95 % of repeats"));
    header.extend(["slowdown", "completed", "better", "worse"]);
    let mut table = Table::new(3, header);
    for run in &record.runs {
        let comparison = record.comparisons.iter().find(|comparison| comparison.run == run.id);
        for class in &run.classes {
            let [capacity, policy] = names(run);
            let compared = comparison.and_then(|comparison| {
                comparison.classes.iter().find(|other| (&other.by, &other.class) == (&class.by, &class.class))
            });
            let count = |of: fn(&ClassComparison) -> Option<u64>| {
                compared.and_then(of).map_or("-".to_string(), |count| count.to_string())
            };
            let is_noise = class.difference_interval_s.is_some() && !class.beyond_noise;
            let mut row = vec![
                capacity,
                policy,
                class.class.clone(),
                class.users.to_string(),
                class.totals.submitted.to_string(),
                class.mean_wait_s.map_or("-".into(), &wait) + if is_noise { WITHIN_NOISE } else { "" },
            ];
            let of_class = |ends: [f64; 2]| interval(ends.map(&wait));
            row.extend(is_repeated.then(|| class.wait_interval_s.map_or("-".into(), of_class)));
            row.extend([
                class.mean_bounded_slowdown.map_or("-".into(), rounded),
                class.totals.completed.to_string(),
                count(|class| class.users_better_beyond_noise.or(class.users_better)),
                count(|class| class.users_worse_beyond_noise.or(class.users_worse)),
            ]);
            table.row(row);
        }
    }
    let [counted, noise] = match is_repeated {
        true => [
            " beyond the noise",
            &format!("\n~: the mean wait differs from that under {against} by no more than the noise"),
        ],
        false => ["", ""],
    };
    format!(
        "\n\n{}\n\nsporadic, heavy: tasks of users who use of no resource, or of some, more than their entitlement\n\
         small, large; short, long: tasks up to the median size, or run time, and above it\n\
         better, worse: users of the class whose mean wait falls or rises against {against}{counted}{noise}",
        table.fit(table_width(), &["completed", "users", "slowdown"]).render()
    )
}
