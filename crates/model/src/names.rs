//! Interns names as dense ids.

use std::collections::HashMap;

/// Names, numbered in the order in which they are first seen.
///
/// ```
/// let mut n = evenhand_model::Names::default();
/// assert_eq!((n.intern("b"), n.intern("a"), n.intern("b")), (0, 1, 0));
/// assert_eq!(n.list(), ["b", "a"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Names {
    list: Vec<String>,
    ids: HashMap<String, u32>,
    last: u32,
}

impl Names {
    /// Returns the id of `name`; a new name gets the next id.
    ///
    /// # Panics
    /// Panics after 2^32 - 1 names.
    pub fn intern(&mut self, name: &str) -> u32 {
        // Rows of one user are often consecutive: skip the hash.
        if self.list.get(self.last as usize).is_some_and(|last| last == name) {
            return self.last;
        }
        if let Some(&id) = self.ids.get(name) {
            self.last = id;
            return id;
        }
        let id = u32::try_from(self.list.len()).expect("fewer than 2^32 names");
        self.last = id;
        self.list.push(name.to_string());
        self.ids.insert(name.to_string(), id);
        id
    }

    /// Returns the id of `name`, if it has one.
    pub fn id(&self, name: &str) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// Returns all names, indexed by id.
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// Converts to the list of all names, indexed by id.
    pub fn into_list(self) -> Vec<String> {
        self.list
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        self.list == other.list
    }
}

impl<S: AsRef<str>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Names {
        let mut n = Names::default();
        for name in names {
            n.intern(name.as_ref());
        }
        n
    }
}
