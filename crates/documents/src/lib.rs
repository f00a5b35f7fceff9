//! TOML and JSON as one small tree in which every key and every value knows its place.
//!
//! Rooms above read what people write by hand: problems, weights, pools, scenarios. They ask a
//! [`Table`] for its fields and a [`Node`] for a quantity or a text; what is wrong comes back as a
//! [`DocumentError`] that names file, line and column and shows the line. Numbers are kept as written,
//! so that `0.1` is exactly 1/10, and tables keep the order of the file.
//!
//! ```
//! use evenhand_documents::{Document, Format};
//! let document = Document::parse("p.toml", "[capacity]\nmem = \"18Gi\"\ncpu = 0.1\n", Some(Format::Toml))?;
//! let root = document.root()?;
//! root.deny_unknown(&["capacity", "user"])?;
//! let capacity = root.required("capacity", "a quantity for each resource")?.table()?;
//! let names: Vec<&str> = capacity.entries().map(|(key, _)| key.name()).collect();
//! assert_eq!(names, ["mem", "cpu"]);
//! assert_eq!(capacity.required("cpu", "a number")?.quantity()?.to_string(), "1/10");
//! let error = capacity.required("mem", "a text")?.table().unwrap_err().to_string();
//! assert!(error.starts_with("p.toml:2:7: mem: found a text, expected a table\n"));
//! # Ok::<(), evenhand_documents::DocumentError>(())
//! ```
//!
//! This room never decides what a field means, and never loses where it stood.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod csv;
mod document;
mod error;
mod json;
mod near;
mod node;
mod number;
mod toml;
mod tree;

pub use csv::{Cell, Csv};
pub use document::{Document, Format, STDIN, Source};
pub use error::{ContentError, DocumentError};
pub use near::{did_you_mean, nearest};
pub use node::{Key, Node, Table};
pub use number::positive;
