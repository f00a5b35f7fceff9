//! The command `evenhand`: arguments, progress, exit codes. Everything else has its own room.

mod args;
mod console;
mod failure;
mod progress;
mod study;
mod table;
mod workload;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Verb};
use crate::console::Console;
use crate::failure::Failure;

fn main() -> ExitCode {
    no_panic_reaches_a_user();
    // clap exits with status 2 on a wrong command line by itself.
    let cli = Cli::parse();
    let console = Console::new(&cli.common);
    match run(cli, &console) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            console.complain(&format!("error: {failure}"));
            failure.exit_code()
        }
    }
}

fn run(cli: Cli, console: &Console) -> Result<(), Failure> {
    if let Some(threads) = cli.common.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .build_global()
            .map_err(|e| Failure::Environment(format!("cannot start {threads} threads: {e}")))?;
    }
    match cli.verb {
        Verb::Workload(verb) => workload::run(verb, &cli.common, console),
        Verb::Study(arguments) => study::run(&arguments, &cli.common, console),
    }
}

/// A bug is a sentence too.
fn no_panic_reaches_a_user() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), |l| format!(" ({}:{})", l.file(), l.line()));
        console::complain_plainly(&format!(
            "error: evenhand made a mistake{place}: {}. Please report it with the command line and, if you can, the input.",
            info.payload_as_str().unwrap_or("no message")
        ));
        std::process::exit(3);
    }));
}
