//! The indices of an array's tasks: `0-5%2`, `1,3,7-99:2%4`.

use std::fmt;

use crate::value::number;

/// The tasks of an array that one record stands for.
///
/// ```
/// use evenhand_slurm::TaskIds;
/// let tasks = TaskIds::parse("[1,3,7-99:2%4]").unwrap();
/// assert_eq!((tasks.count(), tasks.at_a_time, tasks.first()), (49, Some(4), Some(1)));
/// assert_eq!(tasks.to_string(), "1,3,7-99:2%4");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskIds {
    /// From, to and step, each at least one index.
    ranges: Vec<(u64, u64, u64)>,
    /// How many of the array may run at a time.
    pub at_a_time: Option<u64>,
}

impl TaskIds {
    /// Reads a list of indices, in brackets or not; `None` if it is none. Slurm cuts long lists to `1,3,...` unless
    /// SLURM_BITSTR_LEN is 0: such a list is none.
    pub fn parse(text: &str) -> Option<TaskIds> {
        let text = text.strip_prefix('[').map_or(Some(text), |inner| inner.strip_suffix(']'))?;
        let (list, at_a_time) = match text.split_once('%') {
            Some((list, most)) => (list, Some(number(most)?)),
            None => (text, None),
        };
        let range = |part: &str| -> Option<(u64, u64, u64)> {
            let (range, step) = match part.split_once(':') {
                Some((range, step)) => (range, number(step).filter(|s| *s > 0)?),
                None => (part, 1),
            };
            match range.split_once('-') {
                Some((from, to)) => Some((number(from)?, number(to)?, step)).filter(|(from, to, _)| from <= to),
                None => number(range).map(|one| (one, one, 1)),
            }
        };
        let ranges: Vec<(u64, u64, u64)> = list.split(',').map(range).collect::<Option<_>>()?;
        // 0%: no throttle.
        Some(TaskIds { ranges, at_a_time: at_a_time.filter(|n| *n > 0) })
    }

    /// How many tasks these are.
    pub fn count(&self) -> u64 {
        let each = self.ranges.iter().map(|(from, to, step)| ((to - from) / step).saturating_add(1));
        each.fold(0, u64::saturating_add)
    }

    /// The first index.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first().map(|(from, ..)| *from)
    }
}

impl fmt::Display for TaskIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (from, to, step)) in self.ranges.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match (from == to, step) {
                (true, _) => write!(f, "{comma}{from}")?,
                (false, 1) => write!(f, "{comma}{from}-{to}")?,
                (false, step) => write!(f, "{comma}{from}-{to}:{step}")?,
            }
        }
        self.at_a_time.map_or(Ok(()), |n| write!(f, "%{n}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_list_is_none() {
        for bad in ["", "[1", "1-", "3-1", "1,2,...", "1-9:0", "x", "1%", "0x1F", "[1]]"] {
            assert_eq!(TaskIds::parse(bad), None, "{bad}");
        }
        let whole = TaskIds::parse("0-18446744073709551615").unwrap();
        assert_eq!(whole.count(), u64::MAX, "as many as can be counted");
    }

    proptest! {
        #[test]
        fn a_list_reads_back_and_is_counted(
            parts in prop::collection::vec((0u64..1000, 0u64..50, 1u64..7), 1..6), at_a_time in prop::option::of(1u64..9)
        ) {
            let ranges: Vec<(u64, u64, u64)> = parts.iter().map(|&(from, length, step)| match length {
                0 => (from, from, 1),
                _ => (from, from + length, step),
            }).collect();
            let counted: u64 = ranges.iter().map(|&(from, to, step)| (from..=to).step_by(step as usize).count() as u64).sum();
            let tasks = TaskIds { ranges, at_a_time };
            prop_assert_eq!(TaskIds::parse(&tasks.to_string()), Some(tasks.clone()));
            prop_assert_eq!(TaskIds::parse(&format!("[{tasks}]")), Some(tasks.clone()));
            prop_assert_eq!(tasks.count(), counted);
        }

        #[test]
        fn no_text_is_a_panic(text in "\\PC{0,20}|[0-9,:%-]{0,30}") {
            let _ = TaskIds::parse(&text).map(|t| (t.count(), t.to_string()));
        }
    }
}
