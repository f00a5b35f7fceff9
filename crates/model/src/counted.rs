//! Numbers with their nouns.

use std::fmt::Display;

/// Formats a number with its noun, which is `one` for 1 and `many` for every other number.
///
/// ```
/// use evenhand_model::counted;
/// assert_eq!(counted(1u64, "job", "jobs"), "1 job");
/// assert_eq!(counted(0usize, "job was", "jobs were"), "0 jobs were");
/// ```
pub fn counted<N: Display + PartialEq + From<u8>>(number: N, one: &str, many: &str) -> String {
    let noun = if number == N::from(1) { one } else { many };
    format!("{number} {noun}")
}
