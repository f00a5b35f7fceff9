//! Groups whose paths match a regular expression.

use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::Hierarchies;
use regex_lite::Regex;

use crate::discovery::owners::{user, whole};
use crate::discovery::paths::{children, last, unescaped};
use crate::discovery::roll::{Found, Roll};
use crate::discovery::{Guest, GuestError, Registration, Source};

pub(crate) const SOURCE: Registration = Registration {
    name: "pattern",
    about: "groups whose whole path matches a regular expression, which may capture the owner and the name",
    build,
};

/// Deeper groups are not looked at.
const DEEPEST: usize = 32;

struct Pattern {
    hierarchies: Hierarchies,
    pattern: Regex,
    owner: Option<String>,
    /// Where to begin: no path outside matches.
    within: String,
    roll: Roll,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn Source>, DocumentError> {
    let roll = Roll::read(table, &["pattern", "owner"])?;
    let node = table.required("pattern", "a regular expression for paths of groups")?;
    let text = node.text()?;
    let pattern = whole(text).map_err(|problem| node.error(problem))?;
    let owner = table.get("owner").map(|node| user(&node)).transpose()?;
    let captures = |name| pattern.capture_names().flatten().any(|captured| captured == name);
    if owner.is_none() && !captures("owner") && !roll.has_owners() {
        let expected = "expected (?<owner>…) in it, or owner = \"…\", or a file of owners by guests' names";
        return Err(node.error(format!("found no word on whose the groups are, {expected}")));
    }
    let (hierarchies, within) = (hierarchies.clone(), beginning(text));
    Ok(Box::new(Pattern { hierarchies, pattern, owner, within, roll }))
}

/// The folder in which everything is that the pattern matches, as far as its plain beginning says.
fn beginning(pattern: &str) -> String {
    let mut plain = String::new();
    let mut rest = pattern.chars();
    // An alternative may begin otherwise.
    while !pattern.contains('|') {
        match rest.next() {
            Some(c) if c.is_alphanumeric() || "/-_@:,".contains(c) => plain.push(c),
            Some('\\') => match rest.next() {
                Some(c) if c.is_ascii_punctuation() && !"<>".contains(c) => plain.push(c),
                _ => break,
            },
            // What comes before one of these need not be there.
            Some('*' | '?' | '{' | '+') => {
                plain.pop();
                break;
            }
            _ => break,
        }
    }
    plain.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned())
}

impl Pattern {
    fn walk(&mut self, parent: &str, depth: usize) -> Result<(), GuestError> {
        if depth > DEEPEST {
            return Ok(());
        }
        for group in children(&self.hierarchies, parent)? {
            if !self.roll.has(&group.path, group.identity) {
                let found = found(&self.pattern, self.owner.as_deref(), &group.path);
                self.roll.keep(group.path.clone(), group.identity, found);
            }
            // What is within a guest is no guest.
            if !self.roll.is_guest(&group.path) {
                self.walk(&group.path, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn found(pattern: &Regex, owner: Option<&str>, path: &str) -> Option<Found> {
    let captures = pattern.captures(path)?;
    let captured = |name| captures.name(name).map(|m| unescaped(m.as_str())).filter(|text| !text.is_empty());
    Some(Found {
        name: captured("name").unwrap_or_else(|| last(path).to_owned()),
        owner: captured("owner").or_else(|| owner.map(str::to_owned)),
        ..Found::default()
    })
}

impl Source for Pattern {
    fn look(&mut self) -> Result<Vec<Arc<Guest>>, GuestError> {
        self.roll.begin();
        let within = self.within.clone();
        self.walk(&within, 0)?;
        Ok(self.roll.end())
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        self.roll.remarks(&mut remarks);
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_plain_beginning_says_where_to_look() {
        assert_eq!(beginning(r"tenants\.slice/(?<owner>[a-z]+)-(?<name>.*)\.service"), "tenants.slice");
        assert_eq!(beginning(r"a/b/c.*"), "a/b");
        assert_eq!(beginning(r"a/b/*c"), "a");
        assert_eq!(beginning(r"a/b|c"), "");
        assert_eq!(beginning(r"a/\d+/b"), "a");
        assert_eq!(beginning(r"(?i)a/b/c"), "");
        assert_eq!(beginning(r"a/\x41/b"), "a");
        assert_eq!(beginning(r"a\\x2db/c"), "a\\x2db");
    }

    proptest! {
        #[test]
        fn nothing_that_matches_is_elsewhere(pattern in "[ab/.?*+\\[\\]\\\\|(){}^$]{0,8}", path in "[ab/.\\\\]{0,8}") {
            if let Ok(compiled) = whole(&pattern) && compiled.is_match(&path) {
                let within = beginning(&pattern);
                prop_assert!(within.is_empty() || path.starts_with(&format!("{within}/")), "{within:?}");
            }
        }

        #[test]
        fn any_path_is_read(path in "\\PC{0,40}") {
            let pattern = whole(r"(?<owner>[^/]*)/?(?<name>.*)").unwrap();
            prop_assert!(found(&pattern, None, &path).is_none_or(|f| !f.name.is_empty() || path.is_empty() || path.ends_with('/')));
        }
    }
}
