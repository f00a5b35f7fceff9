//! The events to come.

use evenhand_model::Time;

/// A monotone queue of events: a radix heap on whole nanoseconds.
///
/// Nothing may be added before the instant last taken, which is what a simulation never does
/// anyway. In return an event costs a few sequential moves however many are pending (some 40 ns at
/// a million, five times less than a binary heap). Events of one instant come out together, in no
/// promised order: what follows an instant must not depend on it.
///
/// ```
/// use evenhand_cluster::EventQueue;
/// use evenhand_model::Time;
/// let mut q = EventQueue::new();
/// q.push(Time::from_secs(2), "b");
/// q.push(Time::from_secs(1), "a");
/// assert_eq!(q.next_time(), Some(Time::from_secs(1)));
/// let mut taken = Vec::new();
/// q.take_next(|event| taken.push(event));
/// assert_eq!((taken, q.len()), (vec!["a"], 1));
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// Bucket 0 holds the instant `last`; bucket k the times whose highest bit that differs from
    /// `last` is bit k - 1. So every time in a lower bucket is earlier than any in a higher one.
    buckets: Vec<Vec<(u64, E)>>,
    last: u64,
    /// The earliest time, if it is known.
    next: Option<u64>,
    len: usize,
    /// Reused while a bucket is spread over the lower ones.
    spread: Vec<(u64, E)>,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<E> EventQueue<E> {
    /// An empty queue.
    pub fn new() -> EventQueue<E> {
        let buckets = (0..=u64::BITS).map(|_| Vec::new()).collect();
        EventQueue { buckets, last: 0, next: None, len: 0, spread: Vec::new() }
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event.
    ///
    /// # Panics
    /// In debug builds, if `time` is before the instant last taken.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        let time = time.nanos();
        debug_assert!(time >= self.last, "events are added in the present or the future");
        if self.len == 0 || self.next.is_some_and(|next| time < next) {
            self.next = Some(time);
        }
        self.len += 1;
        self.buckets[bucket(time, self.last)].push((time, event));
    }

    /// When the earliest event happens. Looking does not move the queue on.
    #[inline]
    pub fn next_time(&mut self) -> Option<Time> {
        if self.len == 0 {
            return None;
        }
        if self.next.is_none() {
            let first = self.buckets.iter().find(|b| !b.is_empty());
            self.next = first.and_then(|b| b.iter().map(|(time, _)| *time).min());
        }
        self.next.map(Time::from_nanos)
    }

    /// Takes every event of the earliest instant; nothing happens if there is none.
    pub fn take_next(&mut self, mut each: impl FnMut(E)) {
        let Some(now) = self.next_time() else { return };
        let now = now.nanos();
        let from = bucket(now, self.last);
        self.last = now;
        self.next = None;
        if from > 0 {
            let mut spread = std::mem::replace(&mut self.buckets[from], std::mem::take(&mut self.spread));
            for (time, event) in spread.drain(..) {
                self.buckets[bucket(time, now)].push((time, event));
            }
            self.spread = spread;
        }
        self.len -= self.buckets[0].len();
        self.buckets[0].drain(..).for_each(|(_, event)| each(event));
    }
}

#[inline]
fn bucket(time: u64, last: u64) -> usize {
    (u64::BITS - (time ^ last).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against an ordered map of lists.
        #[test]
        fn events_come_out_as_from_an_ordered_map(ops in prop::collection::vec((any::<bool>(), 0u32..40, any::<u16>()), 0..300)) {
            let mut queue = EventQueue::new();
            let mut map: BTreeMap<u64, Vec<u16>> = BTreeMap::new();
            let mut now = 0u64;
            for (push, shift, value) in ops {
                if push {
                    // Gaps of every size, with many equal times.
                    let time = now + ((u64::from(value) % 4) << shift);
                    queue.push(Time::from_nanos(time), value);
                    map.entry(time).or_default().push(value);
                } else {
                    let mut taken = Vec::new();
                    queue.take_next(|v| taken.push(v));
                    let mut expected = match map.pop_first() {
                        Some((time, values)) => {
                            now = time;
                            values
                        }
                        None => Vec::new(),
                    };
                    taken.sort_unstable();
                    expected.sort_unstable();
                    prop_assert_eq!(taken, expected);
                }
                prop_assert_eq!(queue.next_time().map(Time::nanos), map.keys().next().copied());
                prop_assert_eq!(queue.len(), map.values().map(Vec::len).sum::<usize>());
            }
        }
    }
}
