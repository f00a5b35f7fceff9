//! Groups whose paths match a regular expression.

use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{DocumentError, Table};
use evenhand_enforcers::cgroups::Hierarchies;
use regex_lite::Regex;

use crate::discovery::group_paths::{children, last, unescaped};
use crate::discovery::owner_map::{anchored_regex, user_name};

use crate::discovery::workload_cache::{WorkloadCache, WorkloadDetails};
use crate::discovery::{DiscoveryError, Registration, RunningWorkload, WorkloadSource};

pub(crate) const SOURCE: Registration = Registration {
    name: "pattern",
    about: "groups whose whole path matches a regular expression, which may capture the owner and the name",
    build,
};

/// Deeper groups are not searched.
const MAX_DEPTH: usize = 32;

struct Pattern {
    hierarchies: Hierarchies,
    pattern: Regex,
    owner: Option<String>,
    /// The group that contains all matching paths.
    within: String,
    cache: WorkloadCache,
}

fn build(table: &Table<'_>, hierarchies: &Hierarchies) -> Result<Box<dyn WorkloadSource>, DocumentError> {
    let cache = WorkloadCache::read(table, &["pattern", "owner"])?;
    let node = table.required("pattern", "a regular expression for paths of groups")?;
    let text = node.text()?;
    let pattern = anchored_regex(text).map_err(|problem| node.error(problem))?;
    let owner = table.get("owner").map(|node| user_name(&node)).transpose()?;
    let captures = |name| pattern.capture_names().flatten().any(|captured| captured == name);
    if owner.is_none() && !captures("owner") && !cache.has_owners() {
        let expected = "expected (?<owner>…) in it, or owner = \"…\", or a file of owners by workload names";
        return Err(node.error(format!("found no owner of the groups, {expected}")));
    }
    let (hierarchies, within) = (hierarchies.clone(), literal_parent(text));
    Ok(Box::new(Pattern { hierarchies, pattern, owner, within, cache }))
}

/// Returns the group that contains all paths matched by the pattern, as far as its literal beginning determines it.
fn literal_parent(pattern: &str) -> String {
    let mut plain = String::new();
    let mut rest = pattern.chars();
    // An alternative may begin differently.
    while !pattern.contains('|') {
        match rest.next() {
            Some(c) if c.is_alphanumeric() || "/-_@:,".contains(c) => plain.push(c),
            Some('\\') => match rest.next() {
                Some(c) if c.is_ascii_punctuation() && !"<>".contains(c) => plain.push(c),
                _ => break,
            },
            // The character before one of these is optional.
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
    fn walk(&mut self, parent: &str, depth: usize) -> Result<(), DiscoveryError> {
        if depth > MAX_DEPTH {
            return Ok(());
        }
        for group in children(&self.hierarchies, parent)? {
            if !self.cache.reuse(&group.path, group.identity) {
                let details = match_path(&self.pattern, self.owner.as_deref(), &group.path);
                self.cache.insert(group.path.clone(), group.identity, details);
            }
            // A group within a workload is not a workload.
            if !self.cache.is_workload(&group.path) {
                self.walk(&group.path, depth + 1)?;
            }
        }
        Ok(())
    }
}

fn match_path(pattern: &Regex, owner: Option<&str>, path: &str) -> Option<WorkloadDetails> {
    let captures = pattern.captures(path)?;
    let captured = |name| captures.name(name).map(|m| unescaped(m.as_str())).filter(|text| !text.is_empty());
    Some(WorkloadDetails {
        name: captured("name").unwrap_or_else(|| last(path).to_owned()),
        owner: captured("owner").or_else(|| owner.map(str::to_owned)),
        ..WorkloadDetails::default()
    })
}

impl WorkloadSource for Pattern {
    fn files(&self) -> Vec<&Path> {
        self.cache.files()
    }

    fn looked_for(&self) -> String {
        let within = if self.within.is_empty() { "the root" } else { &self.within };
        format!("no control group below {within} matches {:?}", self.pattern.as_str())
    }

    fn list(&mut self) -> Result<Vec<Arc<RunningWorkload>>, DiscoveryError> {
        self.cache.begin_scan();
        let within = self.within.clone();
        self.walk(&within, 0)?;
        Ok(self.cache.finish_scan())
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        self.cache.warnings(&mut warnings);
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_search_begins_at_the_literal_parent_of_the_pattern() {
        assert_eq!(literal_parent(r"tenants\.slice/(?<owner>[a-z]+)-(?<name>.*)\.service"), "tenants.slice");
        assert_eq!(literal_parent(r"a/b/c.*"), "a/b");
        assert_eq!(literal_parent(r"a/b/*c"), "a");
        assert_eq!(literal_parent(r"a/b|c"), "");
        assert_eq!(literal_parent(r"a/\d+/b"), "a");
        assert_eq!(literal_parent(r"(?i)a/b/c"), "");
        assert_eq!(literal_parent(r"a/\x41/b"), "a");
        assert_eq!(literal_parent(r"a\\x2db/c"), "a\\x2db");
    }

    proptest! {
        #[test]
        fn no_matching_path_lies_outside_the_literal_parent(pattern in "[ab/.?*+\\[\\]\\\\|(){}^$]{0,8}", path in "[ab/.\\\\]{0,8}") {
            if let Ok(compiled) = anchored_regex(&pattern) && compiled.is_match(&path) {
                let within = literal_parent(&pattern);
                prop_assert!(within.is_empty() || path.starts_with(&format!("{within}/")), "{within:?}");
            }
        }

        #[test]
        fn arbitrary_paths_do_not_panic(path in "\\PC{0,40}") {
            let pattern = anchored_regex(r"(?<owner>[^/]*)/?(?<name>.*)").unwrap();
            prop_assert!(match_path(&pattern, None, &path).is_none_or(|f| !f.name.is_empty() || path.is_empty() || path.ends_with('/')));
        }
    }
}
