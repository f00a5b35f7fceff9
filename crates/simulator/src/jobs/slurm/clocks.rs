//! The clocks of the activities that start jobs: when something can happen next.

use evenhand_model::Time;
use evenhand_policies::Policy;

use super::engine::{Engine, SECOND};

/// When which activity ran last, and whether it has something to do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    pub(super) now: u64,
    /// The last pass over the whole queue.
    pub(super) last_full: u64,
    /// The last periodic pass of either kind.
    pub(super) last_main: u64,
    /// Since when a pass is asked for.
    pub(super) asked: Option<u64>,
    /// Whether something has changed since the last pass over the whole queue.
    pub(super) full_is_due: bool,
    pub(super) last_backfill: u64,
    /// Since when something has changed that backfill has not seen.
    pub(super) changed: Option<u64>,
    pub(super) last_priorities: u64,
    /// When jobs last took turns.
    pub(super) last_turn: u64,
}

pub(super) fn next_second(time: u64) -> u64 {
    time.div_ceil(SECOND) * SECOND
}

/// The first whole second after an instant.
pub(super) fn second_after(time: u64) -> u64 {
    next_second(time.saturating_add(1))
}

/// The last multiple of `interval` before an instant.
pub(super) fn tick_before(time: u64, interval: u64) -> u64 {
    time.saturating_sub(1) / interval * interval
}

impl Engine<'_> {
    /// The next instant at which something can happen. Steps that can do nothing are left out.
    pub(super) fn next_time(&self) -> Option<u64> {
        let waits = self.pending.is_any();
        let of_queue = if waits { [self.next_pass(), self.next_backfill(), self.next_priorities()] } else { [None; 3] };
        let certain = [self.events.next_time(), self.pending.next_submission()].map(|t| t.map(Time::nanos));
        certain.into_iter().chain(of_queue).chain([self.closed.next_change(), self.next_turn()]).flatten().min()
    }

    /// The next tick of a clock after its last one, not before now.
    pub(super) fn next_tick(&self, last: u64, interval: u64) -> u64 {
        (last + interval).max(self.clocks.now.div_ceil(interval) * interval)
    }

    pub(super) fn next_pass(&self) -> Option<u64> {
        let c = &self.clocks;
        let quick = c.asked.map(|asked| {
            second_after(asked).max(next_second(c.last_main.saturating_add(self.options.batch_sched_delay.nanos())))
        });
        let full = self.options.sched_interval.map(|i| self.next_tick(c.last_full, i.nanos().max(1)));
        [quick, full.filter(|_| self.full_is_due())].into_iter().flatten().min()
    }

    /// Whether a pass over the whole queue may find something to do. With time jobs can be preempted that could not before,
    /// and jobs come to meet a reservation, so that they no longer close their partition.
    pub(super) fn full_is_due(&self) -> bool {
        self.clocks.full_is_due || self.preemption.is_on() || self.closed.is_before_a_reservation(self.clocks.now)
    }

    pub(super) fn backfill_due(&self) -> Option<u64> {
        let c = &self.clocks;
        let changed = c.changed.filter(|_| self.options.backfill)?;
        let after = c.last_backfill.saturating_add(self.options.bf_interval.nanos());
        Some(second_after(changed).max(next_second(after)).max(next_second(self.completing_until)))
    }

    pub(super) fn next_backfill(&self) -> Option<u64> {
        self.backfill_due().map(|due| due.max(next_second(self.clocks.now)))
    }

    /// When jobs next take turns, if any waits for its own.
    fn next_turn(&self) -> Option<u64> {
        let slice = self.options.scheduler_time_slice.nanos().max(1);
        (!self.suspended.is_empty()).then_some((self.clocks.now / slice + 1).saturating_mul(slice))
    }

    pub(super) fn turns_end(&self, now: u64) -> bool {
        let slice = self.options.scheduler_time_slice.nanos().max(1);
        !self.suspended.is_empty() && now > self.clocks.last_turn && now.is_multiple_of(slice)
    }

    pub(super) fn next_priorities(&self) -> Option<u64> {
        Some(self.next_tick(self.clocks.last_priorities, self.options.priority_calc_period.nanos().max(1)))
    }

    /// Moves the clocks over the steps before `now` that had nothing to do.
    pub(super) fn catch_up(&mut self, now: u64, policy: &mut dyn Policy) {
        let period = self.options.priority_calc_period.nanos().max(1);
        let tick = tick_before(now, period);
        if tick > self.clocks.last_priorities {
            self.update_priorities(tick, policy);
        }
        if let Some(interval) = self.options.sched_interval {
            let tick = tick_before(now, interval.nanos().max(1));
            if tick > self.clocks.last_full {
                self.clocks.last_full = tick;
                // With nobody waiting it had nothing to do but to note that it ran.
                if self.clocks.asked.is_some_and(|asked| asked <= tick) {
                    self.clocks.asked = None;
                }
                self.clocks.last_main = self.clocks.last_main.max(tick);
            }
        }
        if let Some(pass) = self.next_pass().filter(|pass| *pass < now)
            && self.clocks.asked.is_some()
        {
            self.clocks.asked = None;
            self.clocks.last_main = self.clocks.last_main.max(pass);
        }
        if let Some(due) = self.backfill_due().filter(|due| *due < now && !self.pending.is_any()) {
            self.clocks.last_backfill = due;
            self.clocks.changed = None;
        }
        self.clocks.now = now;
    }

    pub(super) fn priorities_are_due(&self, now: u64) -> bool {
        now > self.clocks.last_priorities && now.is_multiple_of(self.options.priority_calc_period.nanos().max(1))
    }

    pub(super) fn note_change(&mut self, now: Time) {
        self.clocks.full_is_due = true;
        self.clocks.changed = self.clocks.changed.or(Some(now.nanos()));
    }
}
