//! What happens in a past, one after another.

use crate::Past;

/// Something that happens to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its tasks finish.
    Finish(u32),
    /// They start.
    Start(u32),
    /// They are submitted.
    Submit(u32),
}

/// A walk through a past. At one instant every finish comes first, then every start, then every submission.
#[derive(Debug)]
pub(crate) struct Events<'a> {
    past: &'a Past<'a>,
    started: usize,
    finished: usize,
    submitted: usize,
}

impl<'a> Events<'a> {
    /// Before the first event.
    pub(crate) fn new(past: &'a Past<'a>) -> Events<'a> {
        Events { past, started: 0, finished: 0, submitted: 0 }
    }

    /// When the next event is.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let finish = self.finish().map(|row| self.past.finish(row));
        let start = self.start().map(|row| self.past.start(row));
        [start, finish, self.submission()].into_iter().flatten().min()
    }

    /// The next event of the instant `now`, which no event is before; `None` if that was all of it.
    pub(crate) fn take(&mut self, now: u64) -> Option<Event> {
        if let Some(row) = self.finish().filter(|&row| self.past.finish(row) == now) {
            self.finished += 1;
            return Some(Event::Finish(row));
        }
        if let Some(row) = self.start().filter(|&row| self.past.start(row) == now) {
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
        self.past.by_finish().get(self.finished).copied()
    }

    fn start(&self) -> Option<u32> {
        self.past.by_start().get(self.started).copied()
    }

    fn submission(&self) -> Option<u64> {
        self.past.workload().columns().submit.get(self.submitted).map(|t| t.nanos())
    }
}
