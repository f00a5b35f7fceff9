//! `evenhand agent`

mod benchmark;
mod doctor;
mod prometheus_metrics;
mod query_status;
mod release;
mod reload;
mod run;
mod status;
mod why;

pub(crate) use self::query_status::query_status;
pub(crate) use self::status::{format_amount, headline, workload_cells};

use std::path::Path;

use evenhand_agent::{AssembleError, Configuration, ConfigurationSources};
use evenhand_enforcers::cgroups::{Hierarchies, KernelError, ProtectedCgroups};

use crate::arguments::AgentVerb;
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;

pub(crate) fn run(verb: &AgentVerb, console: &Console) -> Result<Outcome, Failure> {
    match verb {
        AgentVerb::Run(args) => run::run(args, console).map(|()| Outcome::Done),
        AgentVerb::Doctor(args) => doctor::run(args, console),
        AgentVerb::Release(args) => release::run(args, console),
        AgentVerb::Reload(args) => reload::run(&args.socket, console).map(|()| Outcome::Done),
        AgentVerb::Status(args) => status::run(&args.socket, console).map(|()| Outcome::Done),
        AgentVerb::Why(args) => why::run(&args.socket, &args.user, console).map(|()| Outcome::Done),
        AgentVerb::Benchmark => benchmark::run(console).map(|()| Outcome::Done),
    }
}

/// Reads a configuration for this machine, with its drop-in files and environment variables.
pub(super) fn read_configuration(path: &Path) -> Result<(Configuration, ConfigurationSources), Failure> {
    if !path.exists() {
        return Err(Failure::Input(format!(
            "{}: there is no configuration; write one, which `evenhand config check` checks, or name another with --config",
            path.display()
        )));
    }
    let sources = ConfigurationSources::read(path, std::env::vars_os()).map_err(Failure::document)?;
    let hierarchies = Hierarchies::detect().map_err(kernel_failure)?;
    let protected = ProtectedCgroups::detect().map_err(kernel_failure)?;
    let configuration = Configuration::read_sources(&sources, &hierarchies, protected).map_err(Failure::document)?;
    Ok((configuration, sources))
}

fn kernel_failure(error: KernelError) -> Failure {
    Failure::Environment(error.to_string())
}

fn assemble_failure(error: AssembleError) -> Failure {
    match error {
        AssembleError::Quotas(error) => Failure::document(*error),
        AssembleError::Key { .. } | AssembleError::Trust(_) => Failure::input(error),
        other => Failure::Environment(other.to_string()),
    }
}
