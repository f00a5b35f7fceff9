//! Asking a document for what it should say.

use std::borrow::Cow;
use std::collections::HashMap;

use evenhand_model::{Quantity, Rational};

use crate::document::Document;
use crate::error::{DocumentError, quoted};
use crate::near::did_you_mean;
use crate::number;
use crate::tree::{Kind, Name, Value};

/// A value of a document, its place, and what errors call it (unless [called](Node::called)
/// otherwise, its key).
#[derive(Clone, Debug)]
pub struct Node<'d> {
    document: &'d Document,
    value: &'d Value,
    what: Cow<'d, str>,
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
    pub(crate) fn new(document: &'d Document, value: &'d Value, what: Cow<'d, str>) -> Node<'d> {
        Node { document, value, what }
    }

    /// The same, called something else in errors.
    #[must_use]
    pub fn called(self, what: impl Into<Cow<'d, str>>) -> Node<'d> {
        Node { what: what.into(), ..self }
    }

    /// What errors call it.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// A number that is not negative.
    ///
    /// # Errors
    /// If it is none, or too large for anyone to mean.
    pub fn quantity(&self) -> Result<Quantity, DocumentError> {
        self.number(number::quantity)
    }

    /// A number greater than 0.
    ///
    /// # Errors
    /// If it is none.
    pub fn positive(&self) -> Result<Quantity, DocumentError> {
        self.number(number::positive)
    }

    /// A number of either sign; also a fraction of many digits, as exact results have.
    ///
    /// # Errors
    /// If it is none.
    pub fn exact(&self) -> Result<Rational, DocumentError> {
        self.number(number::exact)
    }

    fn number<T>(&self, read: impl Fn(&str) -> Result<T, String>) -> Result<T, DocumentError> {
        match &self.value.kind {
            Kind::Number(text) | Kind::Text(text) => read(text).map_err(|problem| self.error(problem)),
            other => Err(self.error(format!("found {}, expected a number", other.noun()))),
        }
    }

    /// A number or text as written.
    ///
    /// # Errors
    /// If it is something else.
    pub fn written(&self) -> Result<&'d str, DocumentError> {
        match &self.value.kind {
            Kind::Number(text) | Kind::Text(text) => Ok(text),
            other => Err(self.error(format!("found {}, expected a number or a text", other.noun()))),
        }
    }

    /// Whether it is a text.
    pub fn is_text(&self) -> bool {
        matches!(self.value.kind, Kind::Text(_))
    }

    /// Whether it is a list.
    pub fn is_list(&self) -> bool {
        matches!(self.value.kind, Kind::List(_))
    }

    /// A text.
    ///
    /// # Errors
    /// If it is something else.
    pub fn text(&self) -> Result<&'d str, DocumentError> {
        match &self.value.kind {
            Kind::Text(text) => Ok(text),
            Kind::Number(n) => Err(self.error(format!("found the number {n}, expected a text in quotes"))),
            other => Err(self.error(format!("found {}, expected a text", other.noun()))),
        }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn flag(&self) -> Result<bool, DocumentError> {
        match &self.value.kind {
            Kind::Flag(flag) => Ok(*flag),
            other => Err(self.error(format!("found {}, expected true or false", other.noun()))),
        }
    }

    /// A list.
    ///
    /// # Errors
    /// If it is something else.
    pub fn list(&self) -> Result<impl ExactSizeIterator<Item = Node<'d>> + use<'d>, DocumentError> {
        let (document, what) = (self.document, self.what.clone());
        match &self.value.kind {
            Kind::List(items) => Ok(items.iter().map(move |value| Node::new(document, value, what.clone()))),
            other => Err(self.error(format!("found {}, expected a list", other.noun()))),
        }
    }

    /// The tables of a list of `kind`s, each with its name, which no other of them has.
    ///
    /// # Errors
    /// If it is something else, or a table has no name or that of another.
    pub fn named_tables(&self, kind: &str) -> Result<Vec<(&'d str, Table<'d>)>, DocumentError> {
        let mut seen: HashMap<&'d str, Node<'d>> = HashMap::new();
        let mut tables = Vec::new();
        for item in self.list()? {
            let table = item.table()?.called(format!("the {kind}"));
            let node = table.required("name", "name = \"…\"")?.called(format!("name of the {kind}"));
            let name = node.text()?;
            if let Some(first) = seen.insert(name, node.clone()) {
                let problem = format!("found {name:?} a second time, expected another name for each {kind}");
                return Err(node.error_against(problem, &first, "first here"));
            }
            tables.push((name, table.called(format!("{kind} {name:?}"))));
        }
        Ok(tables)
    }

    /// A table.
    ///
    /// # Errors
    /// If it is something else.
    pub fn table(&self) -> Result<Table<'d>, DocumentError> {
        match &self.value.kind {
            Kind::Table(entries) => Ok(Table { node: self.clone(), entries }),
            other => Err(self.error(format!("found {}, expected a table", other.noun()))),
        }
    }

    /// That something is wrong with it: `problem` says what was found and what was expected.
    pub fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        self.document.source().error(self.value.span.clone(), format!("{}: {}", self.what, problem.as_ref()))
    }

    /// That it does not go with what another one says; `label` says what that is.
    pub fn error_against(&self, problem: impl AsRef<str>, other: &Node<'_>, label: &str) -> DocumentError {
        let problem = format!("{}: {}", self.what, problem.as_ref());
        self.document.source().error_of_two(self.value.span.clone(), problem, Some((other.value.span.clone(), label)))
    }
}

impl<'d> Key<'d> {
    /// As written, without quotes.
    pub fn name(&self) -> &'d str {
        &self.name.name
    }

    /// That something is wrong with it.
    pub fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        self.document.source().error(self.name.span.clone(), problem.as_ref())
    }
}

impl<'d> Table<'d> {
    /// The same, called something else in errors.
    #[must_use]
    pub fn called(self, what: impl Into<Cow<'d, str>>) -> Table<'d> {
        Table { node: self.node.called(what), ..self }
    }

    /// The table as a value.
    pub fn node(&self) -> &Node<'d> {
        &self.node
    }

    /// The value of a key, if it is there. (JSON's `null` counts as not there.)
    pub fn get(&self, key: &str) -> Option<Node<'d>> {
        let found = self.entries.iter().find(|(name, _)| name.name == key);
        let (name, value) = found.filter(|(_, value)| !matches!(value.kind, Kind::Null))?;
        Some(Node::new(self.node.document, value, Cow::Borrowed(&name.name)))
    }

    /// The value of a key that must be there; `expected` says what to write.
    ///
    /// # Errors
    /// If it is not there.
    pub fn required(&self, key: &str, expected: &str) -> Result<Node<'d>, DocumentError> {
        self.get(key).ok_or_else(|| self.error(format!("found no {key}, expected {expected}")))
    }

    /// All keys with their values, in the order of the file.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (Key<'d>, Node<'d>)> + use<'d> {
        let document = self.node.document;
        self.entries.iter().map(move |(name, value)| {
            (Key { document, name }, Node::new(document, value, Cow::Borrowed(name.name.as_str())))
        })
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Holds the keys against those that mean something.
    ///
    /// # Errors
    /// If there is another one.
    pub fn deny_unknown(&self, known: &[&str]) -> Result<(), DocumentError> {
        let Some((key, _)) = self.entries().find(|(key, _)| !known.contains(&key.name())) else { return Ok(()) };
        Err(key.error(format!(
            "unknown field {}, expected one of: {}{}",
            quoted(key.name()),
            known.join(", "),
            did_you_mean(key.name(), known.iter().copied())
        )))
    }

    /// That something is wrong with the table as a whole.
    pub fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        self.node.error(problem)
    }
}
