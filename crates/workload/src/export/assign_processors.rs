//! Assigns processor numbers to tasks, for traces without them.

use std::collections::BTreeMap;
use std::fmt;

/// The processors in use, numbered from 0. There are infinitely many.
#[derive(Debug, Default)]
pub(super) struct Processors {
    /// The free intervals below `end`: first and one past the last.
    free: BTreeMap<u128, u128>,
    end: u128,
}

/// Disjoint intervals in increasing order: first and last, both inclusive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct IntervalSet(pub(super) Vec<(u128, u128)>);

impl Processors {
    /// Takes the `n` lowest-numbered free processors.
    pub(super) fn take(&mut self, mut n: u128) -> IntervalSet {
        let mut taken: Vec<(u128, u128)> = Vec::new();
        let mut add = |first: u128, last: u128| match taken.last_mut() {
            Some(previous) if previous.1 + 1 == first => previous.1 = last,
            _ => taken.push((first, last)),
        };
        while n > 0 {
            let Some((first, past)) = self.free.pop_first() else {
                add(self.end, self.end + n - 1);
                self.end += n;
                break;
            };
            let here = n.min(past - first);
            add(first, first + here - 1);
            n -= here;
            if first + here < past {
                self.free.insert(first + here, past);
            }
        }
        IntervalSet(taken)
    }

    /// Releases processors.
    pub(super) fn release(&mut self, set: &IntervalSet) {
        for &(first, last) in &set.0 {
            let (mut first, mut past) = (first, last + 1);
            if let Some((&before, &end)) = self.free.range(..first).next_back()
                && end == first
            {
                self.free.remove(&before);
                first = before;
            }
            past = self.free.remove(&past).unwrap_or(past);
            self.free.insert(first, past);
        }
    }
}

impl fmt::Display for IntervalSet {
    /// Formats the set as evalys reads it: `1-3 5`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, &(first, last)) in self.0.iter().enumerate() {
            let space = if i > 0 { " " } else { "" };
            if first == last {
                write!(f, "{space}{first}")?;
            } else {
                write!(f, "{space}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_lowest_free_processors_are_taken(ops in proptest::collection::vec((1..9u128, any::<prop::sample::Index>(), any::<bool>()), 1..60)) {
            let mut p = Processors::default();
            let mut used = BTreeSet::new();
            let mut held: Vec<IntervalSet> = Vec::new();
            for (n, which, give) in ops {
                if give && !held.is_empty() {
                    let set = held.swap_remove(which.index(held.len()));
                    set.0.iter().flat_map(|&(a, b)| a..=b).for_each(|i| { used.remove(&i); });
                    p.release(&set);
                    continue;
                }
                let expected: Vec<u128> = (0..).filter(|i| !used.contains(i)).take(n as usize).collect();
                let set = p.take(n);
                prop_assert_eq!(set.0.iter().flat_map(|&(a, b)| a..=b).collect::<Vec<_>>(), expected.clone());
                used.extend(expected);
                held.push(set);
            }
        }
    }

    #[test]
    fn sets_print_as_evalys_reads_them() {
        assert_eq!(IntervalSet(vec![(1, 3), (5, 5)]).to_string(), "1-3 5");
        assert_eq!(IntervalSet::default().to_string(), "");
    }
}
