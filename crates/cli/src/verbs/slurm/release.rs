//! `evenhand slurm release`

use std::collections::BTreeMap;
use std::path::Path;

use evenhand_model::{Span, counted};
use evenhand_policies::Registry;
use evenhand_slurm::queue_driver::{DriveOptions, Driver, ReleaseOutcome, SavedState};
use evenhand_slurm::{LocalCommands, PlanOptions};

use super::run::{drive_failure, state_failure};
use crate::arguments::SlurmReleaseArgs;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;

/// Where the packaged unit keeps the state of `slurm run`; its account may write nothing else.
const SERVICE_STATE: &str = "/var/lib/evenhand-slurm/slurm.redb";

/// Restores the site factors that `run` changed.
pub(super) fn run(args: &SlurmReleaseArgs, console: &Console) -> Result<Outcome, Failure> {
    if !args.state.exists() {
        return Err(Failure::Input(missing_state(&args.state, Path::new(SERVICE_STATE))));
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

/// Describes a state that is not there, with the place of the service's if that may be there: its folder cannot be searched by others.
fn missing_state(state: &Path, of_service: &Path) -> String {
    let missing = format!("{}: no such file; nothing was changed", state.display());
    match of_service.try_exists() {
        Ok(true) | Err(_) if state != of_service => {
            let path = of_service.display();
            format!(
                "{missing}. To restore what the service evenhand-slurm changed: evenhand slurm release --state {path}"
            )
        }
        _ => missing,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_state_is_an_error_that_names_the_services() {
        let folder = tempfile::tempdir().unwrap();
        let (state, of_service) = (folder.path().join("own.redb"), folder.path().join("service.redb"));
        let alone = missing_state(&state, &of_service);
        assert!(alone.ends_with("own.redb: no such file; nothing was changed"), "{alone}");
        std::fs::write(&of_service, "").unwrap();
        let named = missing_state(&state, &of_service);
        assert!(named.contains("nothing was changed. To restore"), "{named}");
        assert!(named.ends_with(&format!("evenhand slurm release --state {}", of_service.display())), "{named}");
    }
}
