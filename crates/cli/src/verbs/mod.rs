//! The verbs of the command line, named as the user types them.

#[cfg(feature = "agent")]
mod agent;
#[cfg(feature = "analysis")]
mod allocate;
#[cfg(feature = "analysis")]
mod audit;
mod completions;
#[cfg(feature = "agent")]
mod config;
#[cfg(feature = "agent")]
mod doctor;
mod manual;
mod policies;
#[cfg(feature = "analysis")]
mod price;
#[cfg(feature = "analysis")]
mod processes;
#[cfg(feature = "reproduce")]
mod reproduce;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "slurm")]
mod site;
#[cfg(feature = "slurm")]
mod slurm;
mod study;
mod sweep;
#[cfg(feature = "analysis")]
mod timeline;
#[cfg(feature = "agent")]
mod top;
#[cfg(feature = "analysis")]
pub(crate) mod when;
#[cfg(feature = "analysis")]
mod why;
mod workload;

use evenhand_policies::Registry;

use crate::arguments::{Common, Verb};
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;

/// Runs a verb.
pub(crate) fn run(verb: Verb, common: &Common, registry: &Registry, console: &Console) -> Result<Outcome, Failure> {
    match verb {
        Verb::Policies(arguments) => policies::run(&arguments, registry, console).map(|()| Outcome::Done),
        Verb::Completions(arguments) => completions::run(&arguments, registry, console).map(|()| Outcome::Done),
        Verb::Manual(arguments) => manual::run(&arguments, registry, console).map(|()| Outcome::Done),
        Verb::Workload(verb) => workload::run(verb, common, console).map(|()| Outcome::Done),
        Verb::Study(arguments) => study::run(&arguments, common, registry, console).map(|()| Outcome::Done),
        Verb::Sweep(arguments) => sweep::run(&arguments, common, registry, console).map(|()| Outcome::Done),
        Verb::SweepTask(arguments) => sweep::run_task(&arguments, registry, console).map(|()| Outcome::Done),
        #[cfg(feature = "slurm")]
        Verb::Slurm(verb) => slurm::run(&verb, common, registry, console),
        #[cfg(feature = "serve")]
        Verb::Serve(arguments) => serve::run(&arguments, common, console).map(|()| Outcome::Done),
        #[cfg(feature = "slurm")]
        Verb::Site(verb) => site::run(&verb, console).map(|()| Outcome::Done),
        #[cfg(feature = "agent")]
        Verb::Agent(verb) => agent::run(&verb, console),
        #[cfg(feature = "agent")]
        Verb::Config(verb) => config::run(&verb, registry, console).map(|()| Outcome::Done),
        #[cfg(feature = "agent")]
        Verb::Doctor(arguments) => doctor::run(&arguments, registry, console),
        #[cfg(feature = "agent")]
        Verb::Top(arguments) => top::run(&arguments, console).map(|()| Outcome::Done),
        #[cfg(feature = "analysis")]
        Verb::When(arguments) => when::run(&arguments, common, console).map(|()| Outcome::Done),
        #[cfg(feature = "analysis")]
        Verb::Why(arguments) => why::run(&arguments, common, console).map(|()| Outcome::Done),
        #[cfg(feature = "analysis")]
        Verb::Allocate(arguments) => allocate::run(&arguments, console).map(|()| Outcome::Done),
        #[cfg(feature = "analysis")]
        Verb::Audit(arguments) => audit::run(&arguments, common, registry, console),
        #[cfg(feature = "analysis")]
        Verb::Timeline(arguments) => timeline::run(&arguments, console).map(|()| Outcome::Done),
        #[cfg(feature = "analysis")]
        Verb::Price(arguments) => price::run(&arguments, console),
        #[cfg(feature = "analysis")]
        Verb::Processes(arguments) => processes::run(&arguments, common, console).map(|()| Outcome::Done),
        #[cfg(feature = "reproduce")]
        Verb::Reproduce(arguments) => reproduce::run(&arguments, common, console),
    }
}
