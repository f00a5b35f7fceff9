//! Ctrl-C and the signals that end a service: the one place where the program handles SIGINT, SIGTERM and SIGHUP.
//!
//! A verb that calls [`on_interrupt`] ends in an orderly way: it keeps what is finished, or restores what it changed. All
//! others end at once, as the system does by default. A service also calls [`ignore_signals_without_meaning`].

#[cfg(any(feature = "agent", feature = "slurm"))]
use std::sync::Arc;
#[cfg(any(feature = "agent", feature = "slurm"))]
use std::sync::atomic::AtomicBool;

use evenhand_child_process::StopFlag;
#[cfg(any(feature = "agent", feature = "slurm"))]
use signal_hook::consts::{SIGUSR1, SIGUSR2, SIGXFSZ};

use crate::failure::Failure;

/// What a second signal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondSignal {
    /// It ends the program at once, with status 3: nothing is lost but time.
    Exits,
    /// It does nothing: the program restores what it changed, which has a deadline of its own.
    #[cfg(any(feature = "agent", feature = "slurm"))]
    IsIgnored,
}

/// Calls `stop` at the first signal, on a thread of its own. Returns a flag that is set just before.
///
/// # Errors
/// Returns an error if signals cannot be handled, or are handled already: a process runs one verb.
pub(crate) fn on_interrupt(second: SecondSignal, stop: impl FnOnce() + Send + 'static) -> Result<StopFlag, Failure> {
    let flag = StopFlag::default();
    let (set, mut stop) = (flag.clone(), Some(stop));
    ctrlc::set_handler(move || match stop.take() {
        Some(stop) => {
            set.set();
            stop();
        }
        None if second == SecondSignal::Exits => std::process::exit(3),
        None => {}
    })
    .map_err(|error| Failure::Environment(format!("cannot listen for Ctrl-C and SIGTERM: {error}")))?;
    Ok(flag)
}

/// Ignores the signals that would end a service by default, with what it changed as it is, and that it gives no meaning: a log
/// rotation may send SIGUSR1 or SIGUSR2 to the wrong process, and a write beyond the limit of a file's size raises SIGXFSZ. That write
/// then fails, as on a full disk.
///
/// # Errors
/// Returns an error if signals cannot be handled.
#[cfg(any(feature = "agent", feature = "slurm"))]
pub(crate) fn ignore_signals_without_meaning() -> Result<(), Failure> {
    for signal in [SIGUSR1, SIGUSR2, SIGXFSZ] {
        // A handler without effect: the commands that a service runs would inherit that a signal is ignored, and not a handler.
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))
            .map_err(|error| Failure::Environment(format!("cannot listen for signal {signal}: {error}")))?;
    }
    Ok(())
}
