//! Whose a guest is, where what was found is not yet a user's name.

use std::collections::HashMap;
use std::path::Path;

use evenhand_documents::{Document, DocumentError, Node};
use regex_lite::Regex;

/// A file that maps what was found (a project's number, a label) to users' names, and guests' names to users.
pub(crate) struct Owners {
    names: HashMap<String, String>,
    guests: Vec<(Regex, String)>,
}

impl Owners {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Owners, DocumentError> {
        let document = Document::read(path)?;
        let root = document.root()?;
        root.deny_unknown(&["owners", "guests"])?;
        let mut found = Owners { names: HashMap::new(), guests: Vec::new() };
        if let Some(owners) = root.get("owners") {
            for (key, node) in owners.table()?.entries() {
                found.names.insert(key.name().to_owned(), user(&node)?);
            }
        }
        if let Some(guests) = root.get("guests") {
            for (key, node) in guests.table()?.entries() {
                let pattern = whole(key.name()).map_err(|problem| key.error(problem))?;
                found.guests.push((pattern, user(&node)?));
            }
        }
        Ok(found)
    }

    /// The user meant by what was found, or else the one to whom a guest of this name belongs.
    pub(crate) fn of(&self, found: Option<&str>, guest: &str) -> Option<String> {
        if let Some(found) = found {
            return Some(self.names.get(found).map_or(found, String::as_str).to_owned());
        }
        self.guests.iter().find(|(pattern, _)| pattern.is_match(guest)).map(|(_, user)| user.clone())
    }
}

/// A user's name, which is not empty.
pub(crate) fn user(node: &Node<'_>) -> Result<String, DocumentError> {
    match node.text()? {
        "" => Err(node.error("found \"\", expected the name of a user")),
        name => Ok(name.to_owned()),
    }
}

/// A pattern that is to match all of a text.
pub(crate) fn whole(pattern: &str) -> Result<Regex, String> {
    // On its own first: what is unbalanced must not become balanced by what is put around it.
    let wrong = |error| format!("found {pattern:?}, expected a regular expression: {error}");
    Regex::new(pattern).map_err(wrong)?;
    Regex::new(&format!("^(?:{pattern})$")).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(text: &str) -> Result<Owners, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("owners.toml");
        std::fs::write(&path, text).unwrap();
        Owners::read(&path).map_err(|e| e.to_string())
    }

    #[test]
    fn found_names_come_first_and_then_patterns_in_their_order() {
        let text = "[owners]\n38bd = 'physics'\n[guests]\n'web-.*' = 'alice'\n'web-1|db' = 'bob'\n";
        let owners = owners(text).unwrap();
        assert_eq!(owners.of(Some("38bd"), "web-1").as_deref(), Some("physics"));
        assert_eq!(owners.of(Some("carol"), "web-1").as_deref(), Some("carol"));
        assert_eq!(owners.of(None, "web-1").as_deref(), Some("alice"));
        assert_eq!(owners.of(None, "db").as_deref(), Some("bob"));
        assert_eq!(owners.of(None, "a-web-1"), None);
        assert_eq!(owners.of(None, "dbx"), None);
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        let said = |text: &str| owners(text).err().unwrap().lines().next().unwrap().to_owned();
        assert!(said("[owner]\n").ends_with(
            "owners.toml:1:2: unknown field \"owner\", expected one of: owners, guests; did you mean \"owners\"?"
        ));
        assert!(
            said("[guests]\n'a(' = 'x'\n").contains("owners.toml:2:1: found \"a(\", expected a regular expression")
        );
        assert!(said("[guests]\n'a)|(b' = 'x'\n").contains("owners.toml:2:1: found"));
        assert!(said("[owners]\na = ''\n").contains(":2:5: a: found \"\", expected the name of a user"));
        assert!(said("[owners]\na = 3\n").contains(":2:5: a: found the number 3, expected a text"));
    }
}
