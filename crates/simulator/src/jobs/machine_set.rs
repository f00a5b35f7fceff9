//! A set of machine numbers that answers for the next number from some number on.

/// How many numbers a set keeps as a list before it becomes a bit map.
const LIST_AT_MOST: usize = 32;

/// Numbers below a bound, in ascending order.
///
/// Up to [`LIST_AT_MOST`] numbers are a sorted list; more are a bit map with a summary of which of its words are not
/// empty. Adding, removing and the next number cost a few steps in the list, and in the bit map as many as its
/// summary has words: one for each 4,096 numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineSet {
    list: Vec<u32>,
    /// Empty while the set is a list.
    words: Vec<u64>,
    /// A bit for each word that is not zero.
    summary: Vec<u64>,
}

impl MachineSet {
    /// Adds a number that is not in the set; `bound` is above every number that will ever be added.
    pub(crate) fn insert(&mut self, number: u32, bound: u32) {
        if self.words.is_empty() {
            let at = self.list.partition_point(|n| *n < number);
            self.list.insert(at, number);
            if self.list.len() <= LIST_AT_MOST {
                return;
            }
            let words = (bound as usize).div_ceil(64);
            self.words = vec![0; words];
            self.summary = vec![0; words.div_ceil(64)];
            for number in std::mem::take(&mut self.list) {
                self.set(number);
            }
        } else {
            self.set(number);
        }
    }

    fn set(&mut self, number: u32) {
        let word = number as usize / 64;
        self.words[word] |= 1 << (number % 64);
        self.summary[word / 64] |= 1 << (word % 64);
    }

    /// Removes a number that is in the set.
    pub(crate) fn remove(&mut self, number: u32) {
        if self.words.is_empty() {
            self.list.retain(|n| *n != number);
            return;
        }
        let word = number as usize / 64;
        self.words[word] &= !(1 << (number % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
    }

    /// Makes the empty set a list again, which holds no memory worth mentioning.
    pub(crate) fn clear(&mut self) {
        *self = MachineSet::default();
    }

    /// The smallest number of the set that is not below `from`.
    pub(crate) fn next(&self, from: u32) -> Option<u32> {
        if self.words.is_empty() {
            return self.list.iter().copied().find(|n| *n >= from);
        }
        let word = from as usize / 64;
        let rest = self.words.get(word)? & (u64::MAX << (from % 64));
        if rest != 0 {
            return Some(word as u32 * 64 + rest.trailing_zeros());
        }
        let after = word + 1;
        let mut part = after / 64;
        let mut rest = self.summary.get(part)? & (u64::MAX << (after % 64));
        while rest == 0 {
            part += 1;
            rest = *self.summary.get(part)?;
        }
        let word = part * 64 + rest.trailing_zeros() as usize;
        Some(word as u32 * 64 + self.words[word].trailing_zeros())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set of the standard library, as a list, as a bit map and across the change from one to the other.
        #[test]
        fn the_next_number_is_that_of_a_plain_set(
            bound in prop::sample::select(vec![40u32, 64, 100, 4096, 10_000]),
            ops in prop::collection::vec((0u32..10_000, any::<bool>(), 0u32..10_000), 1..300),
        ) {
            let (mut set, mut plain) = (MachineSet::default(), BTreeSet::new());
            for (number, add, from) in ops {
                let number = number % bound;
                if add && plain.insert(number) {
                    set.insert(number, bound);
                } else if !add && plain.remove(&number) {
                    set.remove(number);
                    if plain.is_empty() {
                        set.clear();
                    }
                }
                for from in [from % bound, number, number + 1, 0] {
                    prop_assert_eq!(set.next(from), plain.range(from..).next().copied());
                }
            }
        }
    }
}
