//! The classes of a group that have machines, in buckets by the key of their placement rule.

use std::ops::RangeInclusive;

use super::occupied_classes::OccupiedClasses;

/// Buckets are as many as bits.
const MOST_BUCKETS: u64 = u64::BITS as u64;

/// Where a class stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    bucket: u8,
    at: u32,
}

/// Classes by a key of which machines with near keys have near scores.
///
/// A search for the least score looks at the buckets [nearest to a key](ClassBuckets::nearest) first and stops where no
/// bucket further away can have less. Within a bucket classes are in no order: a class comes and goes in a few steps,
/// which happens more often than a search. There are at most 64 buckets, of equally wide ranges of keys.
#[derive(Clone, Debug)]
pub(crate) struct ClassBuckets {
    /// The least key.
    least: u64,
    /// A bucket has 2^shift keys.
    shift: u32,
    buckets: Vec<OccupiedClasses>,
    /// A bit for each bucket that has classes.
    occupied: u64,
    classes: usize,
}

impl ClassBuckets {
    /// For keys in a range, so many machines and so many resources. Of a single bucket the most that is free is not kept.
    pub(crate) fn new(keys: RangeInclusive<u64>, machines: u32, width: usize) -> ClassBuckets {
        let (least, range) = (*keys.start(), keys.end() - keys.start());
        // Of few machines there are few classes.
        let most = MOST_BUCKETS.min(4 * u64::from(machines.max(1)));
        let shift = (0..u64::BITS).find(|shift| range >> shift < most).unwrap_or(u64::BITS - 1);
        let buckets = (range >> shift) as usize + 1;
        let buckets = vec![OccupiedClasses::new(if buckets > 1 { width } else { 0 }); buckets];
        ClassBuckets { least, shift, buckets, occupied: 0, classes: 0 }
    }

    /// The bucket of a key, for keys out of the range the first or the last.
    fn bucket_of(&self, key: u64) -> usize {
        ((key.saturating_sub(self.least) >> self.shift) as usize).min(self.buckets.len() - 1)
    }

    /// The number of classes.
    pub(crate) fn len(&self) -> usize {
        self.classes
    }

    /// Adds a class without machines.
    pub(crate) fn push(&mut self, key: u64, class: u32, score: u64, free: &[u64], shape: &[u64]) -> Place {
        let bucket = self.bucket_of(key);
        self.occupied |= 1 << bucket;
        self.classes += 1;
        Place { bucket: bucket as u8, at: self.buckets[bucket].push(class, score, free, shape) }
    }

    /// Removes a class. Returns the class that is now at its place, if any.
    pub(crate) fn swap_remove(&mut self, place: Place, width: usize) -> Option<u32> {
        let bucket = &mut self.buckets[usize::from(place.bucket)];
        let moved = bucket.swap_remove(place.at, width);
        self.classes -= 1;
        if bucket.len() == 0 {
            self.occupied &= !(1 << place.bucket);
        }
        moved
    }

    /// The number of machines of a class.
    pub(crate) fn machines_at(&mut self, place: Place) -> &mut u32 {
        &mut self.buckets[usize::from(place.bucket)].machines[place.at as usize]
    }

    /// Gives each class the number that `number` has for it.
    pub(crate) fn renumber(&mut self, number: &[u32]) {
        let classes = self.buckets.iter_mut().flat_map(|bucket| &mut bucket.classes);
        classes.for_each(|class| *class = number[*class as usize]);
    }

    /// The buckets that may have classes with keys in a range, those nearest to a key first, each with a distance below
    /// which no key in it is.
    pub(crate) fn nearest(&self, key: u64, keys: RangeInclusive<u64>) -> impl Iterator<Item = (u64, &OccupiedClasses)> {
        let (first, last, middle) = (self.bucket_of(*keys.start()), self.bucket_of(*keys.end()), self.bucket_of(key));
        let among = self.occupied & (u64::MAX << first) & (u64::MAX >> (u64::BITS - 1 - last as u32));
        let mut up = among & (u64::MAX << middle);
        let mut down = among & !up;
        let start = move |bucket: u32| self.least + (u64::from(bucket) << self.shift);
        let width = (1 << self.shift) - 1;
        std::iter::from_fn(move || {
            let (above, below) = (up.trailing_zeros(), u64::BITS - down.leading_zeros());
            let of_above = (up != 0).then(|| start(above).saturating_sub(key));
            let of_below = (down != 0).then(|| key.saturating_sub(start(below - 1) + width));
            let (distance, bucket) = match (of_above, of_below) {
                (Some(a), b) if b.is_none_or(|b| a <= b) => {
                    up &= up - 1;
                    (a, above)
                }
                (_, Some(b)) => {
                    down &= !(1 << (below - 1));
                    (b, below - 1)
                }
                (_, None) => return None,
            };
            Some((distance, &self.buckets[bucket as usize]))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a list of classes with their keys.
        #[test]
        fn nearer_buckets_come_first_and_none_is_left_out(
            (least, width) in prop::sample::select(vec![(0u64, 0u64), (0, 63), (5, 64), (7, 1000), (u64::MAX - 999, 999), (0, u64::MAX)]),
            machines in prop::sample::select(vec![1u32, 3, 16, 1000]),
            ops in prop::collection::vec((any::<u64>(), any::<bool>(), any::<usize>()), 1..200),
            asks in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 1..20),
        ) {
            let key_of = |number: u64| least + if width == u64::MAX { number } else { number % (width + 1) };
            let mut buckets = ClassBuckets::new(least..=least + width, machines, 1);
            let mut plain: Vec<(u32, u64, Place)> = Vec::new();
            for (class, (number, add, which)) in (0..).zip(ops) {
                if add || plain.is_empty() {
                    let key = key_of(number);
                    let place = buckets.push(key, class, key, &[key], &[]);
                    *buckets.machines_at(place) += class;
                    plain.push((class, key, place));
                } else {
                    let (_, _, place) = plain.swap_remove(which % plain.len());
                    let moved = buckets.swap_remove(place, 1);
                    plain.iter_mut().filter(|other| Some(other.0) == moved).for_each(|other| other.2 = place);
                }
            }
            prop_assert_eq!(buckets.len(), plain.len());
            prop_assert!(plain.iter().all(|(class, _, place)| *buckets.machines_at(*place) == *class));
            for (a, b, key) in asks {
                let (a, b, key) = (key_of(a), key_of(b), if key % 3 == 0 { key } else { key_of(key) });
                let keys = a.min(b)..=a.max(b);
                let (mut last, mut found) = (0, Vec::new());
                for (distance, bucket) in buckets.nearest(key, keys.clone()) {
                    prop_assert!(distance >= last && bucket.len() > 0);
                    last = distance;
                    prop_assert!(bucket.scores.iter().all(|other| other.abs_diff(key) >= distance));
                    prop_assert!(bucket.free == bucket.scores);
                    let most = bucket.free.iter().max().copied().unwrap_or(0);
                    prop_assert!(bucket.may_hold(&[most]) && (width == 0 || !bucket.may_hold(&[most.saturating_add(1)]) || most == u64::MAX));
                    found.extend(bucket.classes.iter().copied().zip(bucket.scores.iter().copied()));
                }
                let in_range = |keys: &mut dyn Iterator<Item = (u32, u64)>| {
                    let mut all: Vec<(u32, u64)> = keys.filter(|(_, key)| (a.min(b)..=a.max(b)).contains(key)).collect();
                    all.sort_unstable();
                    all
                };
                let expected = in_range(&mut plain.iter().map(|(class, key, _)| (*class, *key)));
                prop_assert_eq!(in_range(&mut found.into_iter()), expected);
            }
        }
    }
}
