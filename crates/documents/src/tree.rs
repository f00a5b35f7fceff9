//! What both formats come to.

use std::ops::Range;

/// A value and where it stands, in bytes of the text.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

/// What can be written.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// As written, without TOML's underscores and in decimal digits.
    Number(String),
    Text(String),
    Flag(bool),
    List(Vec<Value>),
    /// In the order of the file.
    Table(Vec<(Name, Value)>),
    /// TOML's date and time, which nothing here reads.
    Date,
    /// JSON's `null`.
    Null,
}

impl Kind {
    /// What a person would call it.
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

/// A key and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) span: Range<usize>,
    pub(crate) name: String,
}

/// What a parser refuses: where, why, and the other place it is about, if there is one.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) span: Range<usize>,
    pub(crate) problem: String,
    pub(crate) other: Option<(Range<usize>, &'static str)>,
}

impl Refusal {
    pub(crate) fn new(span: Range<usize>, problem: impl Into<String>) -> Refusal {
        Refusal { span, problem: problem.into(), other: None }
    }

    pub(crate) fn duplicate(name: &str, second: Range<usize>, first: Option<Range<usize>>) -> Refusal {
        let problem = format!("{} is here a second time, expected once", crate::error::quoted(name));
        Refusal { span: second, problem, other: first.map(|span| (span, "first here")) }
    }
}
