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

use evenhand_agent::{AssembleError, Configuration, ConfigurationSources, JournalError, SupplyError};
use evenhand_documents::DocumentError;
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
    let configuration = configuration_of(&sources)?.map_err(Failure::document)?;
    Ok((configuration, sources))
}

/// Reads the layers of a configuration for this machine. The inner error is of the configuration, the outer one of the machine.
pub(super) fn configuration_of(
    sources: &ConfigurationSources,
) -> Result<Result<Configuration, DocumentError>, Failure> {
    let hierarchies = Hierarchies::detect().map_err(kernel_failure)?;
    let protected = ProtectedCgroups::detect().map_err(kernel_failure)?;
    Ok(Configuration::read_sources(sources, &hierarchies, protected))
}

/// Returns a sentence for each variable of the environment that is ignored, but has the name of a key but for an underscore.
pub(super) fn misspelt_variables(sources: &ConfigurationSources) -> Vec<String> {
    let sentence = |(name, likely): &(String, String)| format!("ignores the variable {name}; did you mean {likely}?");
    sources.misspelt().iter().map(sentence).collect()
}

fn kernel_failure(error: KernelError) -> Failure {
    Failure::Environment(error.to_string())
}

pub(super) fn assemble_failure(error: AssembleError) -> Failure {
    match error {
        AssembleError::Quotas(error) => Failure::document(*error),
        AssembleError::Key { .. } | AssembleError::Credentials(_) | AssembleError::Trust(_) => Failure::input(error),
        AssembleError::Journal(JournalError::Trust(error)) | AssembleError::Supply(SupplyError::Trust(error)) => {
            Failure::input(error)
        }
        other => Failure::Environment(other.to_string()),
    }
}
