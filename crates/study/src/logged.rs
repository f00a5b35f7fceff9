//! What happened: a log's own starts as a run of a study, beside the simulated ones.

use evenhand_model::{NO_TIME, PeakUse, Rational, Workload, counted};
use evenhand_simulator::Simulated;

/// The name that stands among the policies for what happened.
pub const LOGGED: &str = "logged";

/// Returns whether a workload has at least one original start.
pub fn has_starts(workload: &Workload) -> bool {
    workload.columns().start.as_ref().is_some_and(|starts| starts.iter().any(|start| *start != NO_TIME))
}

/// Returns the original starts as the result of a run.
///
/// A task without a start counts as not started, and one whose start precedes its submission as started when
/// submitted. The run ends with the last submission or finish.
pub(crate) fn as_logged(workload: &Workload) -> Simulated {
    let columns = workload.columns();
    let started = |row: usize| workload.start(row).map(|start| start.max(columns.submit[row]));
    let finishes = (0..workload.len()).filter_map(|row| Some(started(row)? + columns.duration[row]));
    Simulated {
        submissions: None,
        starts: (0..workload.len()).map(|row| started(row).map_or(NO_TIME, |start| start.nanos())).collect(),
        rejections: vec![None; workload.len()],
        end: finishes.chain(columns.submit.last().copied()).max().unwrap_or_default(),
        decisions: 0,
        order_events: 0,
        machines: None,
    }
}

/// Returns what had to be assumed about the original starts, in sentences.
pub(crate) fn notes(workload: &Workload) -> Vec<String> {
    let submit = |row: usize| workload.columns().submit[row];
    let absent = (0..workload.len()).filter(|row| workload.start(*row).is_none()).count();
    let early = (0..workload.len()).filter(|row| workload.start(*row).is_some_and(|s| s < submit(*row))).count();
    let mut notes = Vec::new();
    if absent > 0 {
        notes.push(format!(
            "{} no start in the log; in the row {LOGGED} such jobs count as not started.",
            counted(absent, "job has", "jobs have")
        ));
    }
    if early > 0 {
        notes.push(format!(
            "{} before the submission in the log; in the row {LOGGED} the wait of such jobs counts as 0. Check the clocks of the log.",
            counted(early, "job starts", "jobs start")
        ));
    }
    notes
}

/// Returns whether the peak of use never exceeds these units, so that the log fits a pool of that capacity.
pub(crate) fn fits(peak: &PeakUse, units: impl Iterator<Item = Rational>) -> bool {
    peak.units.iter().zip(units).all(|(peak, units)| *peak <= units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenhand_model::{Resource, Span, Task, Time, WorkloadBuilder};

    #[test]
    fn unknown_and_early_starts_are_counted_and_reported() {
        let mut b = WorkloadBuilder::new([Resource::new("cpu", "")]);
        for (submit, start) in [(10, Some(4)), (20, None), (30, Some(35))] {
            b.push(&Task {
                submit: Time::from_secs(submit),
                start: start.map(Time::from_secs),
                duration: Span::from_secs(100),
                user: "ann",
                amounts: &[1_000_000_000],
                ..Task::default()
            });
        }
        let w = b.finish().unwrap();
        let run = as_logged(&w);
        assert_eq!(run.starts, [Time::from_secs(10).nanos(), NO_TIME, Time::from_secs(35).nanos()]);
        assert_eq!(run.end, Time::from_secs(135));
        let notes = notes(&w);
        assert!(notes[0].starts_with("1 job has no start"), "{notes:?}");
        assert!(notes[1].starts_with("1 job starts before the submission"), "{notes:?}");
    }
}
