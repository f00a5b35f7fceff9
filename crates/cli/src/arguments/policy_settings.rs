//! `--policy-settings`, and the options that policies declare for their settings.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use evenhand_policies::{Listed, PolicyError, PolicySettings, Registration, Registry, SettingOption};

use crate::failure::Failure;

/// Settings of policies on the command line: a file of sections, and options, which take precedence.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyArgs {
    file: Option<PathBuf>,
    /// Pairs of an option without dashes and its value.
    options: Vec<(String, String)>,
}

const FILE: &str = "policy-settings";
/// Prefix of the argument ids of options that policies declare.
const PREFIX: &str = "setting:";

impl Args for PolicyArgs {
    fn augment_args(command: Command) -> Command {
        let arg = Arg::new(FILE).long(FILE).value_name("FILE.toml").value_parser(clap::value_parser!(PathBuf)).help(
            "Settings of policies: TOML with a section for each policy, such as [sdrf-window] with the line window = \"30d\"; \
             `evenhand policies` lists the keys",
        );
        command.arg(arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        PolicyArgs::augment_args(command)
    }
}

impl FromArgMatches for PolicyArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PolicyArgs, clap::Error> {
        let mut options = Vec::new();
        for id in matches.ids().map(clap::Id::as_str) {
            let Some(option) = id.strip_prefix(PREFIX) else { continue };
            if let Some(value) = matches.get_one::<String>(id) {
                options.push((option.to_string(), value.clone()));
            }
        }
        Ok(PolicyArgs { file: matches.get_one::<PathBuf>(FILE).cloned(), options })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = PolicyArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds the policies' own options to every command that takes settings of policies.
pub(crate) fn with_policy_options(command: Command, registry: &Registry) -> Command {
    let takes_settings = command.get_arguments().any(|arg| arg.get_id() == FILE);
    let needs_history = command.get_arguments().any(|arg| arg.get_id() == "history");
    let command = match takes_settings {
        true => command.args(registry.options().into_iter().map(|option| {
            let arg = argument(option);
            if needs_history { arg.requires("history") } else { arg }
        })),
        false => command,
    };
    command.mut_subcommands(|subcommand| with_policy_options(subcommand, registry))
}

/// Returns the clap argument of a policy's option.
fn argument(option: &'static SettingOption) -> Arg {
    // clap needs ids that live as long as the program; there are only a few.
    let id: &'static str = format!("{PREFIX}{}", option.option).leak();
    let arg = Arg::new(id).long(option.option).value_name(option.value_name).help(option.help);
    match option.values {
        [] => arg,
        values => arg.value_parser(PossibleValuesParser::new(values)).hide_possible_values(true),
    }
}

impl PolicyArgs {
    /// Takes the settings from a file if no other is given.
    pub(crate) fn set_default_file(&mut self, path: PathBuf) {
        self.file.get_or_insert(path);
    }

    /// Reads the settings. An option takes precedence over the file of `--policy-settings`.
    pub(crate) fn settings(&self, registry: &Registry) -> Result<PolicySettings, Failure> {
        let mut settings = match &self.file {
            Some(path) => PolicySettings::read(path, registry).map_err(Failure::document)?,
            None => PolicySettings::default(),
        };
        for (option, value) in &self.options {
            settings.set_option(registry, option, value).map_err(Failure::document)?;
        }
        Ok(settings)
    }

    /// Rejects an option if none of its policies is among `policies`.
    pub(crate) fn refuse_unused(&self, registry: &Registry, policies: &[String]) -> Result<(), Failure> {
        for (typed, _) in &self.options {
            let has = |registration: &&Registration| registration.options.iter().any(|option| option.option == typed);
            let mut owners = registry.policies().iter().filter(has).map(|registration| registration.name).peekable();
            let Some(first) = owners.peek().copied() else { continue };
            if !owners.any(|owner| policies.iter().any(|policy| policy == owner)) {
                return Err(Failure::Input(format!(
                    "--{typed}: is a setting of the policy {first}, which --policy does not name; add {first} to --policy, or leave \
                     --{typed} out"
                )));
            }
        }
        Ok(())
    }

    /// Returns the parameters that a study's report always lists: names and values.
    pub(crate) fn general_parameters(
        &self,
        registry: &Registry,
        settings: &PolicySettings,
        policies: &[String],
    ) -> Result<Vec<(String, String)>, Failure> {
        parameters(registry, settings, policies, |listed| listed == Listed::Always)
    }

    /// Returns the parameters that a study's report lists only if they apply: names and values.
    pub(crate) fn specific_parameters(
        &self,
        registry: &Registry,
        settings: &PolicySettings,
        policies: &[String],
    ) -> Result<Vec<(String, String)>, Failure> {
        let mut parameters = parameters(registry, settings, policies, |listed| listed != Listed::Always)?;
        if let Some(path) = &self.file {
            parameters.push(("settings of policies".to_string(), path.display().to_string()));
        }
        Ok(parameters)
    }
}

fn parameters(
    registry: &Registry,
    settings: &PolicySettings,
    policies: &[String],
    is_listed: impl Fn(Listed) -> bool,
) -> Result<Vec<(String, String)>, Failure> {
    let mut parameters = Vec::new();
    for option in registry.options().into_iter().filter(|option| is_listed(option.listed)) {
        let has = |registration: &&Registration| registration.options.iter().any(|o| o.option == option.option);
        let is_used = |registration: &&Registration| policies.iter().any(|policy| policy == registration.name);
        let owners = || registry.policies().iter().filter(has);
        let used = owners().find(is_used);
        let Some(owner) = used.or_else(|| owners().next()) else { continue };
        let section = settings.section(owner.name).map_err(Failure::document)?;
        let value = match option.key {
            Some(key) => section.get(key).and_then(|node| node.written().ok()).map(String::from),
            None => Some(section.sources().filter(|source| !source.starts_with("--")).collect::<Vec<_>>().join(", "))
                .filter(|sources| !sources.is_empty()),
        };
        let is_included = match option.listed {
            Listed::Always => true,
            Listed::WithPolicy => used.is_some(),
            Listed::WhenGiven => value.is_some(),
        };
        if is_included {
            parameters.push((option.label.to_string(), option.in_words(value.as_deref())));
        }
    }
    Ok(parameters)
}

/// Returns the failure of a policy that cannot be built.
pub(crate) fn policy_failure(error: PolicyError) -> Failure {
    match error {
        PolicyError::Settings(error) => Failure::document(error),
        error => Failure::input(error),
    }
}

/// Returns the policies that an argument of this name names, or a failure that lists the known names, and `others` that the verb
/// takes beside policies.
pub(crate) fn policies_of(
    argument: &str,
    registry: &Registry,
    names: &[String],
    others: &[&'static str],
) -> Result<Vec<Registration>, Failure> {
    let known = || others.iter().copied().chain(registry.names());
    let find = |name: &String| registry.get(name).copied().map_err(|_| Failure::unknown(argument, name, known()));
    names.iter().map(find).collect()
}
