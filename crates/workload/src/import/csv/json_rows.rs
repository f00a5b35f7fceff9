//! Reads a table of JSON objects: a list, or one object after the other.

use std::borrow::Cow;

use serde_json::Value;

use super::RowReader;
use crate::byte_source::{Meter, Shard};
use crate::import::accounting::{Records, for_each_record};
use crate::import::error::FieldError;
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions};

struct State<'r, R> {
    reader: &'r mut R,
    names: Vec<String>,
    located: bool,
    missing: Option<(String, String)>,
}

impl<R: RowReader> AsMut<Tally> for State<'_, R> {
    fn as_mut(&mut self) -> &mut Tally {
        self.reader.tally()
    }
}

/// Reads the objects. Returns the name of a column that the first one lacks, and what that one has.
pub(super) fn read<R: RowReader>(
    shard: Shard,
    reader: &mut R,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<Option<(String, String)>, ImportError> {
    let names = reader.names();
    let mut state = State { reader, names, located: false, missing: None };
    for_each_record(shard, options, meter, Records::Objects, &mut state, row)?;
    Ok(state.missing)
}

fn row<R: RowReader>(object: &Value, state: &mut State<'_, R>) -> Result<(), Box<FieldError>> {
    if state.missing.is_some() {
        return Ok(());
    }
    // The first object decides which of the alternative names the table has.
    if !state.located {
        let present: Vec<String> =
            state.names.iter().map(|n| if get(object, n).is_some() { n.clone() } else { String::new() }).collect();
        match state.reader.locate(&present) {
            Ok(()) => state.located = true,
            Err(column) => {
                let keys: Vec<&str> = object.as_object().into_iter().flatten().map(|(k, _)| k.as_str()).collect();
                state.missing = Some((column, keys.join(",")));
                return Ok(());
            }
        }
    }
    let fields = state.names.iter().map(|name| (0, get(object, name).map_or(Cow::Borrowed(&b""[..]), text)));
    state.reader.row(fields.collect(), 0)
}

/// Returns the value under a name, which may be a path: `time.start`.
fn get<'v>(object: &'v Value, name: &str) -> Option<&'v Value> {
    object.get(name).or_else(|| name.split('.').try_fold(object, |value, key| value.get(key)))
}

fn text(value: &Value) -> Cow<'_, [u8]> {
    match value {
        Value::String(text) => Cow::Borrowed(text.as_bytes()),
        Value::Number(number) => Cow::Owned(number.to_string().into_bytes()),
        Value::Bool(flag) => Cow::Borrowed(if *flag { b"true" } else { b"false" }),
        Value::Null | Value::Array(_) | Value::Object(_) => Cow::Borrowed(b""),
    }
}

/// Returns the names in the first object of a text, as far as it goes: words in quotation marks before a colon.
pub(super) fn keys(head: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(head);
    let first = text.split('}').next().unwrap_or_default();
    let parts: Vec<&str> = first.split('"').collect();
    let is_key = |pair: &&[&str]| pair[1].trim_start().starts_with(':');
    parts.windows(2).skip(1).step_by(2).filter(is_key).map(|pair| pair[0].to_string()).collect()
}
