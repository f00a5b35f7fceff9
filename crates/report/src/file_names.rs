//! File names for figures, safe whatever the resources, policies and capacities are called.

use std::collections::BTreeSet;

/// Hands out distinct file names. Names that differ only in case count as equal, since some file systems
/// ignore case.
#[derive(Default)]
pub(crate) struct FileNames {
    taken: BTreeSet<String>,
}

/// Maximum length of a name before a number is appended, in characters; longer ones are cut.
const MAX_LENGTH: usize = 80;

impl FileNames {
    /// Returns an unused name similar to `wanted`, with only letters, digits, `.`, `_` and `-`.
    pub(crate) fn take(&mut self, wanted: &str) -> String {
        let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
        let name: String =
            wanted.chars().take(MAX_LENGTH).map(|character| if allowed(character) { character } else { '-' }).collect();
        let name = name.trim_matches('.').to_owned();
        let numbered = |number: u32| if number < 2 { name.clone() } else { format!("{name}_{number}") };
        let free = (1..).map(numbered).find(|name| self.taken.insert(name.to_lowercase()));
        free.unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_distinct_and_never_leave_their_folder() {
        let mut names = FileNames::default();
        assert_eq!(names.take("waits-../../etc/passwd"), "waits-..-..-etc-passwd");
        assert_eq!(names.take("a b"), "a-b");
        assert_eq!(names.take("A-b"), "A-b_2");
        assert_eq!(names.take("a/b"), "a-b_3");
    }
}
