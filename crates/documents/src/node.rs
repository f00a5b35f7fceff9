//! Nodes of a document: typed access to values, with errors that name their place.

use std::borrow::Cow;
use std::collections::HashMap;

use evenhand_model::{Quantity, Rational};

use crate::document::Document;
use crate::error::{DocumentError, quoted};
use crate::number;
use crate::suggestion::did_you_mean;
use crate::tree::{Kind, Name, Value};

/// A value of a document, with its place and its label in errors: its key, unless
/// [`with_label`](Node::with_label) sets another.
#[derive(Clone, Debug)]
pub struct Node<'d> {
    document: &'d Document,
    value: &'d Value,
    label: Cow<'d, str>,
}

/// A table of a document.
#[derive(Clone, Debug)]
pub struct Table<'d> {
    node: Node<'d>,
    entries: &'d [(Name, Value)],
}

/// A key of a table, and its place.
#[derive(Clone, Copy, Debug)]
pub struct Key<'d> {
    document: &'d Document,
    name: &'d Name,
}

impl<'d> Node<'d> {
    pub(crate) fn new(document: &'d Document, value: &'d Value, label: Cow<'d, str>) -> Node<'d> {
        Node { document, value, label }
    }

    /// Sets the label in errors.
    #[must_use]
    pub fn with_label(self, label: impl Into<Cow<'d, str>>) -> Node<'d> {
        Node { label: label.into(), ..self }
    }

    /// Returns the label in errors.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the value as a number that is not negative.
    ///
    /// # Errors
    /// Returns an error if it is not such a number or is too large.
    pub fn quantity(&self) -> Result<Quantity, DocumentError> {
        self.number(number::quantity)
    }

    /// Returns the value as a number greater than 0.
    ///
    /// # Errors
    /// Returns an error if it is not such a number.
    pub fn positive(&self) -> Result<Quantity, DocumentError> {
        self.number(number::positive)
    }

    /// Returns the value as a number of either sign. Accepts fractions of many digits, as exact results have.
    ///
    /// # Errors
    /// Returns an error if it is not a number.
    pub fn exact(&self) -> Result<Rational, DocumentError> {
        self.number(number::exact)
    }

    fn number<T>(&self, read: impl Fn(&str) -> Result<T, String>) -> Result<T, DocumentError> {
        match &self.value.kind {
            Kind::Number(text) | Kind::Text(text) => read(text).map_err(|problem| self.error(problem)),
            other => Err(self.error(format!("found {}, expected a number", other.noun()))),
        }
    }

    /// Returns the characters of a number or text as they are in the file.
    ///
    /// # Errors
    /// Returns an error if the value has another type.
    pub fn written(&self) -> Result<&'d str, DocumentError> {
        match &self.value.kind {
            Kind::Number(text) | Kind::Text(text) => Ok(text),
            other => Err(self.error(format!("found {}, expected a number or a text", other.noun()))),
        }
    }

    /// Returns whether the value is a text.
    pub fn is_text(&self) -> bool {
        matches!(self.value.kind, Kind::Text(_))
    }

    /// Returns whether the value is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.value.kind, Kind::List(_))
    }

    /// Returns the value as a text.
    ///
    /// # Errors
    /// Returns an error if the value has another type.
    pub fn text(&self) -> Result<&'d str, DocumentError> {
        match &self.value.kind {
            Kind::Text(text) => Ok(text),
            Kind::Number(n) => Err(self.error(format!("found the number {n}, expected a text in quotes"))),
            other => Err(self.error(format!("found {}, expected a text", other.noun()))),
        }
    }

    /// Returns the value as `true` or `false`.
    ///
    /// # Errors
    /// Returns an error if the value has another type.
    pub fn flag(&self) -> Result<bool, DocumentError> {
        match &self.value.kind {
            Kind::Flag(flag) => Ok(*flag),
            other => Err(self.error(format!("found {}, expected true or false", other.noun()))),
        }
    }

    /// Returns the items of a list.
    ///
    /// # Errors
    /// Returns an error if the value has another type.
    pub fn list(&self) -> Result<impl ExactSizeIterator<Item = Node<'d>> + use<'d>, DocumentError> {
        let (document, label) = (self.document, self.label.clone());
        match &self.value.kind {
            Kind::List(items) => Ok(items.iter().map(move |value| Node::new(document, value, label.clone()))),
            other => Err(self.error(format!("found {}, expected a list", other.noun()))),
        }
    }

    /// Returns the tables of a list, each with the value of its key `name`. `kind` is a noun for a table, for errors.
    ///
    /// # Errors
    /// Returns an error if the value is not a list of tables, or if a table has no name or the same name as another.
    pub fn named_tables(&self, kind: &str) -> Result<Vec<(&'d str, Table<'d>)>, DocumentError> {
        let mut seen: HashMap<&'d str, Node<'d>> = HashMap::new();
        let mut tables = Vec::new();
        for item in self.list()? {
            let table = item.table()?.with_label(format!("the {kind}"));
            let node = table.required("name", "name = \"…\"")?.with_label(format!("name of the {kind}"));
            let name = node.text()?;
            if let Some(first) = seen.insert(name, node.clone()) {
                let problem = format!("found {name:?} a second time, expected another name for each {kind}");
                return Err(node.error_against(problem, &first, "first here"));
            }
            tables.push((name, table.with_label(format!("{kind} {name:?}"))));
        }
        Ok(tables)
    }

    /// Returns the value as a table.
    ///
    /// # Errors
    /// Returns an error if the value has another type.
    pub fn table(&self) -> Result<Table<'d>, DocumentError> {
        match &self.value.kind {
            Kind::Table(entries) => Ok(Table { node: self.clone(), entries }),
            other => Err(self.error(format!("found {}, expected a table", other.noun()))),
        }
    }

    /// Creates an error about this value; `problem` is what was found and what was expected.
    pub fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        self.document.source().error(self.value.span.clone(), format!("{}: {}", self.label, problem.as_ref()))
    }

    /// Creates an error about this value in conflict with another, which is printed with `label`.
    pub fn error_against(&self, problem: impl AsRef<str>, other: &Node<'_>, label: &str) -> DocumentError {
        let problem = format!("{}: {}", self.label, problem.as_ref());
        self.document.source().error_with_related(
            self.value.span.clone(),
            problem,
            Some((other.value.span.clone(), label)),
        )
    }
}

impl<'d> Key<'d> {
    /// Returns the key without quotes.
    pub fn name(&self) -> &'d str {
        &self.name.name
    }

    /// Creates an error about this key.
    pub fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        self.document.source().error(self.name.span.clone(), problem.as_ref())
    }
}

impl<'d> Table<'d> {
    /// Sets the label in errors.
    #[must_use]
    pub fn with_label(self, label: impl Into<Cow<'d, str>>) -> Table<'d> {
        Table { node: self.node.with_label(label), ..self }
    }

    /// Returns the table as a node.
    pub fn node(&self) -> &Node<'d> {
        &self.node
    }

    /// Returns the value of a key, if it is present. JSON's `null` counts as absent.
    pub fn get(&self, key: &str) -> Option<Node<'d>> {
        let found = self.entries.iter().find(|(name, _)| name.name == key);
        let (name, value) = found.filter(|(_, value)| !matches!(value.kind, Kind::Null))?;
        Some(Node::new(self.node.document, value, Cow::Borrowed(&name.name)))
    }

    /// Returns the value of a required key; `expected` describes the value in the error.
    ///
    /// # Errors
    /// Returns an error if the key is absent.
    pub fn required(&self, key: &str, expected: &str) -> Result<Node<'d>, DocumentError> {
        self.get(key).ok_or_else(|| self.error(format!("found no {key}, expected {expected}")))
    }

    /// Returns all keys with their values, in the order of the file.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (Key<'d>, Node<'d>)> + use<'d> {
        let document = self.node.document;
        self.entries.iter().map(move |(name, value)| {
            (Key { document, name }, Node::new(document, value, Cow::Borrowed(name.name.as_str())))
        })
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Checks that every key is one of `known`.
    ///
    /// # Errors
    /// Returns an error about the first other key, with the most similar known key as a suggestion.
    pub fn deny_unknown(&self, known: &[&str]) -> Result<(), DocumentError> {
        let Some((key, _)) = self.entries().find(|(key, _)| !known.contains(&key.name())) else { return Ok(()) };
        Err(key.error(format!(
            "unknown field {}, expected one of: {}{}",
            quoted(key.name()),
            known.join(", "),
            did_you_mean(key.name(), known.iter().copied())
        )))
    }

    /// Creates an error about the table as a whole.
    pub fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        self.node.error(problem)
    }
}
