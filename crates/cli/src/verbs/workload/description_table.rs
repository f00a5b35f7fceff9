//! The description of a workload as text.

use evenhand_model::calendar::date_and_time;
use evenhand_model::{counted, size_units};
use evenhand_workload::describe::{Concentration, Description, Distribution};

use crate::output::fold_lines::COLUMNS;
use crate::output::human_units;
use crate::output::numbers::{four_digits, percent};
use crate::output::table::Table;

/// Submissions later than this are dates: seconds since 1970 in the year 1990, and more than a log's own seconds reach.
const FIRST_DATE_S: f64 = 631_152_000.0;

/// Returns the description as text of at most [`COLUMNS`] columns. Times are in units that suit them, or all in seconds.
pub(super) fn description_table(d: &Description, in_seconds: bool) -> String {
    let time = |seconds: f64| match in_seconds {
        true => format!("{} s", four_digits(seconds)),
        false => human_units::duration(seconds),
    };
    let mut lines = vec![summary(d), when(d, in_seconds), String::new()];
    lines.push(format!(
        "Use over time, {}",
        if d.starts_known { "by original starts" } else { "as if started when submitted" }
    ));
    let mut table = Table::new(1, ["resource", "mean (R)", "peak", "dominant for tasks", "for users"]);
    for r in &d.resources {
        let [mean, peak] = [r.mean_use, r.peak_use].map(|amount| human_units::amount(amount, &r.unit));
        table.row(vec![r.name.clone(), mean, peak, percent(r.dominant_tasks), percent(r.dominant_users)]);
    }
    lines.extend([table.render(), String::new(), distributions(d, time), String::new()]);

    let mut table =
        Table::new(1, ["users' shares of", "Gini", "largest user", "largest 5", "largest 10", "largest 50"]);
    for (title, c) in [("tasks", &d.task_shares), ("use", &d.use_shares)] {
        table.row(shares(title, c));
    }
    lines.push(table.render());
    let tail = [
        ("slope of log tasks over log rank", d.tasks_per_user.rank_slope),
        ("Hill index of the largest tenth", d.tasks_per_user.hill),
    ];
    lines.extend(tail.iter().filter_map(|(title, value)| Some(format!("{title}: {:.2}", (*value)?))));

    lines.extend([String::new(), "Arrivals".to_string()]);
    let single = percent(d.bursts.single);
    for (title, gaps) in [("tasks", d.task_interarrival), ("bursts", d.bursts.interarrival)] {
        let Some(gaps) = gaps else { continue };
        let (apart, variation) = (time(gaps.mean_s), four_digits(gaps.variation));
        lines.push(format!("{title}: {apart} apart on average, coefficient of variation {variation}"));
    }
    lines.push(format!("{}, {single} of them of one task", counted(d.bursts.bursts, "burst", "bursts")));

    lines.extend([String::new(), "Most common demands".to_string()]);
    for vector in &d.common_vectors {
        let amounts = d.resources.iter().zip(&vector.amounts);
        let amounts: Vec<String> = amounts.map(|(r, a)| format!("{} {}", r.name, demand(*a, &r.unit))).collect();
        lines.push(format!("{:>7}  {}", percent(vector.share), amounts.join(", ")));
    }
    if let (Some(correlation), [first, second, ..]) = (d.demand_correlation, d.resources.as_slice()) {
        lines.push(format!("rank correlation of {} and {}: {correlation:.2}", first.name, second.name));
    }
    lines.join("\n")
}

/// Formats a demand: a size in a unit that suits it, anything else as a number.
fn demand(amount: f64, unit: &str) -> String {
    if amount != 0.0 && size_units::power_of_1024(unit).is_some() {
        human_units::amount(amount, unit)
    } else {
        four_digits(amount)
    }
}

fn summary(d: &Description) -> String {
    let mut text = counted(d.tasks, "task", "tasks");
    if d.rows != d.tasks {
        text += &format!(" in {}", counted(d.rows, "row", "rows"));
    }
    text += &format!(" of {}", counted(d.users, "user", "users"));
    for (n, one, many) in [(d.accounts, "account", "accounts"), (d.queues, "queue", "queues")] {
        if n > 0 {
            text += &format!(", {}", counted(n, one, many));
        }
    }
    text + &format!(", {}", counted(d.demand_vectors, "distinct demand vector", "distinct demand vectors"))
}

fn when(d: &Description, in_seconds: bool) -> String {
    let date = date_and_time(d.first_submit_s as u64).filter(|_| d.first_submit_s >= FIRST_DATE_S && !in_seconds);
    let first = date.unwrap_or_else(|| format!("{} s", four_digits(d.first_submit_s)));
    let span = match in_seconds {
        true => format!("{} s", four_digits(d.span_s)),
        false => human_units::duration(d.span_s),
    };
    format!("first submission at {first}, span {span}")
}

fn distributions(d: &Description, time: impl Fn(f64) -> String) -> String {
    let mut table = Table::new(1, ["", "5 %", "25 %", "50 %", "75 %", "90 %", "95 %", "99 %", "max", "mean"]);
    let mut row = |title: String, d: &Distribution, format: &dyn Fn(f64) -> String| {
        let values = [d.q05, d.q25, d.q50, d.q75, d.q90, d.q95, d.q99, d.max, d.mean];
        table.row(std::iter::once(title).chain(values.map(format)).collect());
    };
    row("tasks per user".into(), &d.tasks_per_user.distribution, &four_digits);
    row("tasks per burst".into(), &d.bursts.tasks, &four_digits);
    for r in &d.resources {
        // One unit a row, so that its numbers can be compared.
        match size_units::largest(r.demand.mean, &r.unit) {
            Some((size, unit)) => {
                row(format!("{} demand, {unit}", r.name), &r.demand, &|amount| four_digits(amount / size));
            }
            None => row(format!("{} demand", r.name), &r.demand, &four_digits),
        }
    }
    row("run time".into(), &d.duration_s, &time);
    for (title, times) in [("wait", &d.wait_s), ("requested time", &d.requested_s)] {
        if let Some(times) = times {
            row(title.into(), times, &time);
        }
    }
    table.fit(COLUMNS, &["5 %", "90 %", "99 %"]).render()
}

fn shares(title: &str, c: &Concentration) -> Vec<String> {
    let shares = [c.top1, c.top5, c.top10, c.top50].map(percent);
    [title.to_string(), format!("{:.3}", c.gini)].into_iter().chain(shares).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use evenhand_model::{Resource, Span, Task, Time, WorkloadBuilder};
    use evenhand_workload::describe::describe;

    use super::*;

    /// Two tasks of 1 core and 4 GiB, and one of 2 cores and 40 GiB, of another user, 100 minutes later.
    fn description(first_submit_s: u64) -> Description {
        let mut workload = WorkloadBuilder::new([Resource::new("cpu", "cores"), Resource::new("mem", "B")]);
        let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
        for (submit, user, run, count, amounts) in [(0, "ann", 90, 2, [1, 4]), (6_000, "bob", 36_000, 1, [2, 40])] {
            let nano = 1_000_000_000u128;
            workload.push(&Task {
                submit: at(first_submit_s + submit),
                start: Some(at(first_submit_s + submit + 60)),
                duration: Span::from_nanos(run * 1_000_000_000),
                requested: None,
                user,
                account: None,
                queue: None,
                amounts: &[amounts[0] * nano, amounts[1] * nano * (1 << 30)],
                count,
                ..Task::default()
            });
        }
        describe(&workload.finish().unwrap())
    }

    #[test]
    fn amounts_and_times_are_in_units_that_suit_them() {
        let text = description_table(&description(1_700_000_000), false);
        for expected in [
            "3 tasks in 2 rows of 2 users",
            "first submission at 2023-11-14 22:13:20, span 11.7 h",
            "cpu       1.7 cores  2.0 cores",
            "mem demand, GiB",
            "1.5 min",
            "10 h",
            "33.3 %  cpu 2, mem 40.0 GiB",
        ] {
            assert!(text.contains(expected), "{text}\nlacks {expected:?}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }

    #[test]
    fn times_are_in_seconds_on_request_and_early_ones_no_dates() {
        let text = description_table(&description(100), true);
        for expected in ["first submission at 100 s, span 42060 s", "90 s", "36000 s"] {
            assert!(text.contains(expected), "{text}\nlacks {expected:?}");
        }
        assert!(description_table(&description(100), false).contains("first submission at 100 s, span 11.7 h"));
    }
}
