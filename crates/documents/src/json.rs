//! JSON as a tree.
//!
//! `serde_json` checks the text and hands out every value as the slice of the text it stands in
//! ([`RawValue`]): numbers stay as written, and a slice's address is its place.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::tree::{Kind, Name, Refusal, Value};

/// Deeper documents are refused; each level is scanned once more than the one above it.
const DEEPEST: usize = 32;

pub(crate) fn parse(text: &str) -> Result<Value, Refusal> {
    let raw: &RawValue = serde_json::from_str(text).map_err(|e| refusal(text, text, &e))?;
    value_of(text, raw.get(), 0)
}

/// Where `part`, a slice of `text`, is in it.
fn span_of(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    start..(start + part.len()).min(text.len())
}

fn value_of(text: &str, part: &str, depth: usize) -> Result<Value, Refusal> {
    let span = span_of(text, part);
    if depth > DEEPEST {
        return Err(Refusal::new(span, format!("found more than {DEEPEST} levels of brackets, expected fewer")));
    }
    let wrong = |e: serde_json::Error| refusal(text, part, &e);
    let kind = match part.as_bytes().first() {
        Some(b'{') => {
            let parts: Entries<'_> = serde_json::Deserializer::from_str(part).deserialize_map(Parts).map_err(wrong)?;
            Kind::Table(table_of(text, parts, depth)?)
        }
        Some(b'[') => {
            let parts: Vec<&RawValue> =
                serde_json::Deserializer::from_str(part).deserialize_seq(Items).map_err(wrong)?;
            Kind::List(parts.into_iter().map(|p| value_of(text, p.get(), depth + 1)).collect::<Result<_, _>>()?)
        }
        Some(b'"') => Kind::Text(serde_json::from_str(part).map_err(wrong)?),
        Some(b't') => Kind::Flag(true),
        Some(b'f') => Kind::Flag(false),
        Some(b'n') => Kind::Null,
        _ => Kind::Number(part.to_string()),
    };
    Ok(Value { span, kind })
}

type Entries<'t> = Vec<(&'t RawValue, &'t RawValue)>;

fn table_of(text: &str, parts: Entries<'_>, depth: usize) -> Result<Vec<(Name, Value)>, Refusal> {
    let mut first: HashMap<String, Range<usize>> = HashMap::with_capacity(parts.len());
    let mut entries = Vec::with_capacity(parts.len());
    for (key, value) in parts {
        let span = span_of(text, key.get());
        let name: String = serde_json::from_str(key.get()).map_err(|e| refusal(text, key.get(), &e))?;
        if let Some(earlier) = first.insert(name.clone(), span.clone()) {
            return Err(Refusal::duplicate(&name, span, Some(earlier)));
        }
        entries.push((Name { span, name }, value_of(text, value.get(), depth + 1)?));
    }
    Ok(entries)
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = Entries<'de>;

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

/// What `serde_json` says of `part`, with its place in `text`.
fn refusal(text: &str, part: &str, error: &serde_json::Error) -> Refusal {
    // Lines and columns count from 1, columns in bytes.
    let before = part.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let at = span_of(text, part).start + before + error.column().saturating_sub(1);
    let message = error.to_string();
    // It ends in a place that counts from the slice.
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    let at = at.min(text.len());
    Refusal::new(at..at + 1, format!("this is not JSON: {message}"))
}
