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
    let of_mechanism = [("--sharing-incentive", args.options.sharing_incentive.is_some())];
    if let Some(path) = &args.history.history {
        Failure::refuse_without("--search-lies", &[&[("--tries", args.tries.is_some())], &of_mechanism[..]].concat())?;
        return history::run(path, args, common, registry, console);
    }
    let of_history = &args.history;
    Failure::refuse_without(
        "--history",
        &[
            ("--capacity", of_history.capacity.is_some()),
            ("--weights", of_history.weights.is_some()),
            ("--since", of_history.since.is_some()),
            ("--until", of_history.until.is_some()),
            ("--policy", !of_history.policy.is_empty()),
            ("--half-life", of_history.half_life.is_some()),
            ("--accounts", of_history.accounts.is_some()),
            ("--out", of_history.out.is_some()),
            ("--utc-offset", of_history.utc_offset.is_some()),
        ],
    )?;
    if args.user.is_some() && !args.search_lies {
        return Err(Failure::Input("--user: applies to --search-lies and to --history; give one of them".into()));
    }
    match &args.allocation {
        Some(path) => {
            Failure::refuse_without("--search-lies", &of_mechanism)?;
            allocation::run(args, path, console)
        }
        // clap requires --search-lies if there is no allocation.
        None => search_misreports::run(args, common, console),
    }
}
