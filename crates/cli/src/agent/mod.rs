//! `evenhand agent`

mod args;
mod ask;
mod doctor;
mod families;
mod release;
mod run;
mod shown;

pub(crate) use args::{AgentVerb, TopArgs};
pub(crate) use ask::status;
pub(crate) use shown::{amount, headline, row as guest_row};

use std::path::Path;

use evenhand_agent::{AssembleError, Configuration};
use evenhand_documents::Document;
use evenhand_enforcers::cgroups::{Hierarchies, KernelError, ProtectedCgroups};

use crate::console::Console;
use crate::failure::{Failure, Outcome};

pub(crate) fn run(verb: &AgentVerb, console: &Console) -> Result<Outcome, Failure> {
    match verb {
        AgentVerb::Run(args) => run::run(args, console).map(|()| Outcome::Done),
        AgentVerb::Doctor(args) => doctor::run(args, console),
        AgentVerb::Release(args) => release::run(args, console),
        AgentVerb::Status(args) => shown::run(&args.socket, console).map(|()| Outcome::Done),
        AgentVerb::Why(args) => ask::why(&args.socket, &args.user, console).map(|()| Outcome::Done),
        AgentVerb::Benchmark => benchmark(console).map(|()| Outcome::Done),
    }
}

fn configuration(path: &Path) -> Result<Configuration, Failure> {
    let document = Document::read(path).map_err(Failure::document)?;
    let hierarchies = Hierarchies::detect().map_err(kernel)?;
    let protected = ProtectedCgroups::detect().map_err(kernel)?;
    Configuration::read(&document, &hierarchies, protected).map_err(Failure::document)
}

fn kernel(error: KernelError) -> Failure {
    Failure::Environment(error.to_string())
}

fn assembled(error: AssembleError) -> Failure {
    match error {
        AssembleError::Quotas(error) => Failure::document(*error),
        AssembleError::Key { .. } => Failure::input(error),
        other => Failure::Environment(other.to_string()),
    }
}

fn benchmark(console: &Console) -> Result<(), Failure> {
    let result = evenhand_agent::benchmark(std::time::Duration::from_secs(1));
    if console.is_json() {
        return console.json(&serde_json::json!({ "millions_of_rounds_per_s": result }));
    }
    console.result(&format!("{result:.1}"))
}
