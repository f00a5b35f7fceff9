//! Maps what sources find to the names of users.

use std::collections::HashMap;
use std::path::Path;

use evenhand_documents::{DocumentError, Node};
use regex_lite::Regex;

use crate::trusted_files::read_document;

/// A file that maps what a source found (the number of a project, a label) to the names of users, and the names of
/// workloads to users.
pub(crate) struct OwnerMap {
    names: HashMap<String, String>,
    workloads: Vec<(Regex, String)>,
}

impl OwnerMap {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<OwnerMap, DocumentError> {
        let document = read_document(path)?;
        let root = document.root()?;
        // The key `guests` is part of the file's format.
        root.deny_unknown(&["owners", "guests"])?;
        let mut found = OwnerMap { names: HashMap::new(), workloads: Vec::new() };
        if let Some(owners) = root.get("owners") {
            for (key, node) in owners.table()?.entries() {
                found.names.insert(key.name().to_owned(), user_name(&node)?);
            }
        }
        if let Some(workloads) = root.get("guests") {
            for (key, node) in workloads.table()?.entries() {
                let pattern = anchored_regex(key.name()).map_err(|problem| key.error(problem))?;
                found.workloads.push((pattern, user_name(&node)?));
            }
        }
        Ok(found)
    }

    /// Returns the user that `found` maps to, or else the owner of workloads with this name.
    pub(crate) fn owner(&self, found: Option<&str>, workload: &str) -> Option<String> {
        if let Some(found) = found {
            return Some(self.names.get(found).map_or(found, String::as_str).to_owned());
        }
        self.workloads.iter().find(|(pattern, _)| pattern.is_match(workload)).map(|(_, user)| user.clone())
    }
}

/// Reads the name of a user, which must not be empty.
pub(crate) fn user_name(node: &Node<'_>) -> Result<String, DocumentError> {
    match node.text()? {
        "" => Err(node.error("found \"\", expected the name of a user")),
        name => Ok(name.to_owned()),
    }
}

/// Compiles a regular expression that has to match a whole text.
pub(crate) fn anchored_regex(pattern: &str) -> Result<Regex, String> {
    // Compiled alone first: unbalanced parentheses must not become balanced by those around them.
    let failed = |error| format!("found {pattern:?}, expected a regular expression: {error}");
    Regex::new(pattern).map_err(failed)?;
    Regex::new(&format!("^(?:{pattern})$")).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(text: &str) -> Result<OwnerMap, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owners.toml");
        std::fs::write(&path, text).unwrap();
        OwnerMap::read(&path).map_err(|e| e.to_string())
    }

    #[test]
    fn names_that_were_found_take_precedence_over_patterns_in_their_order() {
        let text = "[owners]\n38bd = 'physics'\n[guests]\n'web-.*' = 'alice'\n'web-1|db' = 'bob'\n";
        let owners = owners(text).unwrap();
        assert_eq!(owners.owner(Some("38bd"), "web-1").as_deref(), Some("physics"));
        assert_eq!(owners.owner(Some("carol"), "web-1").as_deref(), Some("carol"));
        assert_eq!(owners.owner(None, "web-1").as_deref(), Some("alice"));
        assert_eq!(owners.owner(None, "db").as_deref(), Some("bob"));
        assert_eq!(owners.owner(None, "a-web-1"), None);
        assert_eq!(owners.owner(None, "dbx"), None);
    }

    #[test]
    fn errors_have_a_position() {
        let message = |text: &str| owners(text).err().unwrap().lines().next().unwrap().to_owned();
        assert!(message("[owner]\n").ends_with(
            "owners.toml:1:2: unknown field \"owner\", expected one of: owners, guests; did you mean \"owners\"?"
        ));
        assert!(
            message("[guests]\n'a(' = 'x'\n").contains("owners.toml:2:1: found \"a(\", expected a regular expression")
        );
        assert!(message("[guests]\n'a)|(b' = 'x'\n").contains("owners.toml:2:1: found"));
        assert!(message("[owners]\na = ''\n").contains(":2:5: a: found \"\", expected the name of a user"));
        assert!(message("[owners]\na = 3\n").contains(":2:5: a: found the number 3, expected a text"));
    }
}
