//! Names with values, for JSON objects whose keys keep their order.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// Names with values; in JSON, an object with its keys in this order.
#[derive(Clone, Debug)]
pub(crate) struct NamedValues<T>(pub(crate) Vec<(String, T)>);

impl<T> NamedValues<T> {
    /// Pairs each name with a value.
    pub(crate) fn new(names: &[String], values: impl IntoIterator<Item = T>) -> NamedValues<T> {
        NamedValues(names.iter().cloned().zip(values).collect())
    }
}

impl<T: Serialize> Serialize for NamedValues<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
