//! `evenhand completions`: a script that completes command lines in a shell.

use evenhand_policies::Registry;

use crate::arguments::{CompletionsArgs, command_with_policy_names};
use crate::failure::Failure;
use crate::output::console::Console;

pub(crate) fn run(args: &CompletionsArgs, registry: &Registry, console: &Console) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_with_policy_names(registry), "evenhand", &mut script);
    console.document(String::from_utf8_lossy(&script).trim_end())
}
