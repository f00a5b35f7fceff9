//! Reads TOML and JSON as one tree in which every key and value has its place in the file, and writes CSV.
//!
//! For files that people write by hand: problems, weights, pools, scenarios. A reader takes fields from a [`Table`] and
//! quantities or texts from a [`Node`]. Errors are [`DocumentError`]s with file, line and column, which print the line.
//! Numbers keep their digits, so that `0.1` is exactly 1/10, and tables keep the order of the file.
//!
//! The crate does not decide what a field means.
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
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod csv;
mod document;
mod error;
mod json;
mod node;
mod number;
mod suggestion;
mod toml;
mod tree;

pub use csv::{Cell, Csv, TextCells, push_record};
pub use document::{Document, Format, STDIN, Source};
pub use error::{ContentError, DocumentError};
pub use node::{Key, Node, Table};
pub use number::positive;
pub use suggestion::{did_you_mean, nearest};
pub use toml::toml_string;
