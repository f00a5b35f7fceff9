//! Writes the study's answer as sentences: which users wait less or longer, and by how much.

use evenhand_study::LOGGED;
use evenhand_study::record::ComparisonRecord;
use serde::Serialize;

use crate::format_numbers::{duration, duration_and_seconds, grouped, percent};
use crate::study_page::figures::all_complete;
use crate::study_page::grid::{RunPair, SITE, StudyGrid};

/// Maximum number of users named among the largest gains, and among the largest losses.
const MAX_NAMED_USERS: usize = 3;

/// The answer at one capacity.
#[derive(Serialize)]
pub(super) struct Answer {
    capacity: String,
    /// A sentence on the baseline policy.
    baseline: String,
    policies: Vec<PolicyAnswer>,
}

/// One policy compared with the baseline.
#[derive(Serialize)]
struct PolicyAnswer {
    policy: String,
    /// Follows `POLICY at CAPACITY: `.
    sentence: String,
    /// Counts and percentages of the users who are better off, unchanged and worse off.
    shares: Vec<Share>,
    gains: Vec<Mover>,
    losses: Vec<Mover>,
}

#[derive(Serialize)]
struct Share {
    class: &'static str,
    text: String,
    percent: f64,
}

/// A user whose mean wait changes most, with the wait under the baseline and under the policy.
#[derive(Serialize)]
struct Mover {
    name: String,
    from: String,
    to: String,
}

/// How many users are better and worse off; of a repeated study beyond the noise.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub(super) better: u64,
    /// Users whose difference is within the noise; `None` without repeats.
    pub(super) noise: Option<u64>,
    pub(super) same: u64,
    pub(super) worse: u64,
}

impl Verdict {
    pub(super) fn of(comparison: &ComparisonRecord) -> Verdict {
        let ComparisonRecord { users_better, users_worse, users_same: same, .. } = *comparison;
        let without = Verdict { better: users_better, noise: None, same, worse: users_worse };
        let beyond = comparison.users_better_beyond_noise.zip(comparison.users_worse_beyond_noise);
        beyond.map_or(without, |(better, worse)| Verdict {
            better,
            noise: Some((users_better + users_worse).saturating_sub(better + worse)),
            same,
            worse,
        })
    }

    /// Returns the part of the compared users who are worse off; `None` if none is compared.
    pub(super) fn share_worse(&self) -> Option<f64> {
        let compared = self.better + self.noise.unwrap_or(0) + self.same + self.worse;
        (compared > 0).then(|| self.worse as f64 / compared as f64)
    }
}

/// Returns what the study replays and the question that it answers.
pub(super) fn question(grid: &StudyGrid<'_>) -> String {
    let workload = &grid.record.workload;
    let labels = || grid.policies.iter().map(|policy| policy.label.as_str());
    let simulated: Vec<&str> = labels().filter(|label| *label != LOGGED).collect();
    let policies = match (simulated.len(), labels().count()) {
        (0, _) => format!("as {LOGGED}"),
        (simulated_runs, all) => {
            let beside = if simulated_runs < all { format!(", and as {LOGGED},") } else { String::new() };
            format!("under {}{beside}", listed(simulated.into_iter()))
        }
    };
    let capacities = listed(grid.capacities.iter().map(|capacity| capacity.label.as_str()));
    let tasks = counted(workload.tasks, "task");
    let users = counted(workload.users, "user");
    let question = if grid.policies.len() > 1 {
        format!("Which users wait less than {}, and which wait longer?", grid.under_baseline())
    } else {
        "Which users wait, and how long?".into()
    };
    if grid.record.runs.is_empty() {
        return format!("The study replays {tasks} of {users}, but no run has finished.");
    }
    let multiples = grid.record.runs.iter().all(|run| run.capacity_factor.is_some());
    let on = match grid.capacities.as_slice() {
        [site] if site.name == SITE => {
            let amount = |(name, &number): (&String, &f64)| match (name.as_str(), counted_number(number)) {
                ("cpu" | "processors", Some(number)) => counted(number, "processor"),
                _ => format!("{name} {}", grid.amount(name, number)),
            };
            format!("on {} ({})", site.label, site.amounts.iter().map(amount).collect::<Vec<_>>().join(", "))
        }
        _ if multiples => format!("on a pool of {capacities}"),
        _ => format!("with the capacity {capacities}"),
    };
    format!("The study replays {tasks} of {users} {policies} {on}. {question}")
}

/// Returns one sentence per policy that summarizes all capacities; none if there is only one capacity.
pub(super) fn overview(grid: &StudyGrid<'_>) -> Vec<String> {
    if grid.capacities.len() < 2 {
        return Vec::new();
    }
    let sentence = |policy: usize| {
        let pairs: Vec<(usize, RunPair<'_>)> =
            grid.pairs().into_iter().filter(|pair| pair.1 == policy).map(|pair| (pair.0, pair.2)).collect();
        let changes: Vec<(usize, f64)> =
            pairs.iter().filter_map(|(at, pair)| Some((*at, pair.comparison.users_mean_wait_reduction?))).collect();
        let largest = changes.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let smallest = changes.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let lower = changes.iter().filter(|change| change.1 > 0.0).count();
        let verdicts = || pairs.iter().map(|(_, pair)| Verdict::of(pair.comparison));
        let won = verdicts().filter(|verdict| verdict.better > verdict.worse).count();
        let (baseline, place) = (grid.under_baseline(), |at: usize| &grid.capacities[at].label);
        let range = if change(largest.1) == change(smallest.1) {
            change(largest.1)
        } else {
            let [from, to] =
                [largest, smallest].map(|(at, reduction)| format!("{} at {}", change(reduction), place(at)));
            format!("from {from} to {to}")
        };
        Some(format!(
            "{}: the mean over users of mean waits is lower than {baseline} at {lower} of {} capacities ({range}); \
             the users who wait less outnumber those who wait longer{} at {won} of {}.",
            grid.policies[policy].label,
            changes.len(),
            if grid.record.repeats.is_some() { " beyond the noise" } else { "" },
            pairs.len(),
        ))
    };
    (1..grid.policies.len()).filter_map(sentence).collect()
}

/// Returns the answer at each capacity.
pub(super) fn answers(grid: &StudyGrid<'_>) -> Vec<Answer> {
    (0..grid.capacities.len())
        .map(|capacity| Answer {
            capacity: grid.capacities[capacity].label.clone(),
            baseline: base_sentence(grid, capacity),
            policies: (1..grid.policies.len()).map(|policy| policy_answer(grid, capacity, policy)).collect(),
        })
        .collect()
}

fn base_sentence(grid: &StudyGrid<'_>, capacity: usize) -> String {
    let baseline = grid.baseline();
    let under = match baseline {
        LOGGED => format!("As {LOGGED},"),
        policy => format!("Under {policy}"),
    };
    let Some(run) = grid.run(capacity, 0) else {
        return format!("The run of {baseline} is missing, so the other policies cannot be compared with it.");
    };
    let totals = &run.totals;
    let rejected = match totals.rejected {
        0 => String::new(),
        rejected => format!(" {} rejected because no pool of this size can hold them.", counted_are(rejected, "task")),
    };
    match run.users_mean_wait_s {
        None => format!("{under} no task starts.{rejected}"),
        Some(mean) => format!(
            "{under} the mean over users of mean waits is {}; {} of {} complete.{rejected}",
            duration_and_seconds(mean),
            grouped(totals.completed),
            counted(totals.submitted, "task"),
        ),
    }
}

fn policy_answer(grid: &StudyGrid<'_>, capacity: usize, policy: usize) -> PolicyAnswer {
    let name = grid.policies[policy].label.clone();
    let Some(pair) = grid.pair(capacity, policy) else {
        let sentence = "this run or the baseline run is missing.".into();
        return PolicyAnswer { policy: name, sentence, shares: vec![], gains: vec![], losses: vec![] };
    };
    let comparison = pair.comparison;
    let compared = comparison.users_better + comparison.users_worse + comparison.users_same;
    let verdict = Verdict::of(comparison);
    let share = |class, mark: &str, users: u64| Share {
        class,
        text: format!("{}\u{a0}{mark}", grouped(users)),
        percent: users as f64 / compared as f64 * 100.0,
    };
    let shares = [
        share("better", "less", verdict.better),
        share("noise", "within the noise", verdict.noise.unwrap_or(0)),
        share("same", "the same", verdict.same),
        share("worse", "longer", verdict.worse),
    ];
    let shares = shares.into_iter().filter(|share| share.percent > 0.0).collect();
    let (gains, losses) = movers(&pair);
    PolicyAnswer { policy: name, sentence: sentence(grid, &pair), shares, gains, losses }
}

/// Returns what a policy changes; the sentence follows `POLICY at CAPACITY: `.
fn sentence(grid: &StudyGrid<'_>, pair: &RunPair<'_>) -> String {
    let (baseline, comparison) = (grid.under_baseline(), pair.comparison);
    let compared = comparison.users_better + comparison.users_worse + comparison.users_same;
    if compared == 0 {
        return format!("no user has a started task both here and {baseline}, so waits cannot be compared.");
    }
    let among = if compared == grid.record.workload.users { "" } else { " with started tasks under both" };
    let verdict = Verdict::of(comparison);
    let waits = if verdict.better == 1 { "waits" } else { "wait" };
    let longer = if verdict.worse == 1 { "waits" } else { "wait" };
    let mut text = format!(
        "{} of {}{among} {waits} less than {baseline}, {} {longer} longer, {} the same",
        grouped(verdict.better),
        counted(compared, "user"),
        grouped(verdict.worse),
        grouped(verdict.same),
    );
    if let Some(noise) = verdict.noise {
        let differ = if noise == 1 { "differs" } else { "differ" };
        text += &format!(", and {} {differ} by no more than the noise", grouped(noise));
    }
    if let (Some(new), Some(old)) = (pair.run.users_mean_wait_s, pair.baseline.users_mean_wait_s) {
        text += &format!(
            "; the mean over users of mean waits is {} instead of {}",
            duration_and_seconds(new),
            duration_and_seconds(old)
        );
    }
    if let Some(reduction) = comparison.users_mean_wait_reduction {
        text += &format!(" ({}{})", change(reduction), reduction_interval(comparison));
    }
    if comparison.complete_more + comparison.complete_fewer > 0 {
        text += &format!(
            "; {} complete more of their tasks, {} fewer",
            grouped(comparison.complete_more),
            grouped(comparison.complete_fewer)
        );
    }
    text + "."
}

/// Returns where 95 % of repeats find the reduction of the users' mean wait; empty without repeats.
fn reduction_interval(comparison: &ComparisonRecord) -> String {
    let estimate = comparison.noise.as_ref().and_then(|noise| noise.users_mean_wait_reduction);
    estimate.map_or(String::new(), |estimate| {
        let [low, high] = estimate.interval.map(change);
        let verdict = if estimate.includes_zero() { "; within the noise" } else { "" };
        // Where repeats differ by less than what is printed, two equal ends say nothing.
        let range = if low == high { String::new() } else { format!(", in 95\u{a0}% of repeats {high} to {low}") };
        format!("{range}{verdict}")
    })
}

/// Formats a reduction: `32.6 % less`, `5.0 % more` or `no change`.
fn change(reduction: f64) -> String {
    if reduction == 0.0 {
        "no change".into()
    } else if reduction > 0.0 {
        format!("{} less", percent(reduction))
    } else {
        format!("{} more", percent(-reduction))
    }
}

/// Returns the users whose mean waits shrink most and those whose mean waits grow most; ties in the workload's order.
fn movers(pair: &RunPair<'_>) -> (Vec<Mover>, Vec<Mover>) {
    let waits = pair.baseline.users.iter().zip(&pair.run.users);
    let mut changes: Vec<(f64, Mover)> = waits
        .filter_map(|(before, after)| {
            let (old, new) = (before.mean_wait_s?, after.mean_wait_s?);
            let mover = Mover { name: after.name.clone(), from: duration(old), to: duration(new) };
            // Of a repeated study only what is no luck.
            let is_noise = pair.comparison.repeats.is_some() && !after.beyond_noise;
            (new != old && !is_noise).then_some((new - old, mover))
        })
        .collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (gains, losses): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.0 < 0.0);
    let name = |changes: Vec<(f64, Mover)>| changes.into_iter().take(MAX_NAMED_USERS).map(|change| change.1).collect();
    // A stable sort, largest growth first, so that ties stay in the workload's order.
    let mut losses = losses;
    losses.sort_by(|a, b| b.0.total_cmp(&a.0));
    (name(gains), name(losses))
}

/// Returns the note beside the figure of completion ratios for one pair.
pub(super) fn completion_note(grid: &StudyGrid<'_>, capacity: usize, policy: usize) -> String {
    let Some(pair) = grid.pair(capacity, policy) else { return String::new() };
    let (name, baseline) = (&grid.policies[policy].label, grid.under_baseline());
    if all_complete(pair.run) && all_complete(pair.baseline) {
        return format!("Every user completes every task under {name} and {baseline}: all bubbles lie at (1, 1).");
    }
    let comparison = pair.comparison;
    let more = counted(comparison.complete_more, "user");
    let verb = if comparison.complete_more == 1 { "completes" } else { "complete" };
    format!(
        "{more} {verb} more of their tasks under {name} than {baseline}, {} fewer.",
        grouped(comparison.complete_fewer)
    )
}

fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// Returns a whole number of things, if it is one.
fn counted_number(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
}

fn counted_are(number: u64, what: &str) -> String {
    format!("{} {}", counted(number, what), if number == 1 { "is" } else { "are" })
}

/// Joins items as `a`, `a and b`, or `a, b and c`.
fn listed<'a>(items: impl Iterator<Item = &'a str>) -> String {
    let items: Vec<&str> = items.collect();
    match items.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((last, _)) => (*last).to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_counts_follow_english_grammar() {
        assert_eq!(listed(["a"].into_iter()), "a");
        assert_eq!(listed(["a", "b", "c"].into_iter()), "a, b and c");
        assert_eq!(counted(1, "user"), "1 user");
        assert_eq!(counted_are(1200, "task"), "1\u{202f}200 tasks are");
        assert_eq!(change(-0.5), "50.0\u{a0}% more");
    }
}
