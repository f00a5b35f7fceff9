//! Progress of a server, for a watchdog.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

/// The time limit of a command: visitors should not see the same answer for minutes because one question hangs.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Returns the longest time from one report of a server that works to the next, with this interval from an answer of the
/// site to the next question: the interval and a command, and as much again for what is computed between.
pub fn longest_silence(interval: Duration) -> Duration {
    2 * (interval + COMMAND_LIMIT)
}

/// Progress of the readers of a site: a command has ended. Clones are of the same progress.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Notify>);

impl Progress {
    /// Reports progress; may be used on any thread.
    pub fn made(&self) {
        self.0.notify_one();
    }

    /// Calls `works` after each progress that one of the workers, which answer requests, could confirm.
    pub(crate) async fn report(&self, works: &dyn Fn()) {
        loop {
            self.0.notified().await;
            if tokio::spawn(async {}).await.is_ok() {
                works();
            }
        }
    }
}
