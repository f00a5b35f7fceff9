//! Parses JSON to a tree.
//!
//! `serde_json` validates the text and returns every value as a slice of it ([`RawValue`]): numbers keep their digits,
//! and the address of a slice is its place.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::tree::{Kind, Name, ParseError, Value};

/// The maximum depth. Each level is scanned once more than the one above it.
const MAX_DEPTH: usize = 32;

pub(crate) fn parse(text: &str) -> Result<Value, ParseError> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|e| parse_error_at(text, text, &e))?;
    value_of(text, raw.get(), 0)
}

/// Returns the range of `part`, a slice of `text`, in `text`.
fn span_of(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    start..(start + part.len()).min(text.len())
}

fn value_of(text: &str, part: &str, depth: usize) -> Result<Value, ParseError> {
    let span = span_of(text, part);
    if depth > MAX_DEPTH {
        return Err(ParseError::new(span, format!("found more than {MAX_DEPTH} levels of brackets, expected fewer")));
    }
    let parse_error = |e: serde_json::Error| parse_error_at(text, part, &e);
    let kind = match part.as_bytes().first() {
        Some(b'{') => {
            let parts: EntryList<'_> =
                serde_json::Deserializer::from_str(part).deserialize_map(Entries).map_err(parse_error)?;
            Kind::Table(table_of(text, parts, depth)?)
        }
        Some(b'[') => {
            let parts: Vec<&RawValue> =
                serde_json::Deserializer::from_str(part).deserialize_seq(Items).map_err(parse_error)?;
            Kind::List(parts.into_iter().map(|p| value_of(text, p.get(), depth + 1)).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Kind::Text(serde_json::from_str(part).map_err(parse_error)?),
        Some(b't') => Kind::Flag(true),
        Some(b'f') => Kind::Flag(false),
        Some(b'n') => Kind::Null,
        _ => Kind::Number(part.to_string()),
    };
    Ok(Value { span, kind })
}

type EntryList<'t> = Vec<(&'t RawValue, &'t RawValue)>;

fn table_of(text: &str, parts: EntryList<'_>, depth: usize) -> Result<Vec<(Name, Value)>, ParseError> {
    let mut first: HashMap<String, Range<usize>> = HashMap::with_capacity(parts.len());
    let mut entries = Vec::with_capacity(parts.len());
    for (key, value) in parts {
        let span = span_of(text, key.get());
        let name: String = serde_json::from_str(key.get()).map_err(|e| parse_error_at(text, key.get(), &e))?;
        if let Some(earlier) = first.insert(name.clone(), span.clone()) {
            return Err(ParseError::duplicate(&name, span, Some(earlier)));
        }
        entries.push((Name { span, name }, value_of(text, value.get(), depth + 1)?));
    }
    Ok(entries)
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = EntryList<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = map.next_entry()? {
            parts.push(part);
        }
        Ok(parts)
    }
}

struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = list.next_element()? {
            parts.push(part);
        }
        Ok(parts)
    }
}

/// Converts an error of `serde_json` about `part` to one with its place in `text`.
fn parse_error_at(text: &str, part: &str, error: &serde_json::Error) -> ParseError {
    // Lines and columns count from 1; columns are bytes.
    let before = part.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let at = span_of(text, part).start + before + error.column().saturating_sub(1);
    let message = error.to_string();
    // The message ends in a place that counts from the slice.
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    let at = at.min(text.len());
    ParseError::new(at..at + 1, format!("invalid JSON: {message}"))
}
