//! `evenhand slurm`

mod args;
mod metrics;
mod order;
mod past;
mod plan;
mod pull;
mod run;
mod show;
mod when;

pub(crate) use args::SlurmVerb;

use evenhand_slurm::ReadError;

use crate::args::Common;
use crate::console::Console;
use crate::failure::{Failure, Outcome};

pub(crate) fn run(verb: &SlurmVerb, common: &Common, console: &Console) -> Result<Outcome, Failure> {
    match verb {
        SlurmVerb::Show(args) => show::run(args, console).map(|()| Outcome::Done),
        SlurmVerb::Study(args) => past::study(args, common, console),
        SlurmVerb::Plan(args) => plan::run(args, console),
        SlurmVerb::Run(args) => run::run(args, console),
        SlurmVerb::Release(args) => run::release(args, console),
        SlurmVerb::Audit(args) => past::audit(args, common, console),
    }
}

fn failed(error: ReadError) -> Failure {
    let environment = error.is_environment();
    Failure::new(error, environment)
}
