//! Names of figures that are fit for files, whatever resources, policies and capacities are called.

use std::collections::BTreeSet;

/// Hands out names, each once; case does not tell two names apart, since some file systems ignore it.
#[derive(Default)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
}

/// Longer names than this are cut.
const LONGEST: usize = 80;

impl Names {
    /// A free name like `wish`: letters, digits, `.`, `_` and `-` only.
    pub(crate) fn take(&mut self, wish: &str) -> String {
        let fit = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
        let name: String =
            wish.chars().take(LONGEST).map(|character| if fit(character) { character } else { '-' }).collect();
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
    fn names_stay_in_their_folder_and_apart() {
        let mut names = Names::default();
        assert_eq!(names.take("waits-../../etc/passwd"), "waits-..-..-etc-passwd");
        assert_eq!(names.take("a b"), "a-b");
        assert_eq!(names.take("A-b"), "A-b_2");
        assert_eq!(names.take("a/b"), "a-b_3");
    }
}
