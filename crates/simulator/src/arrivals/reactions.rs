//! What users of a log waited for, and how long they thought.

use evenhand_model::{Span, Time, UserId, Workload};

use super::{Arrivals, SESSION_GAP};
use crate::UserTasks;

/// No place in the order of ends.
pub(super) const NO_END: u32 = u32::MAX;

/// What each submission of a log reacted to. Made once for a workload, and shared by its runs.
///
/// What a user had seen end when it submitted a task is always a beginning of the list of its tasks in the order of
/// their ends, so a number for each task is enough.
#[derive(Clone, Debug)]
pub struct Reactions {
    arrivals: Arrivals,
    tasks_of_users: UserTasks,
    /// By row.
    pub(super) tasks: Vec<Reaction>,
}

/// What one submission reacted to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reaction {
    /// How many tasks of the user, in the order of their ends, had ended.
    pub(super) awaits: u32,
    /// The place of this task in that order, or [`NO_END`] if the log has no start of it: nobody waits for its end.
    pub(super) place_of_end: u32,
    /// The time since the user's last submission or awaited end.
    pub(super) think: Span,
    /// Whether the task is submitted at the time of the log, at the earliest, instead of after the think time.
    pub(super) by_clock: bool,
}

impl Reactions {
    /// Infers the reactions of a workload's users from its original starts. A start before its submission counts as at
    /// the submission. Takes O(n log n) for n tasks.
    pub fn new(workload: &Workload, tasks_of_users: UserTasks, arrivals: Arrivals) -> Reactions {
        let mut reactions = vec![Reaction::default(); workload.len()];
        let columns = workload.columns();
        // The end of each task of a user, whether it began in the same instant, and its position, by time.
        let mut ends: Vec<(Time, bool, u32)> = Vec::new();
        for user in (0..workload.users().len() as u32).map(UserId) {
            let rows = tasks_of_users.of(user);
            ends.clear();
            ends.extend((0u32..).zip(rows).filter_map(|(at, row)| {
                let end = logged_end(workload, *row as usize)?;
                Some((end, columns.duration[*row as usize] == Span::ZERO, at))
            }));
            ends.sort_unstable();
            rows.iter().for_each(|row| reactions[*row as usize].place_of_end = NO_END);
            for (place, (_, _, at)) in (0u32..).zip(&ends) {
                reactions[rows[*at as usize] as usize].place_of_end = place;
            }
            let mut awaits = 0;
            let mut last: Option<Time> = None;
            for row in rows {
                let now = columns.submit[*row as usize];
                // What begins and ends in the instant of a submission does so after it.
                let is_seen = |(end, at_once, _): &&(Time, bool, u32)| (*end, *at_once) < (now, true);
                while let Some((end, ..)) = ends.get(awaits as usize).filter(is_seen) {
                    last = last.max(Some(*end));
                    awaits += 1;
                }
                let think = last.map_or(Span::ZERO, |last| now - last);
                let opens_session = last.is_none() || think > SESSION_GAP;
                let reaction = &mut reactions[*row as usize];
                (reaction.awaits, reaction.think) = (awaits, think);
                reaction.by_clock = match arrivals {
                    Arrivals::Clock => true,
                    Arrivals::Sessions => opens_session,
                    Arrivals::Closed => last.is_none(),
                };
                last = Some(now);
            }
        }
        Reactions { arrivals, tasks_of_users, tasks: reactions }
    }

    /// Returns what determines the submissions.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals
    }

    /// Returns the tasks of each user.
    pub fn tasks_of_users(&self) -> &UserTasks {
        &self.tasks_of_users
    }

    /// Returns how many tasks are submitted by the clock: the sessions, or the users.
    pub fn by_clock(&self) -> usize {
        self.tasks.iter().filter(|task| task.by_clock).count()
    }
}

fn logged_end(workload: &Workload, row: usize) -> Option<Time> {
    let columns = workload.columns();
    workload.start(row)?.max(columns.submit[row]).checked_add(columns.duration[row])
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Resource, Task, WorkloadBuilder};

    /// Tasks of one user: submission, start and duration in seconds.
    fn reactions(tasks: &[(u64, Option<u64>, u64)], arrivals: Arrivals) -> Vec<(u32, u64, bool)> {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for (submit, start, duration) in tasks {
            b.push(&Task {
                submit: Time::from_secs(*submit),
                start: start.map(Time::from_secs),
                duration: Span::from_secs(*duration),
                user: "ann",
                amounts: &[1],
                ..Task::default()
            });
        }
        let workload = b.finish().unwrap();
        let found = Reactions::new(&workload, UserTasks::new(&workload), arrivals);
        found.tasks.iter().map(|r| (r.awaits, r.think.nanos() / 1_000_000_000, r.by_clock)).collect()
    }

    #[test]
    fn a_batch_waits_for_the_batch_before_it() {
        // Two tasks at once; the next two 30 s after the second of them ended, at 200.
        let tasks = [(10, Some(10), 50), (10, Some(60), 140), (230, Some(230), 5), (231, None, 5), (300, Some(300), 1)];
        let expected = [(0, 0, true), (0, 0, false), (2, 30, false), (2, 1, false), (3, 65, false)];
        assert_eq!(reactions(&tasks, Arrivals::Closed), expected);
        assert_eq!(reactions(&tasks, Arrivals::Sessions), expected);
    }

    #[test]
    fn sessions_open_twenty_minutes_after_the_last_event() {
        // The third task comes 21 minutes after the second was submitted, 20 after the second ended.
        let tasks = [(0, Some(0), 10), (1300, Some(1300), 60), (2560, Some(2560), 1), (3762, Some(3762), 1)];
        let opens = |arrivals| reactions(&tasks, arrivals).into_iter().map(|r| r.2).collect::<Vec<bool>>();
        assert_eq!(opens(Arrivals::Sessions), [true, true, false, true]);
        assert_eq!(opens(Arrivals::Closed), [true, false, false, false]);
        assert_eq!(opens(Arrivals::Clock), [true; 4]);
    }

    #[test]
    fn a_task_waits_for_nothing_that_begins_and_ends_with_its_submission() {
        let tasks = [(5, Some(5), 0), (5, Some(5), 0), (5, Some(3), 0), (6, Some(6), 0)];
        let expected = [(0, 0, true), (0, 0, false), (0, 0, false), (3, 1, false)];
        assert_eq!(reactions(&tasks, Arrivals::Closed), expected);
    }
}
