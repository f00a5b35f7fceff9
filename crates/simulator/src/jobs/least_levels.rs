//! Numbers in a row with the least of every block of them, of every block of blocks, and so on.

/// How many numbers share one least number.
const BLOCK: usize = 64;

/// A sequence of numbers in which the next one below a bound is found in at most 64 steps for each level of blocks, of which
/// there are as many as 64 goes into the length. Appending and replacing a number take as many; ties do not matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeastLevels {
    /// The numbers, then the least numbers of their blocks, up to a level of one block.
    levels: Vec<Vec<u64>>,
}

fn least(block: &[u64]) -> u64 {
    block.iter().copied().min().unwrap_or(u64::MAX)
}

impl LeastLevels {
    pub(crate) fn new(numbers: Vec<u64>) -> LeastLevels {
        let mut levels = vec![numbers];
        while let Some(last) = levels.last().filter(|last| last.len() > BLOCK) {
            levels.push(last.chunks(BLOCK).map(least).collect());
        }
        LeastLevels { levels }
    }

    pub(crate) fn numbers(&self) -> &[u64] {
        self.levels.first().map_or(&[], Vec::as_slice)
    }

    /// The least number, `u64::MAX` if there is none.
    pub(crate) fn least(&self) -> u64 {
        self.levels.last().map_or(u64::MAX, |top| least(top))
    }

    pub(crate) fn push(&mut self, number: u64) {
        if self.levels.is_empty() {
            self.levels.push(Vec::new());
        }
        let mut is_new = true;
        for level in &mut self.levels {
            match level.last_mut().filter(|_| !is_new) {
                Some(last) => *last = number.min(*last),
                None => level.push(number),
            }
            is_new = is_new && level.len() % BLOCK == 1;
        }
        if let Some(top) = self.levels.last().filter(|top| top.len() > BLOCK) {
            let above = top.chunks(BLOCK).map(least).collect();
            self.levels.push(above);
        }
    }

    /// Replaces the number at a place. Returns the old one.
    pub(crate) fn replace(&mut self, place: usize, number: u64) -> u64 {
        let mut at = place;
        let mut number = number;
        let mut first = None;
        for level in 0..self.levels.len() {
            let old = std::mem::replace(&mut self.levels[level][at], number);
            first = first.or(Some(old));
            let block = at / BLOCK * BLOCK;
            if old == number || level + 1 == self.levels.len() {
                break;
            }
            let values = &self.levels[level];
            number = least(&values[block..values.len().min(block + BLOCK)]);
            at /= BLOCK;
        }
        first.unwrap_or(u64::MAX)
    }

    /// The first place from `from` on with a number below `below`.
    pub(crate) fn next(&self, from: usize, below: u64) -> Option<usize> {
        let mut at = from;
        for (level, values) in self.levels.iter().enumerate() {
            let end = values.len().min((at / BLOCK + 1) * BLOCK);
            let found = values.get(at..end)?.iter().position(|number| *number < below);
            if let Some(found) = found {
                return Some(self.descend(level, at + found, below));
            }
            at = at / BLOCK + 1;
        }
        None
    }

    /// The first number below `below` under a place of a level that is below it.
    fn descend(&self, level: usize, at: usize, below: u64) -> usize {
        self.levels[..level].iter().rev().fold(at, |at, values| {
            let from = at * BLOCK;
            let block = &values[from..values.len().min(from + BLOCK)];
            from + block.iter().position(|number| *number < below).unwrap_or(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list, across three levels.
        #[test]
        fn the_next_number_is_that_of_a_plain_list(
            start in prop::collection::vec(0u64..50, 0..5000),
            ops in prop::collection::vec((any::<bool>(), 0usize..6000, 0u64..60), 1..200),
            asks in prop::collection::vec((0usize..6000, 0u64..60), 1..50),
        ) {
            let (mut levels, mut plain) = (LeastLevels::new(start.clone()), start);
            for (push, at, number) in ops {
                if push || plain.is_empty() {
                    levels.push(number);
                    plain.push(number);
                } else {
                    let at = at % plain.len();
                    prop_assert_eq!(levels.replace(at, number), std::mem::replace(&mut plain[at], number));
                }
            }
            prop_assert_eq!(levels.numbers(), &plain[..]);
            prop_assert_eq!(levels.least(), plain.iter().copied().min().unwrap_or(u64::MAX));
            for (from, below) in asks {
                let expected = plain.iter().enumerate().skip(from).find(|(_, number)| **number < below);
                prop_assert_eq!(levels.next(from, below), expected.map(|(at, _)| at));
            }
        }
    }
}
