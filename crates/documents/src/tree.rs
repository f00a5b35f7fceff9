//! The tree of values that both formats are parsed to.

use std::ops::Range;

/// A value and its place, in bytes of the text.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

/// The content of a value.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The digits of the file, in decimal and without TOML's underscores.
    Number(String),
    Text(String),
    Flag(bool),
    List(Vec<Value>),
    /// In the order of the file.
    Table(Vec<(Name, Value)>),
    /// TOML's date and time, which no caller reads.
    Date,
    /// JSON's `null`.
    Null,
}

impl Kind {
    /// Returns the noun for the value in errors.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Kind::Number(_) => "a number",
            Kind::Text(_) => "a text",
            Kind::Flag(_) => "true or false",
            Kind::List(_) => "a list",
            Kind::Table(_) => "a table",
            Kind::Date => "a date",
            Kind::Null => "null",
        }
    }
}

/// A key and its place.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) span: Range<usize>,
    pub(crate) name: String,
}

/// An error of a parser: the place, the problem, and a related place with its label, if there is one.
#[derive(Debug)]
pub(crate) struct ParseError {
    pub(crate) span: Range<usize>,
    pub(crate) problem: String,
    pub(crate) related: Option<(Range<usize>, &'static str)>,
}

impl ParseError {
    pub(crate) fn new(span: Range<usize>, problem: impl Into<String>) -> ParseError {
        ParseError { span, problem: problem.into(), related: None }
    }

    pub(crate) fn duplicate(name: &str, second: Range<usize>, first: Option<Range<usize>>) -> ParseError {
        let problem = format!("{} occurs a second time, expected once", crate::error::quoted(name));
        ParseError { span: second, problem, related: first.map(|span| (span, "first here")) }
    }
}
