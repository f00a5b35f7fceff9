//! `evenhand manual`: the manual pages of all verbs, for packages.

use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use evenhand_model::counted;
use evenhand_policies::Registry;

use crate::arguments::{ManualArgs, command_with_policy_names};
use crate::failure::Failure;
use crate::output::console::Console;

pub(crate) fn run(args: &ManualArgs, registry: &Registry, console: &Console) -> Result<(), Failure> {
    std::fs::create_dir_all(&args.folder).map_err(|error| not_written(&args.folder, &error))?;
    // Building names each verb with the verbs above it: `evenhand-agent-run`.
    let mut command = without_help_verbs(command_with_policy_names(registry));
    command.build();
    let pages = write_pages(command, args)?;
    if console.is_json() {
        return console.json(&serde_json::json!({ "pages": pages, "folder": args.folder }));
    }
    console.result(&format!("{} in {}", counted(pages, "manual page", "manual pages"), args.folder.display()))
}

/// Drops the verb `help`, which repeats every page.
fn without_help_verbs(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help_verbs)
}

/// Writes the page of a command and of the commands below it, and returns their number.
fn write_pages(command: Command, args: &ManualArgs) -> Result<u64, Failure> {
    let mut pages = 1;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages += write_pages(below.clone(), args)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let file = args.folder.join(format!("{name}.1"));
    // The heading's fields are positional, so that none of them may be empty.
    let source = concat!("evenhand ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command).title(name).date(&args.date).source(source).manual("evenhand");
    let mut text = Vec::new();
    page.render(&mut text).and_then(|()| std::fs::write(&file, &text)).map_err(|error| not_written(&file, &error))?;
    Ok(pages)
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Environment(format!("{}: {error}", path.display()))
}
