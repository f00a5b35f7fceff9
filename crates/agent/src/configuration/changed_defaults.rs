//! Defaults that earlier versions had otherwise: what an upgrade changes although the file stays valid.

use evenhand_documents::{Document, DocumentError};

use super::section::Section;
use super::{Configuration, ConfigurationSources, Law};

/// A key that a configuration leaves to its default, which was another one in earlier versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedDefault {
    /// The file whose section lacks the key.
    pub file: String,
    /// The line of the section, counted from 1; 1 if there is no such section.
    pub line: usize,
    /// The column of the section in characters, counted from 1.
    pub column: usize,
    /// The section.
    pub section: &'static str,
    /// The key.
    pub key: &'static str,
    /// The day of the change (ISO 8601).
    pub since: &'static str,
    /// The default before that day.
    pub before: &'static str,
    /// The default since then.
    pub now: &'static str,
    /// The value, as in TOML, that keeps what the earlier versions did.
    pub keeps: &'static str,
}

/// Section, key, day, default before, default now, and the value that keeps the earlier one.
type Change = [&'static str; 6];

/// All changes of defaults, in the order of their days. An entry stays until the next major version.
const CHANGES: [Change; 4] = [
    ["control", "least", "2026-11-22", "0.01", "0.1", "0.01"],
    ["control", "most", "2026-11-22", "100", "10", "100"],
    ["control", "idle", "2026-11-22", "no limit for idle workloads but most", "0.69", "10"],
    [
        "peers",
        "largest",
        "2026-11-22",
        "no limit on what a node may claim",
        "16 times this node's own, or 1,024 processors, 16 TiB and 100 GB/s if that is more",
        "{ cpu = 1000000, mem = \"1024Ti\", disk = \"1024Ti\", net = \"1024Ti\" }",
    ],
];

impl Configuration {
    /// Returns the keys that these sources leave to a default that was another one in earlier versions. Keys without
    /// effect in this configuration are left out.
    ///
    /// # Errors
    /// Returns an error about a section that is no table; this configuration was not read from such sources.
    pub fn changed_defaults(&self, sources: &ConfigurationSources) -> Result<Vec<ChangedDefault>, DocumentError> {
        let mut roots = sources.documents.iter().map(Document::root).collect::<Result<Vec<_>, _>>()?;
        let first = roots.remove(0);
        let mut changed = Vec::new();
        for [section, key, since, before, now, keeps] in CHANGES {
            let has_effect = match section {
                "control" => matches!(self.control.law, Law::Integral(_)),
                _ => self.peers.is_some(),
            };
            let table = Section::of(&first, &roots, section)?;
            if !has_effect || table.get(key).is_some() {
                continue;
            }
            let place = table.error("");
            let (file, line, column) = match &place {
                DocumentError::Content(place) => (place.path(), place.line(), place.column()),
                DocumentError::Read { path, .. } => (path.as_str(), 1, 1),
            };
            changed.push(ChangedDefault {
                file: file.to_owned(),
                line,
                column,
                section,
                key,
                since,
                before,
                now,
                keeps,
            });
        }
        Ok(changed)
    }
}
