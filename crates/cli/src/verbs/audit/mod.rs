//! `evenhand audit`: of an allocation, of a recorded history (`--history`), or of a mechanism (`--search-lies`).

mod allocation;
mod history;
mod search_misreports;

use evenhand_policies::Registry;

use crate::arguments::{AuditArgs, Common};
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;

pub(crate) fn run(
    args: &AuditArgs,
    common: &Common,
    registry: &Registry,
    console: &Console,
) -> Result<Outcome, Failure> {
    if let Some(path) = &args.history.history {
        return history::run(path, args, common, registry, console);
    }
    if args.user.is_some() && !args.search_lies {
        return Err(Failure::Input("--user: applies to --search-lies and to --history; give one of them".into()));
    }
    match &args.allocation {
        Some(path) => allocation::run(args, path, console),
        // clap requires --search-lies if there is no allocation.
        None => search_misreports::run(args, common, console),
    }
}
