//! `evenhand slurm`

mod export_site;
mod find_job;
mod new_jobs;
mod plan;
mod plan_options;
mod prometheus_metrics;
mod release;
mod run;
mod show;
mod study_and_audit;
mod when;
mod why;

pub(super) use export_site::{cluster_options, user_shares};
#[cfg(feature = "agent")]
pub(super) use run::RunSettings;

use std::time::Duration;

use evenhand_policies::Registry;
use evenhand_slurm::{Commands, LocalCommands, ReadError, Rest};

use crate::arguments::{Common, QueueArgs, SlurmVerb};
use crate::failure::{Failure, Outcome};
use crate::inputs::times as parse_time;
use crate::output::console::Console;

pub(crate) fn run(
    verb: &SlurmVerb,
    common: &Common,
    registry: &Registry,
    console: &Console,
) -> Result<Outcome, Failure> {
    match verb {
        SlurmVerb::Show(args) => show::run(args, console).map(|()| Outcome::Done),
        SlurmVerb::Study(args) => study_and_audit::study(args, common, registry, console),
        SlurmVerb::Why(args) => why::run(args, console).map(|()| Outcome::Done),
        SlurmVerb::When(args) => when::run(args, common, console).map(|()| Outcome::Done),
        SlurmVerb::Plan(args) => plan::run(args, registry, console),
        SlurmVerb::Run(args) => run::run(args, registry, console),
        SlurmVerb::Release(args) => release::run(args, console),
        SlurmVerb::Audit(args) => study_and_audit::audit(args, common, registry, console),
    }
}

/// Returns what answers queries: Slurm's commands, and slurmrestd for the queue if `--rest` is given.
fn slurm_commands(queue: &QueueArgs, console: &Console) -> Box<dyn Commands> {
    match &queue.rest {
        None => Box::new(LocalCommands::default()),
        Some(socket) => {
            console.note("The queue is read from slurmrestd, with the jobs that it may see; everything else by Slurm's commands.");
            Box::new(Rest::new(socket, None, LocalCommands::default()))
        }
    }
}

/// As [`slurm_commands`], for a question that somebody waits for, such as at a login: each answer within `limit`, and no notes.
fn slurm_commands_within(limit: Duration, queue: &QueueArgs) -> Box<dyn Commands> {
    let commands = LocalCommands { timeout: limit, ..LocalCommands::default() };
    match &queue.rest {
        None => Box::new(commands),
        Some(socket) => {
            let mut rest = Rest::new(socket, None, commands);
            rest.time_limit = limit;
            Box::new(rest)
        }
    }
}

/// Classifies an error of reading the site.
fn read_failure(error: ReadError) -> Failure {
    let environment = error.is_environment();
    Failure::new(error, environment)
}
