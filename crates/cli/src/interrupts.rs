//! Ctrl-C and the signals that end a service: the one place where the program handles SIGINT, SIGTERM and SIGHUP.
//!
//! A verb that calls [`on_interrupt`] ends in an orderly way: it keeps what is finished, or restores what it changed. All
//! others end at once, as the system does by default.

use evenhand_child_process::StopFlag;

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
