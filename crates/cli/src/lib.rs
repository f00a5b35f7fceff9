//! The command line `evenhand` as a library, so that another program can add its own policies to it.
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
//! `examples/my_policy` in the repository is such a program, and the tutorial "First policy" explains it.
//!
//! [`cli`] returns a [`CommandLine`]; [`CommandLine::policy`] adds a policy, which then works in every verb that takes
//! `--policy` (`study`, `sweep`, `audit --history`, `slurm plan`, `slurm run`), has its section in `--policy-settings`, its
//! own options in `--help`, and its row in `evenhand policies`. [`CommandLine::main`] runs the process's arguments;
//! [`CommandLine::run`] takes arguments from elsewhere, for tests; [`CommandLine::run_captured`] runs them for a program that
//! wants the result and not the exit of the process, such as the Python package.
//!
//! # Exit status
//!
//! | Status | Meaning |
//! |---|---|
//! | 0 | done |
//! | 1 | done, and the answer is negative: an audit has findings, a job fits on no machine, a paper's statement does not hold |
//! | 2 | the input or the command line is invalid |
//! | 3 | the environment failed, or the user interrupted the command |
//!
//! # Features
//!
//! Default features: `study` (`study`, `sweep`, `workload`, `policies`: what every build has), `analysis` (`allocate`, `audit`,
//! `price`, `processes`, `timeline`, `when`, `why`; with `formats`), `formats` (Parquet, and traces in zstd, bzip2, xz or tar), and,
//! each with `analysis`, `agent` (`agent`, `config`, `doctor`, `top`), `slurm` (`slurm`, `site`), `serve`, and `reproduce`.
//!
//! # Structure
//!
//! `verbs` has a file or folder for each verb, named as the user types it; in a verb, `tables` prints for people and
//! `record` holds what is printed as JSON. `arguments` holds the options of each verb, `inputs` reads files that several
//! verbs take, and `output` prints. Everything else is in the crates that this crate depends on.

mod arguments;
mod failure;
mod host;
mod inputs;
mod interrupts;
mod output;
#[cfg(any(feature = "agent", feature = "slurm"))]
mod service_manager;
mod verbs;

use std::any::Any;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use evenhand_documents::TextCells;
use evenhand_policies::{PolicyError, Registration, Registry};

use crate::arguments::Cli;
use crate::failure::{Failure, Outcome};
pub use crate::host::{Captured, Host, HostFile};
use crate::output::console::Console;

/// Returns the command line with the built-in policies.
pub fn cli() -> CommandLine {
    CommandLine { registry: Ok(Registry::built_in()) }
}

/// The command line `evenhand`: all its verbs, with the policies of a registry.
#[derive(Debug)]
pub struct CommandLine {
    /// The policies, or the error of the first policy that could not be added.
    registry: Result<Registry, PolicyError>,
}

impl CommandLine {
    /// Adds a policy to every verb that takes policies.
    ///
    /// If there is already a policy of that name, [`run`](CommandLine::run) and [`main`](CommandLine::main) report the error.
    #[must_use]
    pub fn policy(self, registration: Registration) -> CommandLine {
        CommandLine { registry: self.registry.and_then(|registry| registry.with(registration)) }
    }

    /// Runs the process's own arguments and returns the exit status.
    ///
    /// Exits the process with status 2 if the command line is invalid, and with 0 after `--help` and `--version`.
    pub fn main(self) -> ExitCode {
        exit_instead_of_abort();
        self.run(std::env::args_os())
    }

    /// Runs these arguments, of which the first is the program's name, and returns the exit status.
    ///
    /// Exits the process if the command line is invalid, like [`main`](CommandLine::main). Replaces the process's panic hook:
    /// a panic is caught and reported as an internal error, with status 3.
    pub fn run(self, arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
        // Panics are reported below, once, as a sentence. Those that a library catches itself are not reported.
        panic::set_hook(Box::new(|_| {}));
        let registry = match self.registry {
            Ok(registry) => registry,
            Err(error) => {
                let cli = arguments::parse(&Registry::built_in(), arguments)
                    .unwrap_or_else(|error| arguments::with_expected(error).exit());
                Console::new(&cli.common, &[]).error(&format!("error: {error}"));
                return ExitCode::from(Failure::input(error).status());
            }
        };
        let arguments = arguments::list_policies_on_request(arguments);
        // clap exits with status 2 itself if the command line is invalid.
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let mut cli =
            arguments::parse(&registry, &arguments).unwrap_or_else(|error| arguments::with_expected(error).exit());
        let console = Console::new(&cli.common, &arguments);
        limit_threads(&mut cli, &console);
        if let Err(failure) = start_threads(&cli) {
            return ExitCode::from(report(Err(failure), &console));
        }
        ExitCode::from(report(run(cli, &registry, &console), &console))
    }

    /// Runs these arguments, of which the first is the program's name, without touching the process: what the command
    /// prints and its exit status are returned, and `host` stops it.
    ///
    /// A panic is an internal error, with status 3; the process's panic hook sees it.
    pub fn run_captured(self, arguments: impl IntoIterator<Item = OsString>, host: &Host) -> Captured {
        let refused = |status: u8, error: String| Captured { status, error: Some(error), ..Captured::default() };
        let registry = match self.registry {
            Ok(registry) => registry,
            Err(error) => return refused(2, format!("error: {error}")),
        };
        let arguments: Vec<OsString> = arguments.into_iter().collect();
        let mut cli = match arguments::parse(&registry, &arguments) {
            Ok(cli) => cli,
            Err(error) if error.use_stderr() => {
                return refused(2, arguments::with_expected(error).render().to_string().trim_end().to_string());
            }
            Err(help) => return Captured { output: help.render().to_string().into_bytes(), ..Captured::default() },
        };
        let console = Console::hosted(&cli.common, &arguments, host);
        limit_threads(&mut cli, &console);
        let result = thread_pool(&cli).and_then(|pool| pool.install(|| run(cli, &registry, &console)));
        // What the host is around of them may need the host, which must be there still.
        host.wait_for_threads();
        let status = report(result, &console);
        Captured { status, ..console.take_captured() }
    }
}

/// Prints the failure, if there is one; returns the documented exit status.
fn report(result: Result<Outcome, Failure>, console: &Console) -> u8 {
    match result {
        Ok(outcome) => outcome.status(),
        Err(failure) => {
            console.failure(&failure);
            failure.status()
        }
    }
}

/// Lets a failed allocation end the process with the documented status 3, and not by a signal. The standard library prints
/// how many bytes could not be had, and then aborts.
fn exit_instead_of_abort() {
    let always = Arc::new(AtomicBool::new(true));
    // It fails only for signals that cannot be handled, of which this is none.
    let _ = signal_hook::flag::register_conditional_shutdown(signal_hook::consts::SIGABRT, 3, always);
}

/// Returns the failure for a panic.
fn internal_error(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().map(|s| s.to_string());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    Failure::Environment(format!(
        "internal error: {}. This is a bug in evenhand; please report it with the command line and, if you can, the input",
        text.unwrap_or_else(|| "no message".into())
    ))
}

/// Returns the largest number of threads that helps: some for each core, since threads wait for disks too. More would only
/// take memory, and a number with a digit too many could not be started at all.
fn most_threads() -> NonZeroUsize {
    const FOR_EACH_CORE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(63);
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).saturating_mul(FOR_EACH_CORE)
}

/// Reduces `--threads` to the largest number that helps, and says so.
fn limit_threads(cli: &mut Cli, console: &Console) {
    let most = most_threads();
    if let Some(threads) = cli.common.threads.filter(|threads| *threads > most) {
        console.note(&format!("--threads {threads}: using {most}, the largest number on this machine."));
        cli.common.threads = Some(most);
    }
}

/// Sets the process's number of threads.
fn start_threads(cli: &Cli) -> Result<(), Failure> {
    let Some(threads) = cli.common.threads else { return Ok(()) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.get());
    pool.build_global().map_err(|e| Failure::Environment(format!("cannot start {threads} threads: {e}")))
}

/// Returns the threads of one command. Those of the process are the host's to set, and a host that forks loses them.
fn thread_pool(cli: &Cli) -> Result<rayon::ThreadPool, Failure> {
    let threads = cli.common.threads.map_or(0, NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|e| Failure::Environment(format!("cannot start the threads of a command: {e}")))
}

fn run(cli: Cli, registry: &Registry, console: &Console) -> Result<Outcome, Failure> {
    if cli.common.explain && console.is_json() {
        let problem = "--explain: explains the columns of tables, and --format json prints none; leave one of them out";
        return Err(Failure::Input(problem.into()));
    }
    if cli.common.raw_csv {
        TextCells::Raw.set_for_results();
    }
    let verb = AssertUnwindSafe(|| verbs::run(cli.verb, &cli.common, registry, console));
    panic::catch_unwind(verb).unwrap_or_else(|payload| Err(internal_error(payload.as_ref())))
}
