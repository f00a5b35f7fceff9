//! `evenhand slurm study` and `evenhand slurm audit`: the verbs of these names, on what was read of the site.

use std::path::Path;

use evenhand_policies::Registry;

use super::args::PastArgs;
use super::pull::{Site, pull};
use crate::args::{self, Cli, Common, Verb};
use crate::console::Console;
use crate::failure::{Failure, Outcome};
use crate::{audit, study};

pub(super) fn study(
    args: &PastArgs,
    common: &Common,
    registry: &Registry,
    console: &Console,
) -> Result<Outcome, Failure> {
    run(args, common, registry, console, "study", |site| {
        let mut arguments = vec![text(&site.workload)];
        let mut add = |unless: &[&str], option: &str, value: String| {
            if !has(&args.rest, unless) {
                arguments.extend([option.to_string(), value]);
            }
        };
        add(&["--capacity"], "--capacity", text(&site.cluster));
        if let Some(accounts) = &site.accounts {
            add(&["--accounts", "--weights"], "--accounts", text(accounts));
        }
        if site.backfills {
            add(&["--backfill", "--no-blocking"], "--backfill", "easy".into());
        }
        arguments
    })
}

pub(super) fn audit(
    args: &PastArgs,
    common: &Common,
    registry: &Registry,
    console: &Console,
) -> Result<Outcome, Failure> {
    run(args, common, registry, console, "audit", |site| {
        let mut arguments = vec!["--history".to_string(), text(&site.workload)];
        if !has(&args.rest, &["--capacity"]) {
            arguments.extend(["--capacity".to_string(), text(&site.cluster)]);
        }
        if let Some(accounts) = site.accounts.as_ref().filter(|_| !has(&args.rest, &["--weights", "--accounts"])) {
            arguments.extend(["--accounts".to_string(), text(accounts)]);
        }
        arguments
    })
}

/// Reads the site, then runs a verb on it as if it had been typed.
fn run(
    args: &PastArgs,
    common: &Common,
    registry: &Registry,
    console: &Console,
    verb: &str,
    arguments: impl Fn(&Site) -> Vec<String>,
) -> Result<Outcome, Failure> {
    misplaced(&args.rest)?;
    // What is wrong with the verb's own options is said before a site is asked for months of history.
    let nowhere =
        Site { workload: "workload.parquet".into(), cluster: "cluster.toml".into(), accounts: None, backfills: false };
    let command = |site: &Site| {
        let mut command = vec!["evenhand".to_string()];
        command.extend(common.as_typed());
        command.push(verb.to_string());
        command.extend(arguments(site));
        command.extend(args.rest.iter().cloned());
        command
    };
    parse(registry, &command(&nowhere));
    let site = pull(args, common, console)?;
    let typed = command(&site);
    console.note(&format!("Without Slurm, from what was read: {}", typed.join(" ")));
    let cli = parse(registry, &typed);
    let console = Console::new(&cli.common);
    match cli.verb {
        Verb::Study(arguments) => study::run(&arguments, &cli.common, registry, &console).map(|()| Outcome::Done),
        Verb::Audit(arguments) => audit::run(&arguments, &cli.common, registry, &console),
        _ => Err(Failure::Environment(format!("{verb} is not the verb that was read"))),
    }
}

/// Ends with clap's own message where the options are wrong.
fn parse(registry: &Registry, command: &[String]) -> Cli {
    args::parse(registry, command).unwrap_or_else(|error| error.exit())
}

/// Options of this verb that stand after those of the other, which would take them for its own.
fn misplaced(rest: &[String]) -> Result<(), Failure> {
    const OWN: [&str; 7] =
        ["--from", "--to", "--all-users", "--lenient", "--without-down", "--speed-feature", "--site"];
    match OWN.iter().find(|option| has(rest, &[**option])) {
        Some(option) => {
            let first = rest.first().map_or("", String::as_str);
            Err(Failure::Input(format!("{option}: write it before {first}, where the options of the other verb begin")))
        }
        None => Ok(()),
    }
}

fn has(rest: &[String], options: &[&str]) -> bool {
    let is = |argument: &String, option: &str| {
        argument.strip_prefix(option).is_some_and(|value| value.is_empty() || value.starts_with('='))
    };
    rest.iter().any(|argument| options.iter().any(|option| is(argument, option)))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_wrong_place_are_seen() {
        let rest = |words: &str| words.split(' ').map(String::from).collect::<Vec<_>>();
        assert!(misplaced(&rest("--policy drf --out x")).is_ok());
        let error = misplaced(&rest("--policy drf --from=30d")).unwrap_err().to_string();
        assert!(error.starts_with("--from: write it before --policy"), "{error}");
        assert!(has(&rest("--capacity=2"), &["--capacity"]) && !has(&rest("--capacity-x"), &["--capacity"]));
    }
}
