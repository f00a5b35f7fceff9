//! The answer in sentences: who waits less and who waits longer, and by how much.

use serde::Serialize;

use crate::figures::all_complete;
use crate::format::{duration, duration_and_seconds, grouped, percent};
use crate::view::{Pair, View};

/// So many users are named on either side.
const NAMED: usize = 3;

/// The answer at one capacity.
#[derive(Serialize)]
pub(super) struct Answer {
    capacity: String,
    /// How the policy fares that the others are held against.
    base: String,
    policies: Vec<PolicyAnswer>,
}

/// One policy against the first.
#[derive(Serialize)]
struct PolicyAnswer {
    policy: String,
    /// Goes on from `POLICY at CAPACITY: `.
    sentence: String,
    /// Users better, same and worse off: count and share in per cent.
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

/// A user whose mean wait changes much.
#[derive(Serialize)]
struct Mover {
    name: String,
    from: String,
    to: String,
}

/// What was asked, in one sentence.
pub(super) fn asked(view: &View<'_>) -> String {
    let workload = &view.record.workload;
    let policies = listed(view.policies.iter().map(|policy| policy.label.as_str()));
    let capacities = listed(view.capacities.iter().map(|capacity| capacity.label.as_str()));
    let tasks = counted(workload.tasks, "task");
    let users = counted(workload.users, "user");
    let question = if view.policies.len() > 1 {
        format!("who waits less, and who waits longer, than under {}?", view.base())
    } else {
        "who waits, and how long?".into()
    };
    if view.record.runs.is_empty() {
        return format!("{tasks} of {users} were to be replayed, but no run has finished.");
    }
    format!("If the {tasks} of {users} are run again under {policies}, on a pool of {capacities}: {question}")
}

/// Over all capacities, a sentence a policy; nothing if there is only one capacity.
pub(super) fn overview(view: &View<'_>) -> Vec<String> {
    if view.capacities.len() < 2 {
        return Vec::new();
    }
    let sentence = |policy: usize| {
        let pairs: Vec<(usize, Pair<'_>)> =
            view.pairs().into_iter().filter(|pair| pair.1 == policy).map(|pair| (pair.0, pair.2)).collect();
        let changes: Vec<(usize, f64)> =
            pairs.iter().filter_map(|(at, pair)| Some((*at, pair.comparison.users_mean_wait_reduction?))).collect();
        let most = changes.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let least = changes.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let lower = changes.iter().filter(|change| change.1 > 0.0).count();
        let won = pairs.iter().filter(|(_, pair)| pair.comparison.users_better > pair.comparison.users_worse).count();
        let (base, place) = (view.base(), |at: usize| &view.capacities[at].label);
        let range = if change(most.1) == change(least.1) {
            change(most.1)
        } else {
            format!("from {} ({}) to {} ({})", change(most.1), place(most.0), change(least.1), place(least.0))
        };
        Some(format!(
            "{}: the mean over users of mean waits is lower than under {base} at {lower} of {} capacities, {range}; more \
             users wait less than wait longer at {won} of {}.",
            view.policies[policy].label,
            changes.len(),
            pairs.len(),
        ))
    };
    (1..view.policies.len()).filter_map(sentence).collect()
}

/// The answer at each capacity.
pub(super) fn answers(view: &View<'_>) -> Vec<Answer> {
    (0..view.capacities.len())
        .map(|capacity| Answer {
            capacity: view.capacities[capacity].label.clone(),
            base: base_sentence(view, capacity),
            policies: (1..view.policies.len()).map(|policy| policy_answer(view, capacity, policy)).collect(),
        })
        .collect()
}

fn base_sentence(view: &View<'_>, capacity: usize) -> String {
    let base = view.base();
    let Some(run) = view.run(capacity, 0) else {
        return format!("The run of {base} is missing, so there is nothing to hold the others against.");
    };
    let totals = &run.totals;
    let rejected = match totals.rejected {
        0 => String::new(),
        rejected => format!(" {} larger than the pool and rejected.", counted_are(rejected, "task")),
    };
    match run.users_mean_wait_s {
        None => format!("Under {base} no task starts.{rejected}"),
        Some(mean) => format!(
            "Under {base} the mean over users of mean waits is {}; {} of {} complete.{rejected}",
            duration_and_seconds(mean),
            grouped(totals.completed),
            counted(totals.submitted, "task"),
        ),
    }
}

fn policy_answer(view: &View<'_>, capacity: usize, policy: usize) -> PolicyAnswer {
    let name = view.policies[policy].label.clone();
    let Some(pair) = view.pair(capacity, policy) else {
        let sentence = "this run or the one it is held against is missing.".into();
        return PolicyAnswer { policy: name, sentence, shares: vec![], gains: vec![], losses: vec![] };
    };
    let comparison = pair.comparison;
    let compared = comparison.users_better + comparison.users_worse + comparison.users_same;
    let share = |class, mark: &str, users: u64| Share {
        class,
        text: format!("{mark} {}", grouped(users)),
        percent: users as f64 / compared as f64 * 100.0,
    };
    let shares = [
        share("better", "less", comparison.users_better),
        share("same", "same", comparison.users_same),
        share("worse", "longer", comparison.users_worse),
    ];
    let shares = shares.into_iter().filter(|share| share.percent > 0.0).collect();
    let (gains, losses) = movers(&pair);
    PolicyAnswer { policy: name, sentence: sentence(view, &pair), shares, gains, losses }
}

/// What a policy changes, after `POLICY at CAPACITY: `.
fn sentence(view: &View<'_>, pair: &Pair<'_>) -> String {
    let (base, comparison) = (view.base(), pair.comparison);
    let compared = comparison.users_better + comparison.users_worse + comparison.users_same;
    if compared == 0 {
        return format!("no user has a started task both here and under {base}, so waits cannot be compared.");
    }
    let among = if compared == view.record.workload.users { "" } else { " with started tasks under both" };
    let waits = if comparison.users_better == 1 { "waits" } else { "wait" };
    let longer = if comparison.users_worse == 1 { "waits" } else { "wait" };
    let mut text = format!(
        "{} of {}{among} {waits} less than under {base}, {} {longer} longer, {} the same",
        grouped(comparison.users_better),
        counted(compared, "user"),
        grouped(comparison.users_worse),
        grouped(comparison.users_same),
    );
    if let (Some(new), Some(old)) = (pair.run.users_mean_wait_s, pair.base.users_mean_wait_s) {
        text += &format!(
            "; mean over users of mean waits {} instead of {}",
            duration_and_seconds(new),
            duration_and_seconds(old)
        );
    }
    if let Some(reduction) = comparison.users_mean_wait_reduction {
        text += &format!(" ({})", change(reduction));
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

/// A reduction in words.
fn change(reduction: f64) -> String {
    if reduction == 0.0 {
        "no change".into()
    } else if reduction > 0.0 {
        format!("{} less", percent(reduction))
    } else {
        format!("{} more", percent(-reduction))
    }
}

/// The users whose mean waits shrink most and grow most; equal changes in the workload's order.
fn movers(pair: &Pair<'_>) -> (Vec<Mover>, Vec<Mover>) {
    let waits = pair.base.users.iter().zip(&pair.run.users);
    let mut changes: Vec<(f64, Mover)> = waits
        .filter_map(|(before, after)| {
            let (old, new) = (before.mean_wait_s?, after.mean_wait_s?);
            let mover = Mover { name: after.name.clone(), from: duration(old), to: duration(new) };
            (new != old).then_some((new - old, mover))
        })
        .collect();
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (gains, losses): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.0 < 0.0);
    let name = |changes: Vec<(f64, Mover)>| changes.into_iter().take(NAMED).map(|change| change.1).collect();
    // Stable from the other end: the largest growth first, equal ones in the workload's order.
    let mut losses = losses;
    losses.sort_by(|a, b| b.0.total_cmp(&a.0));
    (name(gains), name(losses))
}

/// What is to be said on completion beside the figure, for one pair.
pub(super) fn completion_note(view: &View<'_>, capacity: usize, policy: usize) -> String {
    let Some(pair) = view.pair(capacity, policy) else { return String::new() };
    let (name, base) = (&view.policies[policy].label, view.base());
    if all_complete(pair.run) && all_complete(pair.base) {
        return format!("Every user completes every task under {name} and under {base}: all bubbles lie at (1, 1).");
    }
    let comparison = pair.comparison;
    let more = counted(comparison.complete_more, "user");
    let verb = if comparison.complete_more == 1 { "completes" } else { "complete" };
    format!(
        "{more} {verb} more of their tasks under {name} than under {base}, {} fewer.",
        grouped(comparison.complete_fewer)
    )
}

fn counted(number: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(number), if number == 1 { "" } else { "s" })
}

fn counted_are(number: u64, what: &str) -> String {
    format!("{} {}", counted(number, what), if number == 1 { "is" } else { "are" })
}

/// `a`, `a and b`, `a, b and c`.
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
    fn lists_and_counts_read_as_english() {
        assert_eq!(listed(["a"].into_iter()), "a");
        assert_eq!(listed(["a", "b", "c"].into_iter()), "a, b and c");
        assert_eq!(counted(1, "user"), "1 user");
        assert_eq!(counted_are(1200, "task"), "1\u{202f}200 tasks are");
        assert_eq!(change(-0.5), "50.0\u{a0}% more");
    }
}
