//! The users who gain and lose most by each policy, below a study's table.

use evenhand_study::record::{RunRecord, StudyRecord};

use crate::output::fold_lines::COLUMNS;
use crate::output::table::printable;

/// The users that are named on each side.
const NAMED: usize = 3;

/// Returns a line for each run that is compared: the users whose mean wait falls and rises most. `wait` formats seconds.
pub(super) fn lines(
    record: &StudyRecord,
    wait: impl Fn(f64) -> String,
    policy_name: impl Fn(&RunRecord, &StudyRecord) -> String,
    capacity_name: impl Fn(&RunRecord) -> String,
) -> String {
    let mut lines = String::new();
    for comparison in &record.comparisons {
        let run = |id: &str| record.runs.iter().find(|run| run.id == id);
        let (Some(run), Some(against)) = (run(&comparison.run), run(&comparison.against)) else { continue };
        let mut changes: Vec<(f64, &str)> = Vec::new();
        // The runs of a study have the same users in the same order.
        for (user, other) in run.users.iter().zip(&against.users) {
            // Of a repeated study only what is no luck.
            if record.repeats.is_some() && !user.beyond_noise {
                continue;
            }
            if let (Some(now), Some(then)) = (user.mean_wait_s, other.mean_wait_s) {
                changes.push((now - then, &user.name));
            }
        }
        changes.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
        let named = |changes: &mut dyn Iterator<Item = &(f64, &str)>| -> Vec<String> {
            let sign = |change: f64| if change > 0.0 { "+" } else { "" };
            let name = |(change, user): &(f64, &str)| format!("{} {}{}", printable(user), sign(*change), wait(*change));
            changes.take(NAMED).map(name).collect()
        };
        let winners = named(&mut changes.iter().filter(|(change, _)| *change < 0.0));
        let losers = named(&mut changes.iter().rev().filter(|(change, _)| *change > 0.0));
        if winners.is_empty() && losers.is_empty() {
            continue;
        }
        let or_nobody = |list: Vec<String>| if list.is_empty() { "nobody".to_string() } else { list.join(", ") };
        let head = format!("{}, {}:", capacity_name(run), policy_name(run, record));
        let gain = format!("gain most: {}", or_nobody(winners));
        let lose = format!("lose most: {}", or_nobody(losers));
        let one = format!("{head} {gain}; {lose}");
        let text = if one.chars().count() <= COLUMNS { one } else { format!("{head} {gain}\n    {lose}") };
        lines += &format!("\n{text}");
    }
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}
