//! The thread in which the exchange runs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::exchange::ring::{Input, Ring, RingSettings};
use crate::exchange::{Board, Record, Totals};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::transport::config::{Config, Mode, Peers, PeersError, Traffic};
use crate::transport::link::{Counters, Link};
use crate::transport::{gossip, ring};

/// What the caller and the thread share. Either locks it for as long as it takes to work something out, and never
/// while it waits.
pub(crate) struct Shared<T> {
    begun: Instant,
    state: Mutex<T>,
}

impl<T> Shared<T> {
    fn new(state: T) -> Arc<Shared<T>> {
        Arc::new(Shared { begun: Instant::now(), state: Mutex::new(state) })
    }

    /// The time since the start; [`Instant`] does not follow the steps of the wall clock.
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

/// What gossip knows.
pub(crate) struct Gossiped {
    pub(crate) board: Board,
    /// The own record, as bytes, until the thread has taken it.
    pub(crate) own: Option<(Record, Vec<u8>)>,
}

enum State {
    Gossip(Arc<Shared<Gossiped>>),
    Ring(Arc<Shared<Ring>>),
}

struct Running {
    state: State,
    address: SocketAddr,
    counters: Arc<Counters>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Starts the exchange, in a thread of its own that ends when the answer is dropped.
///
/// # Errors
/// If the configuration cannot be, or the socket not be had.
pub fn start(config: Config) -> Result<Box<dyn Peers>, PeersError> {
    config.check()?;
    let failed = |source| PeersError::Listen { address: config.listen, source };
    let listener = std::net::TcpListener::bind(config.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    // With port 0 the system has chosen one.
    let advertised = match config.advertise {
        Some(advertise) if advertise.port() == 0 => SocketAddr::new(advertise.ip(), address.port()),
        Some(advertise) => advertise,
        None => address,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(PeersError::Start)?;
    let counters = Arc::new(Counters::default());
    let (stop, stopped) = oneshot::channel();
    let state = match config.mode {
        Mode::Gossip => {
            let board = Board::new(config.ageing(), config.limits.clone(), &config.node);
            State::Gossip(Shared::new(Gossiped { board, own: None }))
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
    let counted = Arc::clone(&counters);
    let body = move || {
        runtime.block_on(async move {
            let Ok(listener) = TcpListener::from_std(listener) else { return };
            let filter = config.filter.clone();
            let (link, received) = Link::open(&config.node, advertised, config.key, filter, counted, listener);
            let work = async {
                match shared {
                    State::Gossip(shared) => gossip::run(&config, advertised, link, received, &shared).await,
                    State::Ring(shared) => ring::run(link, received, &shared).await,
                }
            };
            // Whichever way it ends, its sockets go with the runtime.
            tokio::select! {
                () = work => {}
                _ = stopped => {}
            }
        });
    };
    let thread = std::thread::Builder::new().name("exchange".to_owned()).spawn(body).map_err(PeersError::Start)?;
    Ok(Box::new(Running { state, address, counters, stop: Some(stop), thread: Some(thread) }))
}

impl Peers for Running {
    fn round(&mut self, own: Record) -> Totals {
        match &self.state {
            State::Gossip(shared) => {
                let bytes = own.encode();
                let now = shared.now();
                let mut gossiped = shared.lock();
                gossiped.board.publish(now, own.clone());
                gossiped.own = Some((own, bytes));
                gossiped.board.totals(now)
            }
            State::Ring(shared) => {
                let now = shared.now();
                let mut ring = shared.lock();
                ring.step(now, Input::Own(own));
                ring.totals(now)
            }
        }
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        Some(self.address)
    }

    fn traffic(&self) -> Traffic {
        self.counters.traffic()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
