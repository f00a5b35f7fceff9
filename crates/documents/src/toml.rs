//! Parses TOML to a tree.

use std::fmt::Write as _;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::number;
use crate::tree::{Kind, Name, ParseError, Value};

/// Formats a text as a basic string of TOML 1.0, in quotation marks.
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                // Writing into a string cannot fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

pub(crate) fn parse(text: &str) -> Result<Value, ParseError> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let root = Value { span: 0..0, kind: table_of(table.into_inner()) };
    let Some(error) = errors.first() else { return Ok(root) };
    let span = error.span().unwrap_or(0..0);
    if error.message() == "duplicate key" {
        let key = text.get(span.clone()).unwrap_or_default();
        let name = name_of(key);
        let first = first_header(text, span.start).unwrap_or_else(|| first_of_two(text, &root, &name, span.start));
        return Err(ParseError::duplicate(&name, span, first));
    }
    Err(ParseError::new(span, error.message().trim_end()))
}

fn value_of(value: Spanned<DeValue<'_>>) -> Value {
    let span = value.span();
    let kind = match value.into_inner() {
        DeValue::String(text) => Kind::Text(text.into_owned()),
        DeValue::Integer(n) if n.radix() == 10 => Kind::Number(n.as_str().to_string()),
        DeValue::Integer(n) => {
            Kind::Number(number::decimal_digits(n.as_str(), n.radix()).unwrap_or_else(|| n.as_str().to_string()))
        }
        DeValue::Float(n) => Kind::Number(n.as_str().to_string()),
        DeValue::Boolean(flag) => Kind::Flag(flag),
        DeValue::Datetime(_) => Kind::Date,
        DeValue::Array(list) => Kind::List(list.into_iter().map(value_of).collect()),
        DeValue::Table(table) => table_of(table),
    };
    Value { span, kind }
}

fn table_of(table: DeTable<'_>) -> Kind {
    let name = |key: Spanned<std::borrow::Cow<'_, str>>| Name { span: key.span(), name: key.into_inner().into_owned() };
    let mut entries: Vec<(Name, Value)> = table.into_iter().map(|(k, v)| (name(k), value_of(v))).collect();
    // The parser sorts by name; callers need the order of the file.
    entries.sort_by_key(|(key, _)| key.span.start);
    Kind::Table(entries)
}

/// Returns a key without its quotes and escapes.
fn name_of(key: &str) -> String {
    match DeTable::parse(&format!("{key} = 0")).map(Spanned::into_inner).map(DeTable::into_iter) {
        Ok(mut keys) => keys.next().map_or_else(String::new, |(k, _)| k.into_inner().into_owned()),
        Err(_) => key.to_string(),
    }
}

/// If the key at `at` is part of a header `[a.b]`, returns where the same table was named first. The text before is
/// parsed again, since the parser keeps only the later of two tables.
fn first_header(text: &str, at: usize) -> Option<Option<Range<usize>>> {
    let line_start = text[..at].rfind('\n').map_or(0, |i| i + 1);
    let line = text[line_start..].lines().next().filter(|line| line.trim_start().starts_with('['))?;
    let header = DeTable::parse_recoverable(line).0.into_inner();
    let before = DeTable::parse_recoverable(&text[..line_start]).0.into_inner();
    let (mut header, mut before) = (&header, &before);
    loop {
        let Some((key, inner)) = header.iter().next() else { return Some(None) };
        let Some((first, value)) = before.get_key_value(key) else { return Some(None) };
        if line_start + key.span().start == at {
            return Some(Some(first.span()));
        }
        let (Some(inner), Some(value)) = (table_in(inner), table_in(value)) else { return Some(None) };
        (header, before) = (inner, value);
    }
}

/// Returns the table, or the last table of a list.
fn table_in<'t, 'i>(value: &'t Spanned<DeValue<'i>>) -> Option<&'t DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        DeValue::Array(list) => list.iter().next_back().and_then(table_in),
        _ => None,
    }
}

/// Returns the first place of the key `name` that occurs again at `at`: in the innermost table that is still open there
/// and has the key. The parser's error names only the second place.
fn first_of_two(text: &str, root: &Value, name: &str, at: usize) -> Option<Range<usize>> {
    let Kind::Table(entries) = &root.kind else { return None };
    // A table in braces and a list end at their brackets; a table under a header ends at the next header.
    let open = |value: &Value| {
        let brackets = text[value.span.clone()].starts_with('{') || is_list_of_values(text, value);
        value.span.start < at && (!brackets || at < value.span.end)
    };
    let inner = entries.iter().rev().filter(|(key, _)| key.span.start < at).find_map(|(_, value)| match &value.kind {
        Kind::Table(_) if open(value) => first_of_two(text, value, name, at),
        Kind::List(items) if open(value) => {
            items.iter().rev().filter(|i| open(i)).find_map(|item| first_of_two(text, item, name, at))
        }
        _ => None,
    });
    inner.or_else(|| {
        let same = |key: &&(Name, Value)| key.0.name == name && key.0.span.start < at;
        entries.iter().find(same).map(|(key, _)| key.span.clone())
    })
}

/// Returns whether a list is written as `[1, 2]` and not as headers `[[user]]`.
fn is_list_of_values(text: &str, value: &Value) -> bool {
    match &value.kind {
        Kind::List(items) => {
            // The place of a list of tables is that of its first header.
            items.first().is_none_or(|first| first.span != value.span) && text[value.span.clone()].starts_with('[')
        }
        _ => false,
    }
}
