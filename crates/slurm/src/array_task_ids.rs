//! The task ids of a job array: `0-5%2`, `1,3,7-99:2%4`.

use std::fmt;

use crate::parse_values::number;

/// The tasks of a job array in one record.
///
/// ```
/// use evenhand_slurm::ArrayTaskIds;
/// let tasks = ArrayTaskIds::parse("[1,3,7-99:2%4]").unwrap();
/// assert_eq!((tasks.count(), tasks.max_running, tasks.first()), (49, Some(4), Some(1)));
/// assert_eq!(tasks.to_string(), "1,3,7-99:2%4");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayTaskIds {
    /// First, last and step of each range; each range has at least one index.
    ranges: Vec<(u64, u64, u64)>,
    /// The maximum number of simultaneously running tasks of the array (after `%`).
    pub max_running: Option<u64>,
}

impl ArrayTaskIds {
    /// Parses a list of task ids, in brackets or not. Returns `None` if it is malformed. Slurm abbreviates long lists
    /// to `1,3,...` unless SLURM_BITSTR_LEN is 0; such a list is malformed too.
    pub fn parse(text: &str) -> Option<ArrayTaskIds> {
        let text = text.strip_prefix('[').map_or(Some(text), |inner| inner.strip_suffix(']'))?;
        let (list, max_running) = match text.split_once('%') {
            Some((list, limit)) => (list, Some(number(limit)?)),
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
        // %0 is no limit.
        Some(ArrayTaskIds { ranges, max_running: max_running.filter(|n| *n > 0) })
    }

    /// Returns the number of tasks, saturated.
    pub fn count(&self) -> u64 {
        let each = self.ranges.iter().map(|(from, to, step)| ((to - from) / step).saturating_add(1));
        each.fold(0, u64::saturating_add)
    }

    /// Returns whether a task is among them.
    pub fn contains(&self, task: u64) -> bool {
        self.ranges.iter().any(|(from, to, step)| (*from..=*to).contains(&task) && (task - from).is_multiple_of(*step))
    }

    /// Returns the first id.
    pub fn first(&self) -> Option<u64> {
        self.ranges.first().map(|(from, ..)| *from)
    }
}

impl fmt::Display for ArrayTaskIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (from, to, step)) in self.ranges.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match (from == to, step) {
                (true, _) => write!(f, "{comma}{from}")?,
                (false, 1) => write!(f, "{comma}{from}-{to}")?,
                (false, step) => write!(f, "{comma}{from}-{to}:{step}")?,
            }
        }
        self.max_running.map_or(Ok(()), |n| write!(f, "%{n}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn malformed_lists_are_rejected() {
        for bad in ["", "[1", "1-", "3-1", "1,2,...", "1-9:0", "x", "1%", "0x1F", "[1]]"] {
            assert_eq!(ArrayTaskIds::parse(bad), None, "{bad}");
        }
        let whole = ArrayTaskIds::parse("0-18446744073709551615").unwrap();
        assert_eq!(whole.count(), u64::MAX, "saturated");
    }

    proptest! {
        #[test]
        fn a_list_parses_to_itself_and_is_counted(
            parts in prop::collection::vec((0u64..1000, 0u64..50, 1u64..7), 1..6), max_running in prop::option::of(1u64..9)
        ) {
            let ranges: Vec<(u64, u64, u64)> = parts.iter().map(|&(from, length, step)| match length {
                0 => (from, from, 1),
                _ => (from, from + length, step),
            }).collect();
            let counted: u64 = ranges.iter().map(|&(from, to, step)| (from..=to).step_by(step as usize).count() as u64).sum();
            let ranges_of_test = ranges.clone();
            let tasks = ArrayTaskIds { ranges, max_running };
            prop_assert_eq!(ArrayTaskIds::parse(&tasks.to_string()), Some(tasks.clone()));
            prop_assert_eq!(ArrayTaskIds::parse(&format!("[{tasks}]")), Some(tasks.clone()));
            prop_assert_eq!(tasks.count(), counted);
            let listed = |task: u64| ranges_of_test.iter().any(|&(from, to, step)| (from..=to).step_by(step as usize).any(|t| t == task));
            prop_assert!((0..1100).all(|task| tasks.contains(task) == listed(task)));
        }

        #[test]
        fn no_text_causes_a_panic(text in "\\PC{0,20}|[0-9,:%-]{0,30}") {
            let _ = ArrayTaskIds::parse(&text).map(|t| (t.count(), t.to_string()));
        }
    }
}
