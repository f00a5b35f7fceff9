//! The command line of evenhand as a library: a program can add policies of its own to it.
//!
//! ```no_run
//! use evenhand_model::Rational;
//! use evenhand_policies::{Registration, ShareKey, ShareOrder};
//!
//! /// The smallest share of any resource.
//! struct SmallestShare;
//! impl ShareKey for SmallestShare {
//!     fn approximate(&self, shares: impl Iterator<Item = f64>) -> f64 {
//!         shares.fold(f64::INFINITY, f64::min)
//!     }
//!     fn exact(&self, shares: impl Iterator<Item = Rational>) -> Rational {
//!         shares.min().unwrap_or(Rational::ZERO)
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     let policy = Registration::new("smallest-share", "lowest smallest share, over weight", |context| {
//!         Ok(Box::new(ShareOrder::new(context, SmallestShare)))
//!     });
//!     evenhand::cli().policy(policy).main()
//! }
//! ```
//!
//! `examples/my_policy` in the repository is such a program. This crate holds arguments, progress and exit codes;
//! everything else is in the crates that it depends on.

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
mod policies;
mod policy_args;
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
use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use evenhand_policies::{PolicyError, Registration, Registry};

use crate::args::{Cli, Verb};
use crate::console::Console;
use crate::failure::{Failure, Outcome};

/// Returns the command line with the built-in policies.
pub fn cli() -> CommandLine {
    CommandLine { registry: Ok(Registry::built_in()) }
}

/// The command line `evenhand`, to which policies can be added.
#[derive(Debug)]
pub struct CommandLine {
    /// Or why a policy could not be added.
    registry: Result<Registry, PolicyError>,
}

impl CommandLine {
    /// Adds a policy to every verb that takes policies. If there is already one of that name, running reports it.
    #[must_use]
    pub fn policy(self, registration: Registration) -> CommandLine {
        CommandLine { registry: self.registry.and_then(|registry| registry.with(registration)) }
    }

    /// Runs the process's own arguments. A wrong command line ends the process with status 2.
    pub fn main(self) -> ExitCode {
        self.run(std::env::args_os())
    }

    /// Runs these arguments, of which the first is the program's name, and returns the exit status.
    pub fn run(self, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
        // A panic is reported below, once, as a sentence; libraries that catch their own panics stay silent.
        panic::set_hook(Box::new(|_| {}));
        let registry = match self.registry {
            Ok(registry) => registry,
            Err(error) => {
                let cli = args::parse(&Registry::built_in(), arguments).unwrap_or_else(|error| error.exit());
                Console::new(&cli.common).complain(&format!("error: {error}"));
                return Failure::input(error).exit_code();
            }
        };
        // clap exits with status 2 on a wrong command line by itself.
        let cli = args::parse(&registry, arguments).unwrap_or_else(|error| error.exit());
        let console = Console::new(&cli.common);
        let result = panic::catch_unwind(AssertUnwindSafe(|| run(cli, &registry, &console)));
        match result.unwrap_or_else(|payload| Err(mistake(payload.as_ref()))) {
            Ok(outcome) => outcome.exit_code(),
            Err(failure) => {
                console.complain(&format!("error: {failure}"));
                failure.exit_code()
            }
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

fn run(cli: Cli, registry: &Registry, console: &Console) -> Result<Outcome, Failure> {
    if let Some(threads) = cli.common.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .build_global()
            .map_err(|e| Failure::Environment(format!("cannot start {threads} threads: {e}")))?;
    }
    match cli.verb {
        Verb::Policies(arguments) => policies::run(&arguments, registry, console).map(|()| Outcome::Done),
        Verb::Workload(verb) => workload::run(verb, &cli.common, console).map(|()| Outcome::Done),
        Verb::Study(arguments) => study::run(&arguments, &cli.common, registry, console).map(|()| Outcome::Done),
        Verb::Sweep(arguments) => sweep::run(&arguments, &cli.common, registry, console).map(|()| Outcome::Done),
        Verb::SweepTask(arguments) => sweep::task(&arguments, registry).map(|()| Outcome::Done),
        Verb::Slurm(verb) => slurm::run(&verb, &cli.common, registry, console),
        Verb::Agent(verb) => agent::run(&verb, console),
        Verb::Top(arguments) => top::run(&arguments, console).map(|()| Outcome::Done),
        Verb::Allocate(arguments) => allocate::run(&arguments, console).map(|()| Outcome::Done),
        Verb::Audit(arguments) => audit::run(&arguments, &cli.common, registry, console),
        Verb::Timeline(arguments) => timeline::run(&arguments, console).map(|()| Outcome::Done),
        Verb::Price(arguments) => price::run(&arguments, console),
        Verb::Processes(arguments) => processes::run(&arguments, &cli.common, console).map(|()| Outcome::Done),
        Verb::Reproduce(arguments) => reproduce::run(&arguments, &cli.common, console),
    }
}
