//! The thread that runs an exchange.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::exchange::ring::{Input, Ring, RingSettings};
use crate::exchange::{Record, RecordStore, Totals};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};

use crate::transport::config::{Config, Mode, Peers, Traffic, TransportError};
use crate::transport::credentials::CurrentCredentials;
use crate::transport::sealed_connections::{Counters, SealedConnections};
use crate::transport::shared_names::{NameWatch, SharedName};
use crate::transport::{gossip_driver, ring_driver};

/// State shared by the caller and the thread. Both lock it only for computations, never while they wait.
pub(crate) struct Shared<T> {
    begun: Instant,
    state: Mutex<T>,
}

impl<T> Shared<T> {
    fn new(state: T) -> Arc<Shared<T>> {
        Arc::new(Shared { begun: Instant::now(), state: Mutex::new(state) })
    }

    /// Returns the time since the start, by a monotonic clock.
    pub(crate) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of gossip.
pub(crate) struct GossipState {
    pub(crate) store: RecordStore,
    /// This node's new record and its encoding, until the thread takes it.
    pub(crate) outgoing: Option<(Record, Vec<u8>)>,
}

enum State {
    Gossip(Arc<Shared<GossipState>>),
    Ring(Arc<Shared<Ring>>),
}

struct ExchangeThread {
    state: State,
    address: SocketAddr,
    counters: Arc<Counters>,
    names: Arc<NameWatch>,
    problem: Arc<Mutex<Option<String>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Starts an exchange in its own thread, which ends when the returned value is dropped.
///
/// # Errors
/// Returns an error if the configuration is invalid, the credentials cannot be used, or the node cannot listen on its
/// address.
pub fn start(config: Config) -> Result<Box<dyn Peers>, TransportError> {
    config.check()?;
    let (current, credentials) = watch::channel(Arc::new(config.credentials.load(&config.node)?));
    let problem = Arc::default();
    let followed = CurrentCredentials { current, problem: Arc::clone(&problem) };
    let failed = |source| TransportError::Listen { address: config.listen, source };
    let listener = std::net::TcpListener::bind(config.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // For port 0 the system chooses the port.
    let advertised = match config.advertise {
        Some(advertise) if advertise.port() == 0 => SocketAddr::new(advertise.ip(), address.port()),
        Some(advertise) => advertise,
        None => address,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(TransportError::Start)?;
    let counters = Arc::new(Counters::default());
    let names = Arc::new(NameWatch::new(config.interval));
    let (stop, stopped) = oneshot::channel();
    let state = match config.mode {
        Mode::Gossip => {
            let store = RecordStore::new(config.ageing(), config.limits.clone(), &config.node);
            State::Gossip(Shared::new(GossipState { store, outgoing: None }))
        }
        Mode::Ring => {
            let seeds = config.seeds.iter().map(SocketAddr::to_string).collect();
            let settings = RingSettings::new(config.ageing(), config.limits.clone(), seeds);
            let ring = Ring::new(settings, &config.node, config.incarnation, &advertised.to_string());
            State::Ring(Shared::new(ring))
        }
    };
    let shared = match &state {
        State::Gossip(shared) => State::Gossip(Arc::clone(shared)),
        State::Ring(shared) => State::Ring(Arc::clone(shared)),
    };
    let noted = (Arc::clone(&counters), Arc::clone(&names));
    let body = move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let filter = config.filter.clone();
            let (link, received) =
                SealedConnections::open(&config.node, advertised, credentials, filter, noted, listener);
            let work = async {
                match shared {
                    State::Gossip(shared) => gossip_driver::run(&config, advertised, link, received, &shared).await,
                    State::Ring(shared) => ring_driver::run(link, received, &shared).await,
                }
            };
            // In both cases the runtime closes the sockets.
            tokio::select! {
                () = work => {}
                () = followed.follow(&config.credentials, &config.node) => {}
                _ = stopped => {}
            }
        });
    };
    let thread = std::thread::Builder::new().name("exchange".to_owned()).spawn(body).map_err(TransportError::Start)?;
    Ok(Box::new(ExchangeThread { state, address, counters, names, problem, stop: Some(stop), thread: Some(thread) }))
}

impl Peers for ExchangeThread {
    fn exchange(&mut self, record: Record) -> Totals {
        match &self.state {
            State::Gossip(shared) => {
                let bytes = record.encode();
                let now = shared.now();
                let mut gossip = shared.lock();
                gossip.store.publish(now, record.clone());
                gossip.outgoing = Some((record, bytes));
                gossip.store.totals(now)
            }
            State::Ring(shared) => {
                let now = shared.now();
                let mut ring = shared.lock();
                ring.step(now, Input::LocalRecord(record));
                ring.totals(now)
            }
        }
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        Some(self.address)
    }

    fn shared_names(&self) -> Vec<SharedName> {
        self.names.shared(Instant::now())
    }

    fn traffic(&self) -> Traffic {
        self.counters.traffic()
    }

    fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ExchangeThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
