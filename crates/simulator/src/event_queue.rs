//! A queue of future events.

use evenhand_model::Time;

/// A monotone queue of events: a radix heap on whole nanoseconds.
///
/// No event may be added before the instant last taken, which a simulation never does. In return an event costs a few
/// sequential moves however many are pending (some 40 ns at 150,000, a third of the time of a binary heap:
/// docs/src/explanation/performance.md). Events of one instant come out together, in no specified order: the caller
/// must not depend on it.
///
/// ```
/// use evenhand_simulator::EventQueue;
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
    /// The earliest time in each bucket; the largest time of all where it is empty.
    earliest: Vec<u64>,
    /// Which buckets above 0 hold something: bit k - 1 for bucket k, the bit it is named after.
    filled: u64,
    last: u64,
    len: usize,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<E> EventQueue<E> {
    /// An empty queue.
    pub fn new() -> EventQueue<E> {
        let buckets: Vec<Vec<(u64, E)>> = (0..=u64::BITS).map(|_| Vec::new()).collect();
        let earliest = vec![u64::MAX; buckets.len()];
        EventQueue { buckets, earliest, filled: 0, last: 0, len: 0 }
    }

    /// Returns the number of pending events.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no event is pending.
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
        self.len += 1;
        self.put(time, event);
    }

    #[inline]
    fn put(&mut self, time: u64, event: E) {
        let differs = time ^ self.last;
        let highest = differs.leading_zeros();
        let bucket = (u64::BITS - highest) as usize;
        // Nothing where no bit differs, without a branch.
        self.filled |= ((1 << 63) >> (highest % u64::BITS)) & differs;
        self.earliest[bucket] = self.earliest[bucket].min(time);
        self.buckets[bucket].push((time, event));
    }

    /// The lowest bucket that holds something, if one does.
    #[inline]
    fn lowest(&self) -> usize {
        if self.buckets[0].is_empty() { self.filled.trailing_zeros() as usize + 1 } else { 0 }
    }

    /// Returns the time of the earliest event; the queue stays as it is.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        (self.len > 0).then(|| Time::from_nanos(self.earliest[self.lowest()]))
    }

    /// Takes every event of the earliest instant; does nothing if the queue is empty.
    pub fn take_next(&mut self, mut each: impl FnMut(E)) {
        let Some(now) = self.next_time() else { return };
        let from = self.lowest();
        self.last = now.nanos();
        if from > 0 {
            self.filled &= self.filled - 1;
            self.earliest[from] = u64::MAX;
            // All of them move to lower buckets; the bucket keeps its allocation.
            let mut spread = std::mem::take(&mut self.buckets[from]);
            for (time, event) in spread.drain(..) {
                self.put(time, event);
            }
            self.buckets[from] = spread;
        }
        self.earliest[0] = u64::MAX;
        self.len -= self.buckets[0].len();
        self.buckets[0].drain(..).for_each(|(_, event)| each(event));
    }
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
