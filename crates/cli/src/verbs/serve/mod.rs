//! `evenhand serve`: pages and a JSON API on a Slurm site.

#[cfg(feature = "agent")]
mod ask_agent;
mod prometheus_metrics;
mod reported_silence;

use std::sync::Arc;
use std::time::Duration;

use evenhand_model::Span;
use evenhand_serve::identity::{TrustedProxy, UserHeader};
use evenhand_serve::visibility::VisibilityPolicy;
use evenhand_serve::{
    AgentReader, COMMAND_LIMIT, Latest, Listen, Options, Progress, Readers, SlurmSite, Stop, StudyError, StudyFiles,
    check_identity, longest_silence,
};
use evenhand_slurm::{Call, CommandError, Commands, LocalCommands};

use self::reported_silence::ReportedSite;
use crate::arguments::{Common, Format, ServeArgs};
use crate::failure::Failure;
use crate::inputs::times;
use crate::interrupts::{SecondSignal, ignore_signals_without_meaning, on_interrupt};
use crate::output::console::Console;
use crate::output::serve_metrics;
use crate::service_manager::ServiceManager;

/// Commands each of which is progress when it has ended.
struct ReportedCommands {
    commands: LocalCommands,
    progress: Progress,
}

impl Commands for ReportedCommands {
    fn run(&self, call: &Call) -> Result<String, CommandError> {
        let output = self.commands.run(call);
        self.progress.made();
        output
    }
}

/// What the options state, with the file of the policy and the list of the study's files.
pub(super) struct ServeSettings {
    listen: Listen,
    interval: Span,
    history: Span,
    user_header: Option<UserHeader>,
    policy: VisibilityPolicy,
    study: Option<StudyFiles>,
}

impl ServeSettings {
    pub(super) fn read(args: &ServeArgs, common: &Common) -> Result<ServeSettings, Failure> {
        if common.format == Some(Format::Json) {
            let problem = "serve prints no results, and answers in JSON below /api/v1; leave it out";
            return Err(Failure::Input(format!("--format json: {problem}")));
        }
        let interval = span("--interval", &args.interval)?;
        if interval < Span::from_secs(1) {
            return Err(Failure::Input(format!("--interval: found {}, expected at least 1s", args.interval)));
        }
        let history = span("--history", &args.history)?;
        if args.rate == 0 {
            return Err(Failure::Input("--rate: found 0, expected at least 1".into()));
        }
        let user_header = match (&args.user_header, &args.trusted_proxy) {
            (Some(name), Some(proxy)) => {
                let proxy = TrustedProxy::parse(proxy).map_err(Failure::input)?;
                Some(UserHeader::new(name, proxy).map_err(Failure::input)?)
            }
            // clap demands both or none.
            _ => None,
        };
        let listen = args.socket.clone().map_or(Listen::Tcp(args.listen), Listen::Unix);
        check_identity(&listen, user_header.as_ref()).map_err(Failure::input)?;
        let policy = match &args.policy_file {
            Some(path) => VisibilityPolicy::read(path).map_err(Failure::document)?,
            None => VisibilityPolicy::default(),
        };
        let study = args.study.as_deref().map(StudyFiles::list).transpose().map_err(|error| {
            let environment =
                matches!(&error, StudyError::Read { source, .. } if source.kind() != std::io::ErrorKind::NotFound);
            Failure::new(error, environment)
        })?;
        Ok(ServeSettings { listen, interval, history, user_header, policy, study })
    }
}

pub(super) fn run(args: &ServeArgs, common: &Common, console: &Console) -> Result<(), Failure> {
    let ServeSettings { listen, interval, history, user_header, policy, study } = ServeSettings::read(args, common)?;
    let options = Options {
        listen,
        user_header,
        interval: Duration::from_nanos(interval.nanos()),
        policy,
        study,
        rate: args.rate,
        seed: common.seed(),
    };
    let stop = Stop::default();
    let stopping = stop.clone();
    ignore_signals_without_meaning()?;
    let flag = on_interrupt(SecondSignal::Exits, move || stopping.stop())?;
    let commands = LocalCommands { timeout: COMMAND_LIMIT, stop: flag, ..LocalCommands::default() };
    let progress = Progress::default();
    let commands = ReportedCommands { commands, progress: progress.clone() };
    let site = Box::new(ReportedSite::new(SlurmSite::new(Box::new(commands), history), console.clone()));
    #[cfg(feature = "agent")]
    let agent = args
        .agent
        .clone()
        .map(|socket| -> Box<dyn AgentReader> { Box::new(ask_agent::LocalAgent::new(socket, console.clone())) });
    #[cfg(not(feature = "agent"))]
    let agent: Option<Box<dyn AgentReader>> = None;
    let readers = Readers { site, agent };
    let latest = Arc::new(Latest::default());
    if let Some(address) = args.metrics {
        let watched = Arc::clone(&latest);
        serve_metrics::serve("--metrics", address, move || prometheus_metrics::metrics(&watched))?;
    }
    let (manager, silence) = (ServiceManager::of_process(), longest_silence(options.interval));
    let works = || manager.passed(silence);
    let ready = |place: &str| {
        works();
        console.note(&format!("Serving at {place}, until stopped."));
    };
    let served = evenhand_serve::serve(options, latest, readers, times::now, &stop, ready, (&progress, &works));
    manager.stopping();
    served.map_err(|error| {
        let environment = error.is_environment();
        Failure::new(error, environment)
    })
}

fn span(option: &str, text: &str) -> Result<Span, Failure> {
    Span::parse(text).map_err(|error| Failure::Input(format!("{option}: {error}")))
}
