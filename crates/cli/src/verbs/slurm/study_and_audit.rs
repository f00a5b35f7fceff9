//! `evenhand slurm study` and `evenhand slurm audit`: export the site to files, then run the verb of this name on them.

use std::path::Path;

use evenhand_policies::Registry;

use super::export_site::{SiteFiles, export_site};
use crate::arguments::{self, Cli, Common, PastArgs, Verb};
use crate::failure::{Failure, Outcome};
use crate::output::console::Console;
use crate::verbs::study::site_folder::{CLUSTER, SLURM_CONF};
use crate::verbs::{audit, study};

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
        add(&["--slurm-conf"], "--slurm-conf", text(&site.slurm_conf));
        if site.backfills {
            add(&["--backfill", "--scheduler", "--no-blocking"], "--backfill", "easy".into());
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

/// Exports the site, then runs `verb` on the files as if the user had typed the command.
fn run(
    args: &PastArgs,
    common: &Common,
    registry: &Registry,
    console: &Console,
    verb: &str,
    arguments: impl Fn(&SiteFiles) -> Vec<String>,
) -> Result<Outcome, Failure> {
    check_order(&args.rest)?;
    // Reading months of history takes long, so the verb's own options are checked first.
    let not_exported = SiteFiles {
        workload: "workload.parquet".into(),
        cluster: CLUSTER.into(),
        accounts: None,
        slurm_conf: SLURM_CONF.into(),
        backfills: false,
    };
    let command = |site: &SiteFiles| {
        let mut command = vec!["evenhand".to_string()];
        command.extend(common.to_arguments());
        command.push(verb.to_string());
        command.extend(arguments(site));
        command.extend(args.rest.iter().cloned());
        command
    };
    parse_or_exit(registry, &command(&not_exported));
    let site = export_site(args, common, console)?;
    let arguments = command(&site);
    console.note(&format!("The same without Slurm, from the exported files: {}", arguments.join(" ")));
    let cli = parse_or_exit(registry, &arguments);
    let console = console.with_options(&cli.common);
    match cli.verb {
        Verb::Study(arguments) => study::run(&arguments, &cli.common, registry, &console).map(|()| Outcome::Done),
        Verb::Audit(arguments) => audit::run(&arguments, &cli.common, registry, &console),
        _ => Err(Failure::Environment(format!("internal error: {verb} parsed as another verb"))),
    }
}

/// Parses a command. Exits the process with clap's own message if the options are invalid.
fn parse_or_exit(registry: &Registry, command: &[String]) -> Cli {
    arguments::parse(registry, command).unwrap_or_else(|error| error.exit())
}

/// Rejects options of `slurm study` and `slurm audit` that stand after options of the other verb, which would parse them.
fn check_order(rest: &[String]) -> Result<(), Failure> {
    const SLURM_OPTIONS: [&str; 7] =
        ["--from", "--to", "--all-users", "--lenient", "--without-down", "--speed-feature", "--site"];
    match SLURM_OPTIONS.iter().find(|option| has(rest, &[**option])) {
        Some(option) => {
            let first = rest.first().map_or("", String::as_str);
            Err(Failure::Input(format!("{option}: write it before {first}, where the options of the other verb begin")))
        }
        None => Ok(()),
    }
}

/// Returns whether one of these options is among the arguments.
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
    fn slurm_options_after_options_of_the_other_verb_are_rejected() {
        let rest = |words: &str| words.split(' ').map(String::from).collect::<Vec<_>>();
        assert!(check_order(&rest("--policy drf --out x")).is_ok());
        let error = check_order(&rest("--policy drf --from=30d")).unwrap_err().to_string();
        assert!(error.starts_with("--from: write it before --policy"), "{error}");
        assert!(has(&rest("--capacity=2"), &["--capacity"]) && !has(&rest("--capacity-x"), &["--capacity"]));
    }
}
