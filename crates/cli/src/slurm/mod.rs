//! `evenhand slurm`

mod args;
mod order;
mod past;
mod plan;
mod pull;
mod run;
mod show;
mod when;

pub(crate) use args::SlurmVerb;

use evenhand_policies::Registry;
use evenhand_slurm::{Commands, LocalCommands, ReadError, Rest};

use self::args::QueueArgs;
use crate::args::Common;
use crate::console::Console;
use crate::failure::{Failure, Outcome};

pub(crate) fn run(
    verb: &SlurmVerb,
    common: &Common,
    registry: &Registry,
    console: &Console,
) -> Result<Outcome, Failure> {
    match verb {
        SlurmVerb::Show(args) => show::run(args, console).map(|()| Outcome::Done),
        SlurmVerb::Study(args) => past::study(args, common, registry, console),
        SlurmVerb::Plan(args) => plan::run(args, registry, console),
        SlurmVerb::Run(args) => run::run(args, registry, console),
        SlurmVerb::Release(args) => run::release(args, console),
        SlurmVerb::Audit(args) => past::audit(args, common, registry, console),
    }
}

/// Who answers: the commands, and for the queue slurmrestd if that is asked for.
fn site(queue: &QueueArgs, console: &Console) -> Box<dyn Commands> {
    match &queue.rest {
        None => Box::new(LocalCommands::default()),
        Some(socket) => {
            let said = "The queue is read from slurmrestd, as far as it may see it; all else by Slurm's commands.";
            console.note(said);
            Box::new(Rest::new(socket, None, LocalCommands::default()))
        }
    }
}

fn failed(error: ReadError) -> Failure {
    let environment = error.is_environment();
    Failure::new(error, environment)
}
