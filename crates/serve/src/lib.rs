//! Read-only web pages and a JSON API on the queue of a Slurm site: why a job waits, when it starts, and who got what
//! of what they are entitled to.
//!
//! ```text
//!  Slurm ──▶ SiteReader ──▶ Latest ──▶ View = Snapshot + Sight ──▶ records ──▶ page or JSON
//!            one thread,    the last    what this visitor sees
//!            once in an     answer
//!            interval
//! ```
//!
//! * One thread asks the site ([`SiteReader`]), however many visitors there are ([`Latest`]). With the controller away
//!   the last answer stays, and every page shows its age.
//! * Who visits is known from the Unix socket or from a header of a trusted proxy ([`identity`]); what a visitor sees is
//!   decided by Slurm's PrivateData and a policy file ([`visibility`]).
//! * Nothing is written, at the site or on disk. Requests are GET and HEAD only.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod agent_nodes;
mod answers;
mod connection_shares;
mod forecast_checks;
mod guard;
pub mod identity;
mod latest;
mod nodes_page;
mod pages;
mod progress;
mod queries;
mod rate_limit;
mod routes;
mod server;
mod snapshot;
mod study_files;
pub mod visibility;

use std::future::pending;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use evenhand_model::Time;
use evenhand_slurm::{CommandError, ReadError};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::timeout;

pub use agent_nodes::{AgentAnswer, AgentNode, AgentReader, AgentRecord, AgentUser};
pub use forecast_checks::ForecastScore;
pub use latest::{Answer, Forecasts, Latest};
pub use progress::{COMMAND_LIMIT, Progress, longest_silence};
pub use server::{END_TIME as EXIT_LIMIT, Listen, ListenError, Stop};
pub use snapshot::{NodeCounts, SiteReader, SlowPart, SlurmSite, Snapshot, waiting_by_reason};
pub use study_files::{StudyError, StudyFiles};

use crate::identity::{TrustedProxy, UserHeader};
use crate::pages::Pages;
use crate::rate_limit::RateLimit;
use crate::routes::Site;
use crate::server::Server;
use crate::visibility::VisibilityPolicy;

/// The shortest time from one forecast of the whole queue to the next.
const FORECAST_INTERVAL: Duration = Duration::from_secs(60);

/// How long the server is not reported as ready while the first question to the site is open. It answers all the same; but a
/// machine without Slurm's commands, which is known at once, is never ready.
const FIRST_QUESTION: Duration = Duration::from_secs(5);

/// The most threads that answer.
const WORKERS: usize = 4;

/// How to serve a site.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where to listen.
    pub listen: Listen,
    /// The header with the user's name, if a proxy sets one.
    pub user_header: Option<UserHeader>,
    /// The time from an answer of the site to the next question.
    pub interval: Duration,
    /// Which visitors see which data.
    pub policy: VisibilityPolicy,
    /// A stored study.
    pub study: Option<StudyFiles>,
    /// The requests of a client per second.
    pub rate: u32,
    /// The seed of the forecasts.
    pub seed: u64,
}

/// The sources of the pages' data.
pub struct Readers {
    /// The site's Slurm.
    pub site: Box<dyn SiteReader>,
    /// An agent, for the page of the nodes.
    pub agent: Option<Box<dyn AgentReader>>,
}

/// Why the site cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Others than this machine could come, and nobody is known.
    #[error(
        "--listen: {0} is open to other machines, and no visitor would be known; expected an address of this machine, such as \
         127.0.0.1:8080, or --user-header and --trusted-proxy beside it"
    )]
    OpenWithoutIdentity(IpAddr),
    /// A proxy that is known by its user, where visitors come by an address.
    #[error(
        "--trusted-proxy: found user:NAME, but the user of a proxy is known only at --socket, and the server listens at {0}: no visitor would \
         be known; expected --socket PATH instead of --listen, or the address of the proxy, such as --trusted-proxy 127.0.0.1"
    )]
    UserWithoutSocket(SocketAddr),
    /// A proxy that is known by its address, where visitors come by a socket, which has none.
    #[error(
        "--trusted-proxy: found the address {0}, but at --socket a proxy is known by its user: its header would not be believed; expected \
         user:NAME with the user as whom the proxy runs, such as user:www-data, or --listen instead of --socket"
    )]
    AddressAtSocket(IpAddr),
    /// The server cannot listen.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Slurm's commands are not here.
    #[error(transparent)]
    NoSlurm(ReadError),
    /// A thread, a runtime or a template.
    #[error("cannot start: {0}")]
    Start(String),
}

impl ServeError {
    /// Returns whether the environment failed, and not the options.
    pub fn is_environment(&self) -> bool {
        use ServeError::*;
        !matches!(self, OpenWithoutIdentity(_) | UserWithoutSocket(_) | AddressAtSocket(_))
    }
}

/// Checks that visitors can be known where the server listens.
///
/// # Errors
/// Returns an error if other machines could come and nobody would be known, or if the trusted proxy could not come at all.
pub fn check_identity(listen: &Listen, header: Option<&UserHeader>) -> Result<(), ServeError> {
    match (listen, header.map(UserHeader::proxy)) {
        (Listen::Tcp(address), None) if !address.ip().is_loopback() => {
            Err(ServeError::OpenWithoutIdentity(address.ip()))
        }
        (Listen::Tcp(address), Some(TrustedProxy::User(_))) => Err(ServeError::UserWithoutSocket(*address)),
        (Listen::Unix(_), Some(TrustedProxy::Address(address))) => Err(ServeError::AddressAtSocket(address)),
        _ => Ok(()),
    }
}

/// Serves a site until it is stopped. `latest` holds the last answer, also for who else watches it. Visitors are answered from
/// the beginning: until Slurm has answered once, that it has not. Calls `ready` with the place after the first attempt to
/// read the site, or after a few seconds if that takes longer, and from then on `works` whenever the readers have made `progress` and
/// the server answers: a reader or a server that hangs is silent.
///
/// # Errors
/// Returns an error if the options would show the site to anyone, or the server cannot listen.
pub fn serve(
    options: Options,
    latest: Arc<Latest>,
    mut readers: Readers,
    clock: fn() -> Time,
    stop: &Stop,
    ready: impl FnOnce(&str),
    (progress, works): (&Progress, &dyn Fn()),
) -> Result<(), ServeError> {
    check_identity(&options.listen, options.user_header.as_ref())?;
    let proxy = options.user_header.as_ref().map(UserHeader::proxy);
    let start = |error: &dyn std::fmt::Display| ServeError::Start(error.to_string());
    let site = Site {
        latest: Arc::clone(&latest),
        clock,
        interval: options.interval,
        user_header: options.user_header,
        policy: options.policy,
        study: options.study,
        limit: RateLimit::new(options.rate),
        pages: Pages::new().map_err(|error| start(&error))?,
    };
    // An answer may plan thousands of jobs; others are answered meanwhile.
    let workers = thread::available_parallelism().map_or(1, usize::from).clamp(1, WORKERS);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    let runtime = runtime.map_err(|e| start(&e))?;
    // First the socket, so that an address in use is reported at once.
    let server = runtime.block_on(Server::bind(&options.listen, routes::router(site), proxy))?;
    let place = server.place();
    let (first, first_read) = oneshot::channel();
    let (reading, stop_reading) = channel();
    let (forecasting, stop_forecasting) = channel();
    let (of_reader, of_forecasts) = (Arc::clone(&latest), latest);
    let (interval, seed) = (options.interval, options.seed);
    let reads = thread::Builder::new().name("reader".into()).spawn(move || {
        // Visitors see a failure, as they would a later one; but a machine without Slurm's commands never has an answer.
        if let Err(error @ ReadError::Command(CommandError::Absent { .. })) =
            of_reader.read(readers.site.as_mut(), clock())
        {
            let _ = first.send(Some(error));
            return;
        }
        of_reader.read_agent(&mut readers, clock());
        let _ = first.send(None);
        of_reader.keep_reading(&mut readers, interval, clock, &stop_reading);
    });
    let reads = reads.map_err(|e| start(&e))?;
    let forecasts = thread::Builder::new().name("forecasts".into()).spawn(move || {
        of_forecasts.keep_forecasting(interval.max(FORECAST_INTERVAL), seed, &stop_forecasting);
    });
    let forecasts = forecasts.map_err(|e| start(&e))?;
    let served = runtime.block_on(async {
        let mut running = std::pin::pin!(server.run(stop));
        let reports = report(first_read, || ready(&place), progress.report(works));
        tokio::select! {
            () = &mut running => Ok(()),
            error = reports => {
                stop.stop();
                running.await;
                Err(ServeError::NoSlurm(error))
            }
        }
    });
    drop((reading, forecasting));
    // The caller that stops the server also ends a command of the reader; a forecast ends after the job that it is at.
    let _ = reads.join();
    drop(forecasts);
    served
}

/// Reports that the server is ready, and then its progress. Returns only if a question shows that Slurm's commands are absent.
async fn report(
    mut first_read: oneshot::Receiver<Option<ReadError>>,
    ready: impl FnOnce(),
    progress: impl Future<Output = ()>,
) -> ReadError {
    let early = timeout(FIRST_QUESTION, &mut first_read).await;
    let is_open = early.is_err();
    if let Ok(Ok(Some(error))) = early {
        return error;
    }
    ready();
    let late = async {
        let read = if is_open { first_read.await.ok().flatten() } else { None };
        match read {
            Some(error) => error,
            None => pending().await,
        }
    };
    tokio::select! {
        error = late => error,
        // Progress is reported as long as there is any.
        () = progress => pending().await,
    }
}
