//! The numbers of classes.

use std::collections::BTreeSet;

use crate::traffic::TrafficError;

/// Allocates minor numbers of classes, the smallest free one first.
///
/// A packet's priority is the class's number also where the packet passes another queueing discipline, and the
/// kernel's plain ones (`pfifo_fast`, `prio`) read its last four bits. There 8 to 15 mean ordinary traffic, so only
/// numbers that end in these are used.
#[derive(Debug, Default)]
pub(crate) struct ClassNumbers {
    used: usize,
    free: BTreeSet<u16>,
}

/// Half of all 16-bit numbers.
const ALL: usize = 1 << 15;

impl ClassNumbers {
    pub(crate) fn take(&mut self) -> Result<u16, TrafficError> {
        if let Some(minor) = self.free.pop_first() {
            return Ok(minor);
        }
        if self.used == ALL {
            return Err(TrafficError::Full(ALL));
        }
        self.used += 1;
        let k = self.used - 1;
        Ok((k / 8 * 16 + 8 + k % 8) as u16)
    }

    pub(crate) fn free(&mut self, minor: u16) {
        self.free.insert(minor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_mean_ordinary_traffic_and_are_reused() {
        let mut minors = ClassNumbers::default();
        let all: Vec<u16> = (0..ALL).map(|_| minors.take().unwrap()).collect();
        assert_eq!(all[..10], [8, 9, 10, 11, 12, 13, 14, 15, 24, 25]);
        assert!(all.is_sorted_by(|a, b| a < b));
        assert!(all.iter().all(|minor| minor & 15 >= 8 && *minor > crate::traffic::htb::DEFAULT));
        assert!(matches!(minors.take(), Err(TrafficError::Full(ALL))));
        minors.free(24);
        minors.free(9);
        assert_eq!((minors.take().unwrap(), minors.take().unwrap()), (9, 24));
    }
}
