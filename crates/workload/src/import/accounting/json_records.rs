//! Iterates over the objects of a JSON document: one array, an array under a key, the values of an object, or one
//! object after the other, as JSON lines have them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use evenhand_model::{Nano, Time};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::byte_source::{Meter, Shard};
use crate::import::error::FieldError;
use crate::import::lines::{BYTE_ORDER_MARK, malformed};
use crate::import::parse_number::decimal;
use crate::import::parse_time::{date, is_unknown};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions};

/// Where a document holds its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Records {
    /// In the array under this key of an object.
    Under(&'static str),
    /// In the array under the key `list` of an object; an object without it that has the key `of_each` is itself one.
    UnderOrEach {
        /// The key of the array.
        list: &'static str,
        /// A key that only records have.
        of_each: &'static str,
    },
    /// In the values of an object, by their names.
    Values,
    /// Every object of the stream is one; so is every object of an array.
    Objects,
}

/// Calls `row` with every record; malformed ones are errors with their place, or counted with `lenient`.
pub(crate) fn for_each_record<C: AsMut<Tally>>(
    shard: Shard,
    options: &ImportOptions,
    meter: &Meter<'_>,
    records: Records,
    context: &mut C,
    mut row: impl FnMut(&Value, &mut C) -> Result<(), Box<FieldError>>,
) -> Result<(), ImportError> {
    let file = shard.name.clone();
    let text = shard.open()?.rest(meter)?;
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    if text.trim_ascii().is_empty() {
        return Err(ImportError::EmptyFile { file });
    }
    let shape = |found: String, expected: String| ImportError::Shape {
        file: file.clone(),
        found,
        expected,
        remedy: "check that the file is complete and of this format".to_string(),
    };
    let invalid = |e: serde_json::Error| shape(format!("invalid JSON ({e})"), "a JSON document".to_string());
    let mut each = |raw: &RawValue| -> Result<(), ImportError> {
        context.as_mut().rows_read += 1;
        let value: Value = serde_json::from_str(raw.get()).map_err(invalid)?;
        let result = match value.is_object() {
            true => row(&value, context),
            false => Err(FieldError::new(0, raw.get().as_bytes(), "a JSON object")),
        };
        if let Err(error) = result {
            if !options.lenient {
                let (line, column) = place(text, raw);
                let mut row_error = error.located(&file, line);
                row_error.column = column;
                return Err(row_error.into());
            }
            malformed(context.as_mut(), &error);
        }
        Ok(())
    };
    for document in serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>() {
        let document = document.map_err(invalid)?;
        let array = document.get().trim_start().starts_with('[');
        match records {
            Records::Objects if !array => each(document)?,
            Records::Under(key) | Records::UnderOrEach { list: key, .. } if !array => {
                let object: BTreeMap<Cow<'_, str>, &RawValue> =
                    serde_json::from_str(document.get()).map_err(invalid)?;
                if let Records::UnderOrEach { of_each, .. } = records
                    && !object.contains_key(key)
                    && object.contains_key(of_each)
                {
                    each(document)?;
                    continue;
                }
                let expected = || format!("a JSON object with a list {key:?}");
                let list = object.get(key).ok_or_else(|| {
                    let keys: Vec<&str> = object.keys().map(Cow::as_ref).take(5).collect();
                    let found = match keys.is_empty() {
                        true => "an empty object".to_string(),
                        false => format!("an object with {}", keys.join(", ")),
                    };
                    shape(found, expected())
                })?;
                let list: Vec<&RawValue> = serde_json::from_str(list.get())
                    .map_err(|_| shape(format!("{key:?} that is not a list"), expected()))?;
                list.into_iter().try_for_each(&mut each)?;
            }
            Records::Values if !array => {
                let object: BTreeMap<Cow<'_, str>, &RawValue> =
                    serde_json::from_str(document.get()).map_err(invalid)?;
                object.into_values().try_for_each(&mut each)?;
            }
            Records::Objects | Records::Under(_) | Records::UnderOrEach { .. } | Records::Values => {
                let list: Vec<&RawValue> = serde_json::from_str(document.get()).map_err(invalid)?;
                list.into_iter().try_for_each(&mut each)?;
            }
        }
    }
    Ok(())
}

/// Returns the line and column of a fragment of a document; both count from 1.
fn place(text: &[u8], raw: &RawValue) -> (u64, u64) {
    let at = (raw.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
    let before = &text[..at];
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |i| i + 1);
    (memchr::memchr_iter(b'\n', before).count() as u64 + 1, (at - line_start) as u64 + 1)
}

/// Returns a number in billionths that is known: a number that is not negative, its text, or Slurm's
/// `{set, infinite, number}`.
pub(super) fn number(value: &Value) -> Option<Nano> {
    match value {
        Value::Number(n) => decimal(n.to_string().as_bytes()).map(|d| d.nano),
        Value::String(text) => decimal(text.trim().as_bytes()).map(|d| d.nano),
        Value::Object(fields) => {
            let is = |key: &str| fields.get(key).and_then(Value::as_bool);
            if is("set") == Some(false) || is("infinite") == Some(true) {
                return None;
            }
            fields.get("number").and_then(number)
        }
        _ => None,
    }
}

/// Returns a time that is known: seconds since 1970 other than 0, or a date.
///
/// # Errors
/// Returns an error for a text that is neither.
pub(crate) fn time(value: &Value, what: &'static str) -> Result<Option<Time>, Box<FieldError>> {
    if let Value::String(text) = value
        && decimal(text.trim().as_bytes()).is_none()
    {
        let text = text.trim().as_bytes();
        if is_unknown(text) {
            return Ok(None);
        }
        let found = date(text).map(Some);
        return found.ok_or_else(|| FieldError::new(0, text, format!("{what}, seconds since 1970 or a date")));
    }
    Ok(number(value).filter(|n| *n > 0).and_then(Time::checked_from_nanos))
}

/// Returns a name: a text that is not empty, or the digits of a number.
pub(crate) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.trim()).filter(|t| !t.is_empty()).map(Cow::Borrowed),
        Value::Number(n) => Some(Cow::Owned(n.to_string())),
        _ => None,
    }
}
