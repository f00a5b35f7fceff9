//! Which of the runs of a command calls Python: the interpreter runs one thread at a time, and is slow to change threads.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::lock;

/// A run keeps its turn until its next call, if the last two were not further apart: simulating one decision takes some
/// microseconds, and passing the interpreter on to another thread takes longer.
const KEPT: Duration = Duration::from_micros(100);

/// A run calls without a turn after that, so that none waits for one that no longer calls.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

/// The runs of a command that call Python.
///
/// With turns a study on several threads takes about as long as on one; without them each decision of two runs changes threads,
/// and the study takes twice the time. Results do not depend on turns: the interpreter has a lock of its own.
#[derive(Default)]
pub(crate) struct Turns {
    is_taken: Mutex<bool>,
    released: Condvar,
}

/// A run's place among the others.
pub(super) struct Turn {
    turns: Arc<Turns>,
    has_turn: bool,
    /// When the last call ended.
    called: Option<Instant>,
}

impl Turn {
    pub(super) fn new(turns: Arc<Turns>) -> Turn {
        Turn { turns, has_turn: false, called: None }
    }

    /// Calls Python, while the other runs do not.
    pub(super) fn call<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let is_soon = self.called.is_some_and(|called| called.elapsed() < KEPT);
        self.take();
        let result = call();
        if !is_soon {
            self.release();
        }
        self.called = Some(Instant::now());
        result
    }

    fn take(&mut self) {
        if self.has_turn {
            return;
        }
        let turns = &self.turns;
        let waited = turns.released.wait_timeout_while(lock(&turns.is_taken), LONGEST_WAIT, |is_taken| *is_taken);
        let (mut is_taken, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.has_turn = !*is_taken;
        *is_taken = true;
    }

    fn release(&mut self) {
        if std::mem::take(&mut self.has_turn) {
            *lock(&self.turns.is_taken) = false;
            self.turns.released.notify_one();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.release();
    }
}
