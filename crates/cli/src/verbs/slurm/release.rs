//! `evenhand slurm release`

use std::collections::BTreeMap;

use evenhand_model::{Span, counted};
use evenhand_policies::Registry;
use evenhand_slurm::queue_driver::{DriveOptions, Driver, ReleaseOutcome, SavedState};
use evenhand_slurm::{LocalCommands, PlanOptions};

use super::run::{drive_failure, state_failure};
use crate::arguments::SlurmReleaseArgs;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;

/// Restores the site factors that `run` changed.
pub(super) fn run(args: &SlurmReleaseArgs, console: &Console) -> Result<Outcome, Failure> {
    if !args.state.exists() {
        return Err(Failure::Input(format!("{}: no such file; nothing was changed", args.state.display())));
    }
    let slurm = LocalCommands::default();
    let store = SavedState::open(&args.state).map_err(state_failure)?;
    let options = DriveOptions {
        plan: PlanOptions {
            registry: Registry::built_in(),
            policy: String::new(),
            settings: Default::default(),
            decay: None,
            prices: BTreeMap::new(),
            speed_feature: None,
            depth: 0,
        },
        apply: true,
        max_changes: usize::MAX,
        history: Span::ZERO,
        cluster: None,
        configuration: None,
    };
    let outcome = Driver::new(&slurm, &store, options).map_err(state_failure)?.release().map_err(drive_failure)?;
    console.result(&restored_sentence(&outcome))?;
    Ok(if outcome.rejection.is_none() { Outcome::Done } else { Outcome::DoesNotHold })
}

/// Describes what was restored.
pub(super) fn restored_sentence(outcome: &ReleaseOutcome) -> String {
    let jobs = counted(outcome.jobs, "job has", "jobs have");
    let mut sentence = format!("{jobs} the old site factor again.");
    if outcome.ended > 0 {
        sentence.push_str(&format!(
            " Of ended jobs, which Slurm does not change, {} keep theirs until Slurm forgets them (MinJobAge); if one is \
             requeued before, repeat evenhand slurm release.",
            outcome.ended
        ));
    }
    if let Some(error) = &outcome.rejection {
        sentence.push_str(&format!(" Slurm reports: {error}."));
    }
    sentence
}
