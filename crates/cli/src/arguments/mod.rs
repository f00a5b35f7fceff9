//! The command line as clap reads it: a file for each verb, and for each group of options that several verbs share.

#[cfg(feature = "agent")]
mod agent;
#[cfg(feature = "analysis")]
mod allocate;
#[cfg(feature = "analysis")]
mod audit;
#[cfg(feature = "analysis")]
mod audit_history;
mod common;
mod completions;
#[cfg(feature = "agent")]
mod config;
pub(crate) mod decay;
#[cfg(feature = "agent")]
mod doctor;
mod manual;
#[cfg(feature = "analysis")]
mod mechanism;
mod named_value;
mod policies;
pub(crate) mod policy_settings;
#[cfg(feature = "analysis")]
mod price;
#[cfg(feature = "analysis")]
mod processes;
#[cfg(feature = "reproduce")]
mod reproduce;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "slurm")]
mod site;
#[cfg(feature = "slurm")]
mod slurm;
mod study;
mod sweep;
#[cfg(feature = "analysis")]
mod timeline;
#[cfg(feature = "agent")]
mod top;
mod trace;
#[cfg(feature = "analysis")]
mod when;
#[cfg(feature = "analysis")]
mod why;
mod workload;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use evenhand_policies::Registry;

#[cfg(feature = "agent")]
pub(crate) use self::agent::{
    AgentVerb, CONFIGURATION as AGENT_CONFIGURATION, DoctorArgs, ReleaseArgs as AgentReleaseArgs,
    RunArgs as AgentRunArgs,
};
#[cfg(feature = "analysis")]
pub(crate) use self::allocate::AllocateArgs;
#[cfg(feature = "analysis")]
pub(crate) use self::audit::AuditArgs;
#[cfg(feature = "analysis")]
pub(crate) use self::audit_history::HistoryArgs;
pub(crate) use self::common::{Common, Format};
pub(crate) use self::completions::CompletionsArgs;
#[cfg(feature = "agent")]
pub(crate) use self::config::{ConfigCheckArgs, ConfigVerb};
#[cfg(feature = "agent")]
pub(crate) use self::doctor::InstallationArgs;
pub(crate) use self::manual::ManualArgs;
#[cfg(feature = "analysis")]
pub(crate) use self::mechanism::MechanismArgs;
pub(crate) use self::policies::PoliciesArgs;
use self::policy_settings::with_policy_options;
#[cfg(feature = "analysis")]
pub(crate) use self::price::PriceArgs;
#[cfg(feature = "analysis")]
pub(crate) use self::processes::ProcessesArgs;
#[cfg(feature = "reproduce")]
pub(crate) use self::reproduce::ReproduceArgs;
#[cfg(feature = "serve")]
pub(crate) use self::serve::ServeArgs;
#[cfg(feature = "slurm")]
pub(crate) use self::site::{SiteImportArgs, SiteVerb};
#[cfg(feature = "slurm")]
pub(crate) use self::slurm::{
    MachineArgs, OrderArgs, PastArgs, PlanArgs, QueueArgs, ReleaseArgs as SlurmReleaseArgs, RunArgs as SlurmRunArgs,
    ShowArgs, SlurmVerb, WhenArgs as SlurmWhenArgs, WhyArgs as SlurmWhyArgs,
};
pub(crate) use self::study::{Release, StudyArgs, Until};
pub(crate) use self::sweep::{Engine, SweepArgs, SweepTaskArgs, SweepVerb};
#[cfg(feature = "analysis")]
pub(crate) use self::timeline::TimelineArgs;
#[cfg(feature = "agent")]
pub(crate) use self::top::TopArgs;
pub(crate) use self::trace::TraceArgs;
#[cfg(feature = "analysis")]
pub(crate) use self::when::{LogArgs, WhenArgs};
#[cfg(feature = "analysis")]
pub(crate) use self::why::WhyArgs;
pub(crate) use self::workload::{DescribeArgs, ExportArgs, GenerateArgs, ImportArgs, WorkloadVerb};

/// Who should get what next, and is it fair? Replays a site's own history under many fairness
/// policies and shows which users would gain and which would lose.
#[derive(Debug, Parser)]
#[command(name = "evenhand", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Parses a command line whose policies are those of `registry`.
///
/// # Errors
///
/// Returns an error that clap can print if the command line is invalid, or if it asks for help or the version.
pub(crate) fn parse(
    registry: &Registry,
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Cli, clap::Error> {
    let mut command = with_negative_numbers(with_policy_options(Cli::command(), registry));
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Lets every option take a negative number as its value, so that the option's own parser says what it expects. Otherwise clap
/// takes `-1` for an option, and proposes to write `-- -1`, which no verb accepts.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| match arg.get_long().is_some() && arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    });
    command.mut_subcommands(with_negative_numbers)
}

/// What the standard library says of a text that is not a number, and what an option says.
const NOT_A_NUMBER: &[(&str, &str)] = &[
    ("invalid digit found in string", "expected a whole number, 0 or more"),
    ("cannot parse integer from empty string", "expected a whole number, 0 or more"),
    ("number too large to fit in target type", "expected a smaller number"),
    ("invalid float literal", "expected a number"),
    ("cannot parse float from empty string", "expected a number"),
];

/// Returns an error of clap, of which only the text matters, with what was expected where it has the standard library's words.
pub(crate) fn with_expected(error: clap::Error) -> clap::Error {
    let text = error.render().to_string();
    if let Some(found) = negative_text(&error) {
        let problem = format!(
            "found a value that begins with {found}, expected one without a minus sign; a file of such a name is \
             ./{found}…\n\nFor more information, try '--help'.\n"
        );
        return clap::Error::raw(error.kind(), problem);
    }
    let Some((theirs, ours)) = NOT_A_NUMBER.iter().find(|(theirs, _)| text.contains(theirs)) else { return error };
    clap::Error::raw(error.kind(), text.replace(theirs, ours).trim_start_matches("error: "))
}

/// Returns the beginning of a value such as `-1d`, which clap took for the short option `-1`.
fn negative_text(error: &clap::Error) -> Option<&str> {
    let unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    match error.get(clap::error::ContextKind::InvalidArg).filter(|_| unknown) {
        Some(clap::error::ContextValue::String(found)) => {
            let rest = found.strip_prefix('-')?;
            rest.starts_with(|c: char| c.is_ascii_digit() || c == '.').then_some(found)
        }
        _ => None,
    }
}

/// Turns `evenhand VERB … --policy help …` into `evenhand policies`, whatever else the verb requires.
pub(crate) fn list_policies_on_request(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let asks = arguments.windows(2).any(|pair| pair[0] == "--policy" && pair[1] == "help");
    if !asks && !arguments.iter().any(|argument| argument == "--policy=help") {
        return arguments;
    }
    let program = arguments.into_iter().take(1);
    program.chain([OsString::from("policies")]).collect()
}

/// Returns the command line for the completions of shells: options that take policies list their names.
pub(crate) fn command_with_policy_names(registry: &Registry) -> clap::Command {
    let names: Vec<&'static str> = registry.policies().iter().map(|policy| policy.name).collect();
    complete_policies(with_policy_options(Cli::command(), registry), &names)
}

fn complete_policies(command: clap::Command, names: &[&'static str]) -> clap::Command {
    let takes_policies = command.get_arguments().any(|arg| arg.get_id() == "policy");
    // A verb that compares policies has what happened among them.
    let compares = command.get_arguments().any(|arg| arg.get_id() == "against");
    let command = match takes_policies {
        true => {
            let logged = compares.then_some(evenhand_study::LOGGED);
            let names = clap::builder::PossibleValuesParser::new(logged.into_iter().chain(names.iter().copied()));
            command.mut_arg("policy", |arg| arg.value_parser(names))
        }
        false => command,
    };
    command.mut_subcommands(|subcommand| complete_policies(subcommand, names))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Import, describe, generate and export workloads
    #[command(subcommand)]
    Workload(WorkloadVerb),
    /// Replay a workload under several policies and write a report
    Study(Box<StudyArgs>),
    /// List the policies and their settings
    Policies(PoliciesArgs),
    /// Print the completions of a shell, with the names of policies and formats
    Completions(CompletionsArgs),
    /// Write the manual pages of all verbs, as packages have them
    #[command(hide = true)]
    Manual(ManualArgs),
    /// Run a grid of workloads, policies, capacities and settings, on this machine or as Slurm job arrays
    Sweep(Box<SweepArgs>),
    /// Run one task of a sweep's job array
    #[command(hide = true)]
    SweepTask(SweepTaskArgs),
    /// Read this Slurm site: show it, study and audit its history, plan its queue, keep the queue in a policy's order
    #[cfg(feature = "slurm")]
    #[command(subcommand)]
    Slurm(SlurmVerb),
    /// Show this Slurm site on web pages and by a JSON API: the queue with reasons, why and when, who received what; changes
    /// nothing
    #[cfg(feature = "serve")]
    Serve(Box<ServeArgs>),
    /// Read a site from its configuration files
    #[cfg(feature = "slurm")]
    #[command(subcommand)]
    Site(SiteVerb),
    /// Set the weights of running workloads (VMs, containers, users' slices) on this node by their users' load on all nodes
    #[cfg(feature = "agent")]
    #[command(subcommand)]
    Agent(AgentVerb),
    /// Check the agent's configuration, or print its schema
    #[cfg(feature = "agent")]
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Examine the whole installation: versions, services, rights, keys, the clock, Slurm; changes nothing
    #[cfg(feature = "agent")]
    Doctor(InstallationArgs),
    /// Watch the running agent: users by heaviness, their workloads, shares and entitlements, written values
    #[cfg(feature = "agent")]
    Top(TopArgs),
    /// Forecast when jobs start, from the past of a log
    #[cfg(feature = "analysis")]
    When(WhenArgs),
    /// Explain why a job of a log waited, or a user: what was full, who held it, which change would have started it earlier
    #[cfg(feature = "analysis")]
    Why(WhyArgs),
    /// Divide one capacity among users once, by one or several mechanisms
    #[cfg(feature = "analysis")]
    Allocate(AllocateArgs),
    /// Check an allocation or a recorded history against fairness properties, or search for profitable misreports
    #[cfg(feature = "analysis")]
    Audit(Box<AuditArgs>),
    /// Divide capacity over time among users who arrive, change and leave
    #[cfg(feature = "analysis")]
    Timeline(TimelineArgs),
    /// Compute what a job costs on the machines of a cluster, in processor equivalents (Klusáček & Rudová 2013)
    #[cfg(feature = "analysis")]
    Price(PriceArgs),
    /// Simulate processes that alternate between time-shared resources (Zeldes & Feitelson 2013)
    #[cfg(feature = "analysis")]
    Processes(ProcessesArgs),
    /// Repeat a paper's experiments: what the paper states, what evenhand measures, whether the statement holds
    #[cfg(feature = "reproduce")]
    Reproduce(Box<ReproduceArgs>),
}
