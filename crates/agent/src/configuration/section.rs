//! A section of the configuration, as several files and variables give it.

use evenhand_documents::{DocumentError, Node, Table};

/// The tables of one name in all layers of a configuration. A key has the value of the last layer that has it.
#[derive(Clone, Debug)]
pub(super) struct Section<'d> {
    /// What errors about the section as a whole point at where no layer has it.
    root: Table<'d>,
    layers: Vec<Table<'d>>,
}

impl<'d> Section<'d> {
    /// Returns the section of this name, possibly with no layers. `first` is the root of the first layer.
    pub(super) fn of(first: &Table<'d>, others: &[Table<'d>], name: &str) -> Result<Section<'d>, DocumentError> {
        let tables = std::iter::once(first).chain(others).filter_map(|root| root.get(name)).map(|node| node.table());
        Ok(Section { root: first.clone(), layers: tables.collect::<Result<_, _>>()? })
    }

    /// Returns the section if any layer has it.
    pub(super) fn if_present(self) -> Option<Section<'d>> {
        (!self.layers.is_empty()).then_some(self)
    }

    /// Returns the value of a key, if it is present.
    pub(super) fn get(&self, key: &str) -> Option<Node<'d>> {
        self.layers.iter().rev().find_map(|layer| layer.get(key))
    }

    /// Returns the value of a required key; `expected` describes the value in the error.
    pub(super) fn required(&self, key: &str, expected: &str) -> Result<Node<'d>, DocumentError> {
        self.get(key).ok_or_else(|| self.error(format!("found no {key}, expected {expected}")))
    }

    /// Checks that every key of every layer is one of `known`.
    pub(super) fn deny_unknown(&self, known: &[&str]) -> Result<(), DocumentError> {
        self.layers.iter().try_for_each(|layer| layer.deny_unknown(known))
    }

    /// Creates an error about the section as a whole, at its first place.
    pub(super) fn error(&self, problem: impl AsRef<str>) -> DocumentError {
        self.layers.first().unwrap_or(&self.root).error(problem)
    }
}
