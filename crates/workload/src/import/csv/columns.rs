//! The definition of the columns of a CSV table.

use std::str::FromStr;

use evenhand_model::{Quantity, Resource};
use thiserror::Error;

use crate::import::parse_number::NANO;

/// Defines the meaning of the columns of a table with a header.
///
/// In `submit=created,start=started,end=finished,user=owner,cpu=cores,mem:GiB=ram*0.5`, the left side is an attribute
/// of a task and the right side the name of the column in the header. The attributes are `submit`, `start`, `end`,
/// `duration`, `wait`, `requested`, `user`, `account`, `queue` and `count`; any other name is a resource, with its unit
/// after a colon. A column can be multiplied by a number.
///
/// ```
/// use evenhand_workload::import::CsvColumns;
/// let columns: CsvColumns = "submit=at,duration=took,cpu=milli*0.001,gpu=gpus".parse().unwrap();
/// assert_eq!(columns.resources().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["cpu", "gpu"]);
/// assert!("submit=at,cpu=cores".parse::<CsvColumns>().is_err()); // no duration
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvColumns {
    pub(super) fields: Vec<(Field, Column)>,
    pub(super) resources: Vec<(Resource, Column)>,
}

/// The attributes of a task other than resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Submit,
    Start,
    End,
    Duration,
    Wait,
    Requested,
    User,
    Account,
    Queue,
    Count,
}

impl Field {
    pub(super) const ALL: [(&'static str, Field); 10] = [
        ("submit", Field::Submit),
        ("start", Field::Start),
        ("end", Field::End),
        ("duration", Field::Duration),
        ("wait", Field::Wait),
        ("requested", Field::Requested),
        ("user", Field::User),
        ("account", Field::Account),
        ("queue", Field::Queue),
        ("count", Field::Count),
    ];

    fn is_text(self) -> bool {
        matches!(self, Field::User | Field::Account | Field::Queue)
    }
}

/// The name of a column, and the factor of its numbers in billionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) times: u128,
}

/// An error in the definition of columns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {found:?}, expected {expected}")]
pub struct CsvColumnsError {
    found: String,
    expected: &'static str,
}

impl CsvColumns {
    /// Returns the resources, in the order of the definition.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources.iter().map(|(resource, _)| resource)
    }

    pub(super) fn of(&self, field: Field) -> Option<&Column> {
        self.fields.iter().find(|(f, _)| *f == field).map(|(_, column)| column)
    }
}

impl FromStr for CsvColumns {
    type Err = CsvColumnsError;

    fn from_str(text: &str) -> Result<CsvColumns, CsvColumnsError> {
        let error = |found: &str, expected| CsvColumnsError { found: found.to_string(), expected };
        let mut columns = CsvColumns { fields: Vec::new(), resources: Vec::new() };
        for part in text.split(',') {
            let shape = "NAME=COLUMN or NAME=COLUMN*NUMBER, such as cpu=cores";
            let (what, column) = part.split_once('=').ok_or_else(|| error(part, shape))?;
            let (what, column) = (what.trim(), column.trim());
            let (name, times) = match column.rsplit_once('*') {
                None => (column, NANO),
                Some((name, times)) => {
                    let nano = Quantity::parse(times).ok().and_then(|q| q.nano()).filter(|n| *n > 0);
                    (name.trim(), nano.ok_or_else(|| error(part, "a number above 0 with up to nine decimals after *"))?)
                }
            };
            if what.is_empty() || name.is_empty() {
                return Err(error(part, shape));
            }
            let column = Column { name: name.to_string(), times };
            match Field::ALL.iter().find(|(known, _)| *known == what) {
                Some((_, field)) if columns.of(*field).is_some() => return Err(error(part, "each name once")),
                Some((_, field)) if field.is_text() && times != NANO => {
                    return Err(error(part, "a column of names, which cannot be multiplied"));
                }
                Some((_, field)) => columns.fields.push((*field, column)),
                None => {
                    let (name, unit) = what.split_once(':').unwrap_or((what, ""));
                    if columns.resources().any(|r| r.name == name) {
                        return Err(error(part, "each name once"));
                    }
                    columns.resources.push((Resource::new(name, unit), column));
                }
            }
        }
        let has = |field: Field| columns.of(field).is_some();
        let lengths = has(Field::Duration) || (has(Field::End) && (has(Field::Start) || has(Field::Wait)));
        if !has(Field::Submit) {
            return Err(error(text, "submit=COLUMN among them"));
        }
        if !lengths {
            return Err(error(text, "duration=COLUMN, or end=COLUMN with start=COLUMN or wait=COLUMN, among them"));
        }
        if columns.resources.is_empty() {
            return Err(error(text, "a resource among them, such as cpu=COLUMN"));
        }
        Ok(columns)
    }
}
