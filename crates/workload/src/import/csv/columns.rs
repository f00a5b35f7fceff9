//! The definition of the columns of a CSV table.

use std::str::FromStr;

use evenhand_model::{Detail, Quantity, Resource};
use thiserror::Error;

use crate::import::parse_number::NANO;

/// Defines the meaning of the columns of a table with a header.
///
/// In `submit=created,start=started,end=finished,user=owner,cpu=cores,mem:GiB=ram*0.5`, the left side is an attribute
/// of a task and the right side the name of the column in the header. The attributes are `submit`, `start`, `end`,
/// `duration`, `wait`, `requested`, `user`, `account`, `queue`, `count`, `nodes` (how many nodes the task runs on),
/// `per_node` (how much of the first resource it holds on each), `eligible` (when it could first have started), `chunks`,
/// `requires`, `qos`, `machines` and `outcome` (the [details](Detail)), and `gpu_type` (`V100|A100`: the types of GPUs of which the
/// task's machines must have one, as `gpu:v100|gpu:a100` among what it `requires`); any other name is a resource, with its unit
/// after a colon. `cpu_requested` is how much of the resource `cpu` the task requested, where `cpu` is what it held. A column can be multiplied by numbers and by other columns (`gpu=num_gpu*gpu_milli*0.001`). Alternative
/// names have bars between them (`user=owner|login`), and a question mark marks a column that a table may lack
/// (`account=group?`).
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
    /// Columns of requested amounts, with the places of their resources.
    pub(super) requested: Vec<(usize, Column)>,
}

/// What follows the name of a resource in that of its requested amount, as in stored workloads.
const REQUESTED: &str = "_requested";

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
    Nodes,
    PerNode,
    Eligible,
    GpuType,
    Detail(Detail),
}

impl Field {
    pub(super) const ALL: [(&'static str, Field); 23] = [
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
        ("nodes", Field::Nodes),
        ("per_node", Field::PerNode),
        ("eligible", Field::Eligible),
        ("gpu_type", Field::GpuType),
        ("chunks", Field::Detail(Detail::Chunks)),
        ("requires", Field::Detail(Detail::Requires)),
        ("qos", Field::Detail(Detail::Qos)),
        ("machines", Field::Detail(Detail::Machines)),
        ("outcome", Field::Detail(Detail::Outcome)),
        ("reservation", Field::Detail(Detail::Reservation)),
        ("licences", Field::Detail(Detail::Licences)),
        ("array", Field::Detail(Detail::Array)),
        ("nice", Field::Detail(Detail::Nice)),
    ];

    fn is_text(self) -> bool {
        self.kind() == AttributeKind::Text
    }

    fn kind(self) -> AttributeKind {
        match self {
            Field::Submit | Field::Start | Field::End | Field::Eligible => AttributeKind::Time,
            Field::Duration | Field::Wait | Field::Requested => AttributeKind::Span,
            Field::Count | Field::Nodes => AttributeKind::Count,
            Field::PerNode => AttributeKind::Amount,
            Field::User | Field::Account | Field::Queue | Field::GpuType | Field::Detail(_) => AttributeKind::Text,
        }
    }
}

/// How the values of an attribute of tasks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// An instant.
    Time,
    /// A length of time.
    Span,
    /// A whole number, at least 1.
    Count,
    /// An amount of a resource.
    Amount,
    /// A text.
    Text,
}

/// A column by its name, and what its numbers are multiplied by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// The alternative names; the first that the table has counts.
    pub(super) names: Vec<String>,
    /// The names of the columns by which it is multiplied.
    pub(super) by: Vec<String>,
    /// The number by which it is multiplied, in billionths.
    pub(super) times: u128,
    /// Whether a table may lack it.
    pub(super) optional: bool,
}

impl Column {
    fn parse(text: &str) -> Option<Result<Column, &'static str>> {
        let mut factors = text.split('*').map(str::trim);
        let name = factors.next()?;
        let (names, optional) = name.strip_suffix('?').map_or((name, false), |n| (n, true));
        let names: Vec<String> = names.split('|').map(|n| n.trim().to_string()).collect();
        if names.iter().any(String::is_empty) {
            return None;
        }
        let mut column = Column { names, by: Vec::new(), times: NANO, optional };
        for factor in factors {
            if !factor.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                if factor.is_empty() {
                    return None;
                }
                column.by.push(factor.to_string());
                continue;
            }
            let nano = Quantity::parse(factor).ok().and_then(|q| q.nano()).filter(|n| *n > 0);
            let product = nano.and_then(|n| column.times.checked_mul(n)).map(|n| n / NANO).filter(|n| *n > 0);
            match product {
                Some(times) => column.times = times,
                None => return Some(Err("a number above 0 with up to nine decimals after *")),
            }
        }
        Some(Ok(column))
    }

    /// Returns the name for messages.
    pub(super) fn name(&self) -> String {
        self.names.join(" or ")
    }
}

/// An error in the definition of columns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {found:?}, expected {expected}")]
pub struct CsvColumnsError {
    found: String,
    expected: &'static str,
}

impl CsvColumnsError {
    fn new(found: &str, expected: &'static str) -> CsvColumnsError {
        CsvColumnsError { found: found.to_string(), expected }
    }
}

impl CsvColumns {
    /// Returns the resources, in the order of the definition.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.resources.iter().map(|(resource, _)| resource)
    }

    /// Returns whether amounts that tasks requested are among the columns, beside those that they held.
    pub fn has_requested_amounts(&self) -> bool {
        !self.requested.is_empty()
    }

    fn all(&self) -> impl Iterator<Item = &Column> {
        let resources = self.resources.iter().map(|(_, c)| c).chain(self.requested.iter().map(|(_, c)| c));
        self.fields.iter().map(|(_, c)| c).chain(resources)
    }

    /// Returns the names of all columns, alternatives too.
    pub(super) fn all_names(&self) -> impl Iterator<Item = &str> {
        self.all().flat_map(|c| c.names.iter().chain(&c.by)).map(String::as_str)
    }

    /// Returns the columns that a table must have.
    pub(super) fn required(&self) -> impl Iterator<Item = &Column> {
        self.all().filter(|c| !c.optional)
    }

    /// Defines the columns of a table in memory: each that has the name of an attribute, of which `submit` stands for a task's
    /// submission and so on; any other name is a resource, in its unit, or with `_requested` what is requested of a resource. Each
    /// column is given by what it means, its unit, and its name in the table.
    ///
    /// # Errors
    /// Returns an error if an attribute is there twice, or if the submission, the length or every resource is missing.
    pub fn by_meaning<'n>(
        columns: impl IntoIterator<Item = (&'n str, &'n str, &'n str)>,
    ) -> Result<CsvColumns, CsvColumnsError> {
        let parts = columns.into_iter().map(|(meaning, unit, name)| {
            let column = Column { names: vec![name.to_string()], by: Vec::new(), times: NANO, optional: false };
            Ok((name, meaning, unit, column))
        });
        CsvColumns::of_parts(parts, "the table")
    }

    /// Returns the meanings that are no resources, each with how its values are read.
    pub fn attributes() -> impl Iterator<Item = (&'static str, AttributeKind)> {
        Field::ALL.iter().map(|(name, field)| (*name, field.kind()))
    }

    pub(super) fn of(&self, field: Field) -> Option<&Column> {
        self.fields.iter().find(|(f, _)| *f == field).map(|(_, column)| column)
    }
}

impl FromStr for CsvColumns {
    type Err = CsvColumnsError;

    fn from_str(text: &str) -> Result<CsvColumns, CsvColumnsError> {
        let parts = text.split(',').map(|part| {
            let shape = "NAME=COLUMN or NAME=COLUMN*NUMBER, such as cpu=cores";
            let (what, column) = part.split_once('=').ok_or_else(|| CsvColumnsError::new(part, shape))?;
            let (what, column) = (what.trim(), column.trim());
            if what.is_empty() {
                return Err(CsvColumnsError::new(part, shape));
            }
            let column = Column::parse(column).ok_or_else(|| CsvColumnsError::new(part, shape))?;
            let column = column.map_err(|expected| CsvColumnsError::new(part, expected))?;
            let is_attribute = Field::ALL.iter().any(|(known, _)| *known == what);
            let (what, unit) = if is_attribute { (what, "") } else { what.split_once(':').unwrap_or((what, "")) };
            Ok((part, what, unit, column))
        });
        CsvColumns::of_parts(parts, text)
    }
}

/// A column of a definition: its text, what it means, its unit, and where it is.
type Part<'t> = (&'t str, &'t str, &'t str, Column);

impl CsvColumns {
    fn of_parts<'t>(
        parts: impl Iterator<Item = Result<Part<'t>, CsvColumnsError>>,
        text: &str,
    ) -> Result<CsvColumns, CsvColumnsError> {
        let error = CsvColumnsError::new;
        let mut columns = CsvColumns { fields: Vec::new(), resources: Vec::new(), requested: Vec::new() };
        // The resources can come after what is requested of them.
        let mut requested: Vec<(&str, &str, &str, Column)> = Vec::new();
        for part in parts {
            let (part, name, unit, column) = part?;
            match Field::ALL.iter().find(|(known, _)| *known == name) {
                Some((_, field)) if columns.of(*field).is_some() => return Err(error(part, "each name once")),
                Some((_, field)) if field.is_text() && (column.times != NANO || !column.by.is_empty()) => {
                    return Err(error(part, "a column of names, which cannot be multiplied"));
                }
                Some((_, field)) => columns.fields.push((*field, column)),
                None => {
                    if let Some(of) = name.strip_suffix(REQUESTED) {
                        if requested.iter().any(|(_, other, ..)| *other == of) {
                            return Err(error(part, "each name once"));
                        }
                        requested.push((part, of, unit, column));
                        continue;
                    }
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
        for (part, of, unit, column) in requested {
            let Some(at) = columns.resources().position(|resource| resource.name == of) else {
                return Err(error(
                    part,
                    "the allocated amount beside the requested one, as cpu=COLUMN beside cpu_requested",
                ));
            };
            if !unit.is_empty() && unit != columns.resources[at].0.unit {
                return Err(error(
                    part,
                    "the unit of the allocated amount, or none; multiply the column if it has another",
                ));
            }
            columns.requested.push((at, column));
        }
        Ok(columns)
    }
}
