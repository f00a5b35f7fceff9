//! The events of a history in order of time.

use crate::History;

/// An event of a row of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The row's tasks finish.
    Finish(u32),
    /// The row's tasks start.
    Start(u32),
    /// The row's tasks are submitted.
    Submit(u32),
}

/// An iterator over the events of a history. At one instant all finishes come first, then all starts, then all
/// submissions.
#[derive(Debug)]
pub(crate) struct Events<'a> {
    history: &'a History<'a>,
    started: usize,
    finished: usize,
    submitted: usize,
}

impl<'a> Events<'a> {
    /// Starts before the first event.
    pub(crate) fn new(history: &'a History<'a>) -> Events<'a> {
        Events { history, started: 0, finished: 0, submitted: 0 }
    }

    /// Returns the time of the next event in nanoseconds.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let finish = self.finish().map(|row| self.history.finish(row));
        let start = self.start().map(|row| self.history.start(row));
        [start, finish, self.submission()].into_iter().flatten().min()
    }

    /// Returns the next event at `now`, or `None` if there is no further one. No event may be earlier than `now`.
    pub(crate) fn next_at(&mut self, now: u64) -> Option<Event> {
        if let Some(row) = self.finish().filter(|&row| self.history.finish(row) == now) {
            self.finished += 1;
            return Some(Event::Finish(row));
        }
        if let Some(row) = self.start().filter(|&row| self.history.start(row) == now) {
            self.started += 1;
            return Some(Event::Start(row));
        }
        if self.submission() == Some(now) {
            self.submitted += 1;
            return Some(Event::Submit(self.submitted as u32 - 1));
        }
        None
    }

    fn finish(&self) -> Option<u32> {
        self.history.by_finish().get(self.finished).copied()
    }

    fn start(&self) -> Option<u32> {
        self.history.by_start().get(self.started).copied()
    }

    fn submission(&self) -> Option<u64> {
        self.history.workload().columns().submit.get(self.submitted).map(|t| t.nanos())
    }
}
