//! The command `evenhand`: arguments, progress, exit codes. Everything else has its own room.

mod agent;
mod allocate;
mod args;
mod audit;
mod bars;
mod console;
mod decay;
mod division;
mod exposition;
mod failure;
mod figure;
mod history;
mod machines;
mod metrics;
mod misreports;
mod outputs;
mod price;
mod processes;
mod progress;
mod reproduce;
mod slurm;
mod study;
mod sweep;
mod table;
mod timeline;
mod top;
mod workload;

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Verb};
use crate::console::Console;
use crate::failure::{Failure, Outcome};

fn main() -> ExitCode {
    // Said below, once, as a sentence; libraries that catch their own panics stay silent.
    panic::set_hook(Box::new(|_| {}));
    // clap exits with status 2 on a wrong command line by itself.
    let cli = Cli::parse();
    let console = Console::new(&cli.common);
    let result = panic::catch_unwind(AssertUnwindSafe(|| run(cli, &console)));
    match result.unwrap_or_else(|payload| Err(mistake(payload.as_ref()))) {
        Ok(outcome) => outcome.exit_code(),
        Err(failure) => {
            console.complain(&format!("error: {failure}"));
            failure.exit_code()
        }
    }
}

/// A bug is a sentence too.
fn mistake(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    Failure::Environment(format!(
        "evenhand made a mistake: {}. Please report it with the command line and, if you can, the input",
        text.unwrap_or_else(|| "no message".into())
    ))
}

fn run(cli: Cli, console: &Console) -> Result<Outcome, Failure> {
    if let Some(threads) = cli.common.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .build_global()
            .map_err(|e| Failure::Environment(format!("cannot start {threads} threads: {e}")))?;
    }
    match cli.verb {
        Verb::Workload(verb) => workload::run(verb, &cli.common, console).map(|()| Outcome::Done),
        Verb::Study(arguments) => study::run(&arguments, &cli.common, console).map(|()| Outcome::Done),
        Verb::Sweep(arguments) => sweep::run(&arguments, &cli.common, console).map(|()| Outcome::Done),
        Verb::SweepTask(arguments) => sweep::task(&arguments).map(|()| Outcome::Done),
        Verb::Slurm(verb) => slurm::run(&verb, &cli.common, console),
        Verb::Agent(verb) => agent::run(&verb, console),
        Verb::Top(arguments) => top::run(&arguments, console).map(|()| Outcome::Done),
        Verb::Allocate(arguments) => allocate::run(&arguments, console).map(|()| Outcome::Done),
        Verb::Audit(arguments) => audit::run(&arguments, &cli.common, console),
        Verb::Timeline(arguments) => timeline::run(&arguments, console).map(|()| Outcome::Done),
        Verb::Price(arguments) => price::run(&arguments, console),
        Verb::Processes(arguments) => processes::run(&arguments, &cli.common, console).map(|()| Outcome::Done),
        Verb::Reproduce(arguments) => reproduce::run(&arguments, &cli.common, console),
    }
}
