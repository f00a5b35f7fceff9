//! Settings of policies: sections of a TOML file by policy name, and command-line options that set one key each.
//!
//! A policy declares its settings as a type that implements [`ReadSettings`]: which keys there are ([`SettingKey`],
//! which is also their help), and how they are read. A verb knows neither: it collects [`PolicySettings`] and passes
//! them on in the [`PolicyContext`].
//!
//! ```toml
//! [sdrf]
//! key = "dominant"
//!
//! [multifactor]
//! fairshare = "classic"
//! weights = { age = 1000, fairshare = 10000 }
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use evenhand_documents::{Document, DocumentError, Format, Node, Table, did_you_mean, toml_string};

use crate::context::PolicyContext;
use crate::registry::{PolicyError, Registration, Registry};

/// One key of a policy's section: its help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingKey {
    /// The key; a key of a table within the section as `table.key`, any key of it as `table.NAME`.
    pub name: &'static str,
    /// What a value is: `"per-resource" or "dominant"`, `number > 0`, `time`.
    pub kind: &'static str,
    /// What holds where the key is absent.
    pub default: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
}

/// The settings of a policy, read from its section.
pub trait ReadSettings: Sized {
    /// The keys of the section.
    const KEYS: &'static [SettingKey];

    /// Reads the section, which may be empty. Keys that are not in [`KEYS`](ReadSettings::KEYS) have been refused before.
    ///
    /// # Errors
    /// Returns an error if a value is not what it should be, with file, line and column.
    fn read(section: &Section<'_>, context: &PolicyContext<'_>) -> Result<Self, PolicyError>;

    /// Returns what a user should know although nothing is wrong, in sentences.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// For policies without settings.
impl ReadSettings for () {
    const KEYS: &'static [SettingKey] = &[];

    fn read(_: &Section<'_>, _: &PolicyContext<'_>) -> Result<(), PolicyError> {
        Ok(())
    }
}

/// A command-line option that sets a key of one or several policies, so that no verb has to know a policy.
///
/// Policies that share an option share the constant. An option takes precedence over `--policy-settings`.
#[derive(Debug, PartialEq, Eq)]
pub struct SettingOption {
    /// The option without its dashes: `sdrf-key`.
    pub option: &'static str,
    /// The key that it sets; `None`: its value is a file whose root is the whole section.
    pub key: Option<&'static str>,
    /// What help calls the value.
    pub value_name: &'static str,
    /// The text for `--help`.
    pub help: &'static str,
    /// All values, if there are few; empty: any text.
    pub values: &'static [&'static str],
    /// The value that holds where the key is absent, if it has a name.
    pub default: Option<&'static str>,
    /// What a study's list of parameters calls it.
    pub label: &'static str,
    /// When a study lists it.
    pub listed: Listed,
    /// What a study lists for some values, in words: pairs of value and text. Other values are listed as written.
    pub words: &'static [(&'static str, &'static str)],
}

/// When a setting is in a study's list of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// In every study.
    Always,
    /// Where a policy that has the setting is studied.
    WithPolicy,
    /// Where the setting is given.
    WhenGiven,
}

impl SettingOption {
    /// Returns the text of a study's list of parameters for a value, the default if there is `None`.
    pub fn in_words(&self, value: Option<&str>) -> String {
        let value = value.or(self.default).unwrap_or("default");
        let found = self.words.iter().find(|(known, _)| *known == value);
        found.map_or(value, |(_, words)| words).to_string()
    }
}

/// A table that holds settings of one policy.
#[derive(Clone, Debug)]
struct Layer {
    document: Arc<Document>,
    /// The table of that name in the document; `None`: its root.
    table: Option<String>,
}

impl Layer {
    fn table(&self) -> Result<Table<'_>, DocumentError> {
        let root = self.document.root()?;
        match self.table.as_ref().and_then(|name| root.get(name).map(|node| node.with_label(format!("[{name}]")))) {
            Some(node) => node.table(),
            None => Ok(root),
        }
    }
}

/// The settings of all policies: for each a section of layers, later ones over earlier ones.
#[derive(Clone, Debug, Default)]
pub struct PolicySettings {
    sections: BTreeMap<String, Vec<Layer>>,
}

impl PolicySettings {
    /// Returns settings without any section.
    pub fn none() -> &'static PolicySettings {
        static NONE: PolicySettings = PolicySettings { sections: BTreeMap::new() };
        &NONE
    }

    /// Returns whether there is no section.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Reads a file of sections by policy name: TOML, or JSON of the same shape.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, names a policy that is not in `registry`, or has a key that the
    /// policy does not declare. Values are read where a policy is built or [checked](Registry::check).
    pub fn read(path: &Path, registry: &Registry) -> Result<PolicySettings, DocumentError> {
        PolicySettings::of_document(Document::read_toml(path)?, registry)
    }

    /// Reads sections by policy name from a parsed document.
    ///
    /// # Errors
    /// Returns an error as [`read`](PolicySettings::read) does.
    pub fn of_document(document: Document, registry: &Registry) -> Result<PolicySettings, DocumentError> {
        let document = Arc::new(document);
        let mut settings = PolicySettings::default();
        for (key, node) in document.root()?.entries() {
            if registry.get(key.name()).is_err() {
                let near = did_you_mean(key.name(), registry.names());
                let known = registry.names().collect::<Vec<_>>().join(", ");
                let found = key.name();
                return Err(key.error(format!("found the section {found:?}, expected a policy: {known}{near}")));
            }
            node.table()?;
            settings.push(key.name(), Layer { document: Arc::clone(&document), table: Some(key.name().to_string()) });
        }
        settings.deny_unknown(registry)?;
        Ok(settings)
    }

    /// Sets what a command-line option stands for, in every policy of `registry` that has the option.
    ///
    /// # Errors
    /// Returns an error if the option's value is a file that cannot be read or has a key that is not declared.
    pub fn set_option(&mut self, registry: &Registry, option: &str, value: &str) -> Result<(), DocumentError> {
        // Policies that have the option share it, so its value is read once for all of them.
        let find = |policy: &Registration| policy.options.iter().find(|known| known.option == option);
        let Some(found) = registry.policies().iter().find_map(find) else { return Ok(()) };
        let document = match found.key {
            Some(key) => {
                let text = format!("{key} = {}", toml_string(value));
                Document::parse(&format!("--{option}"), &text, Some(Format::Toml))?
            }
            None => Document::read_toml(Path::new(value))?,
        };
        document.root()?;
        let document = Arc::new(document);
        for registration in registry.policies().iter().filter(|policy| find(policy).is_some()) {
            self.push(registration.name, Layer { document: Arc::clone(&document), table: None });
        }
        self.deny_unknown(registry)
    }

    /// Sets the section of one policy from a document whose root is that section.
    ///
    /// # Errors
    /// Returns an error if the document is not a table, or has a key that the policy does not declare.
    pub fn set_section(&mut self, registry: &Registry, policy: &str, document: Document) -> Result<(), DocumentError> {
        document.root()?;
        self.push(policy, Layer { document: Arc::new(document), table: None });
        self.deny_unknown(registry)
    }

    fn push(&mut self, policy: &str, layer: Layer) {
        self.sections.entry(policy.to_string()).or_default().push(layer);
    }

    fn deny_unknown(&self, registry: &Registry) -> Result<(), DocumentError> {
        for registration in registry.policies() {
            let mut known: Vec<&str> =
                registration.keys().iter().map(|key| key.name.split('.').next().unwrap_or(key.name)).collect();
            known.dedup();
            for layer in self.sections.get(registration.name).into_iter().flatten() {
                let table = layer.table()?;
                if known.is_empty() && !table.is_empty() {
                    let problem = format!("found a setting, expected none: {} has no settings", registration.name);
                    return Err(table.error(problem));
                }
                table.deny_unknown(&known)?;
            }
        }
        Ok(())
    }

    /// Returns the section of a policy.
    ///
    /// # Errors
    /// Returns an error if a layer of it is not a table.
    pub fn section(&self, policy: &str) -> Result<Section<'_>, DocumentError> {
        let layers = self.sections.get(policy).map_or(&[][..], Vec::as_slice);
        let tables = layers.iter().map(|layer| Ok((layer.document.source().name(), layer.table()?)));
        Ok(Section { tables: tables.collect::<Result<_, DocumentError>>()? })
    }

    /// Returns a text that is the same for sections with the same contents, and empty for an empty one: for digests.
    ///
    /// # Errors
    /// Returns an error if a layer of the section is not a table.
    pub fn fingerprint(&self, policy: &str) -> Result<String, DocumentError> {
        let section = self.section(policy)?;
        let mut values: BTreeMap<&str, String> = BTreeMap::new();
        for (_, table) in &section.tables {
            for (key, node) in table.entries() {
                let mut text = String::new();
                write_canonical(&node, &mut text);
                values.insert(key.name(), text);
            }
        }
        Ok(values.into_iter().map(|(key, value)| format!("{key:?}={value};")).collect())
    }
}

/// Writes a value without layout or comments.
fn write_canonical(node: &Node<'_>, text: &mut String) {
    if let Ok(table) = node.table() {
        let mut entries: Vec<_> = table.entries().collect();
        entries.sort_by_key(|(key, _)| key.name());
        text.push('{');
        for (key, value) in entries {
            text.push_str(&format!("{:?}=", key.name()));
            write_canonical(&value, text);
            text.push(';');
        }
        text.push('}');
    } else if let Ok(list) = node.list() {
        text.push('[');
        for item in list {
            write_canonical(&item, text);
            text.push(',');
        }
        text.push(']');
    } else if let Ok(written) = node.written() {
        text.push_str(&format!("{written:?}"));
    } else if let Ok(flag) = node.flag() {
        text.push_str(if flag { "true" } else { "false" });
    }
}

/// The section of one policy: what its settings are read from.
#[derive(Clone, Debug)]
pub struct Section<'s> {
    /// The name of the source and the table of each layer.
    tables: Vec<(&'s str, Table<'s>)>,
}

impl<'s> Section<'s> {
    /// Returns the value of a key, of the last layer that has it.
    pub fn get(&self, key: &str) -> Option<Node<'s>> {
        self.tables.iter().rev().find_map(|(_, table)| table.get(key))
    }

    /// Returns the value of a key as `read` reads it; `None` if it is absent. What `read` finds wrong becomes an error
    /// with file, line and column.
    ///
    /// # Errors
    /// Returns an error if the value is neither a number nor a text, or `read` refuses it.
    pub fn parse<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, DocumentError> {
        let Some(node) = self.get(key) else { return Ok(None) };
        read(node.written()?).map(Some).map_err(|problem| node.error(problem))
    }

    /// Returns whether no layer was given, not even an empty one.
    pub fn is_absent(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns whether there are layers, and each has this key and no other.
    pub fn is_only(&self, key: &str) -> bool {
        let only = |table: &Table<'_>| table.len() == 1 && table.get(key).is_some();
        !self.tables.is_empty() && self.tables.iter().all(|(_, table)| only(table))
    }

    /// Returns the names of the files and options that the section comes from.
    pub fn sources(&self) -> impl Iterator<Item = &'s str> {
        self.tables.iter().map(|(source, _)| *source)
    }
}

/// Reads one of some names.
///
/// # Errors
/// Returns what was found and what was expected, if it is none of them.
pub fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value).ok_or_else(|| {
        let names = || choices.iter().map(|(name, _)| *name);
        let known: Vec<&str> = names().collect();
        format!("found {text:?}, expected one of: {}{}", known.join(", "), did_you_mean(text, names()))
    })
}
