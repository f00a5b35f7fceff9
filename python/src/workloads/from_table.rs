//! A table of tasks from another library becomes a workload.
//!
//! The columns are those of tables in files ([`CsvColumns`]), and their rows are read by the same reader ([`TaskTable`]): here
//! values get the form that a file has of them, and what has another type is refused.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::{DataType, Schema, TimeUnit};
use evenhand_model::{Nano, Time, Workload};
use evenhand_workload::import::{AttributeKind, CsvColumns, TaskTable};

/// What the names of times and spans may end in, with the nanoseconds of one step of their numbers.
const SUFFIXES: [(&str, f64); 3] = [("", 1e9), ("_s", 1e9), ("_ns", 1.0)];
/// What follows the name of a resource in that of what tasks requested of it.
const REQUESTED: &str = "_requested";

const A_TIME: &str = "a time: a timestamp, or seconds from 0 on (nanoseconds, if the name ends in _ns)";
const A_SPAN: &str = "a time span: a duration, or seconds from 0 on (nanoseconds, if the name ends in _ns)";
const AN_AMOUNT: &str = "an amount: a number of at least 0 with at most nine decimals";
const A_COUNT: &str = "a count: a whole number from 1 to 4294967294";
const A_NAME: &str = "a name: a text or a whole number";

/// Builds the workload of a table of tasks.
///
/// # Errors
/// Returns a sentence that names column, row, what was found and what is expected.
pub(super) fn workload_of(
    reader: Box<dyn RecordBatchReader + Send>,
    units: &[(String, String)],
) -> Result<Workload, String> {
    let layout = Layout::of(&reader.schema(), units)?;
    let mut table = TaskTable::new(&layout.definition, &layout.header())
        .map_err(|column| format!("the table has no column {column:?}"))?;
    let mut first_row = 0;
    for batch in reader {
        let batch = batch.map_err(|error| format!("the table cannot be read: {error}"))?;
        layout.append(&batch, first_row, &mut table)?;
        first_row += batch.num_rows();
    }
    table.finish().map_err(|error| format!("the table: {error}"))
}

/// How the values of a column are read.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// With the nanoseconds of one step of plain numbers.
    Time(f64),
    Span(f64),
    Count,
    Amount,
    Text,
}

/// A column that is read.
struct Reading {
    index: usize,
    name: String,
    kind: Kind,
    /// Whether its values may be null.
    may_be_null: bool,
}

/// Which column has which field of a task.
struct Layout {
    readings: Vec<Reading>,
    definition: CsvColumns,
}

impl Layout {
    fn of(schema: &Schema, units: &[(String, String)]) -> Result<Layout, String> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if let Some((_, twice)) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(format!("the table has two columns {twice:?}, expected each once"));
        }
        // What each column means, if it is no resource.
        let mut found: Vec<(&str, usize, Kind)> = Vec::new();
        for (meaning, kind) in CsvColumns::attributes() {
            found.extend(located(&names, meaning, kind)?.map(|(index, kind)| (meaning, index, kind)));
        }
        let of = |meaning: &str| found.iter().find(|(known, ..)| *known == meaning).map(|(_, index, _)| *index);
        let missing = |column: &str, expected: &str| {
            format!("the table has no column {column:?}, expected {expected}; its columns: {}", names.join(", "))
        };
        if of("submit").is_none() {
            return Err(missing("submit", "submission times (submit, submit_s or submit_ns)"));
        }
        let (duration, starts) = (of("duration"), of("start").or(of("wait")));
        if duration.is_none() && (starts.is_none() || of("end").is_none()) {
            return Err(missing("duration", "run times (duration, duration_s or duration_ns), or start and end"));
        }
        if let (Some(_), Some(end)) = (duration, of("end")) {
            return Err(format!("the table has run times and a column {:?}, expected one of them", names[end]));
        }
        if of("user").is_none() {
            return Err(missing("user", "names of users"));
        }
        check_zones(schema, ["submit", "start", "end", "eligible"].map(of))?;
        let is_resource =
            |i: usize| !found.iter().any(|(_, index, _)| *index == i) && !names[i].starts_with("__index_level_");
        let others: Vec<usize> = (0..names.len()).filter(|i| is_resource(*i)).collect();
        let requested = |i: usize| names[i].strip_suffix(REQUESTED);
        if !others.iter().any(|i| requested(*i).is_none()) {
            return Err(missing("cpu", "at least one column of numbers, named by its resource"));
        }
        let is_named = |name: &str| others.iter().any(|i| names[*i] == name && requested(*i).is_none());
        if let Some((name, _)) = units.iter().find(|(name, _)| !is_named(name)) {
            return Err(format!("units: the table has no resource {name:?}"));
        }
        let unit = |name: &str| units.iter().find(|(n, _)| n == name).map_or("", |(_, unit)| unit.as_str());
        // Without run times these make them up.
        let makes_up_run_time =
            |meaning: &str| duration.is_none() && (meaning == "end" || meaning == "start" && of("wait").is_none());
        let mut meanings: Vec<(&str, &str, &str)> = Vec::new();
        let mut readings = Vec::new();
        for (meaning, index, kind) in &found {
            let is_needed = ["submit", "duration", "user", "count"].contains(meaning) || makes_up_run_time(meaning);
            meanings.push((meaning, "", names[*index]));
            readings.push(Reading { index: *index, name: names[*index].into(), kind: *kind, may_be_null: !is_needed });
        }
        for index in others {
            meanings.push((names[index], unit(names[index]), names[index]));
            let may_be_null = requested(index).is_some();
            readings.push(Reading { index, name: names[index].into(), kind: Kind::Amount, may_be_null });
        }
        let definition = CsvColumns::by_meaning(meanings).map_err(|error| format!("the table: {error}"))?;
        Ok(Layout { readings, definition })
    }

    /// Returns the names of the columns that are read, in the order in which their values are.
    fn header(&self) -> Vec<String> {
        self.readings.iter().map(|reading| reading.name.clone()).collect()
    }

    fn append(&self, batch: &RecordBatch, first_row: usize, table: &mut TaskTable<'_>) -> Result<(), String> {
        let column = |reading: &Reading| Column::of(batch, reading.index, first_row);
        let values = self.readings.iter().map(|reading| column(reading).values(reading.kind, reading.may_be_null));
        let values = values.collect::<Result<Vec<Values>, String>>()?;
        for row in 0..batch.num_rows() {
            if let Err(error) = table.push(values.iter().map(|values| values.text(row))) {
                return Err(match error.column.and_then(|at| self.readings.get(at)) {
                    Some(reading) => column(reading).invalid(row, &error.found, &error.expected),
                    None => format!("row {}: found {}, expected {}", first_row + row, error.found, error.expected),
                });
            }
        }
        Ok(())
    }
}

/// Returns the column that has an attribute of tasks, and how its values are read.
fn located(names: &[&str], meaning: &str, kind: AttributeKind) -> Result<Option<(usize, Kind)>, String> {
    let position = |name: &str| names.iter().position(|n| *n == name);
    let kind: fn(f64) -> Kind = match kind {
        AttributeKind::Time => Kind::Time,
        AttributeKind::Span => Kind::Span,
        AttributeKind::Count => return Ok(position(meaning).map(|at| (at, Kind::Count))),
        AttributeKind::Amount => return Ok(position(meaning).map(|at| (at, Kind::Amount))),
        AttributeKind::Text => return Ok(position(meaning).map(|at| (at, Kind::Text))),
    };
    let spellings = SUFFIXES.map(|(suffix, step)| Some((position(&format!("{meaning}{suffix}"))?, step)));
    let mut found = spellings.into_iter().flatten();
    match (found.next(), found.next()) {
        (Some((a, _)), Some((b, _))) => {
            Err(format!("the table has columns {:?} and {:?}, expected one of them", names[a], names[b]))
        }
        (first, _) => Ok(first.map(|(at, step)| (at, kind(step)))),
    }
}

/// The values of a column.
enum Values {
    /// Times or spans in nanoseconds.
    Nanos(Vec<Option<u64>>),
    Counts(Vec<Option<u32>>),
    /// In billionths.
    Amounts(Vec<Option<Nano>>),
    Texts(Texts),
}

impl Values {
    /// Returns a value as a table of text has it; nothing if it is unknown.
    fn text(&self, row: usize) -> Cow<'_, [u8]> {
        let billionths = |nano: Nano| format!("{}.{:09}", nano / 1_000_000_000, nano % 1_000_000_000);
        let number = match self {
            Values::Nanos(times) => times[row].map(|nanos| billionths(nanos.into())),
            Values::Counts(counts) => counts[row].map(|count| count.to_string()),
            Values::Amounts(amounts) => amounts[row].map(billionths),
            Values::Texts(texts) => return Cow::Borrowed(texts.get(row).unwrap_or_default().as_bytes()),
        };
        Cow::Owned(number.unwrap_or_default().into_bytes())
    }
}

/// Refuses timestamps of which some have a time zone and some have none: which instants they mean is not known.
fn check_zones(schema: &Schema, columns: [Option<usize>; 4]) -> Result<(), String> {
    let mut with: Option<&str> = None;
    let mut without: Option<&str> = None;
    let mut number: Option<&str> = None;
    for column in columns.into_iter().flatten() {
        let field = schema.field(column);
        match field.data_type() {
            DataType::Timestamp(_, Some(_)) => with = Some(field.name()),
            DataType::Timestamp(_, None) => without = Some(field.name()),
            _ => number = Some(field.name()),
        }
    }
    if let (Some(aware), Some(naive)) = (with, without) {
        return Err(format!(
            "column {aware:?} has a time zone and column {naive:?} has none, expected both with a time zone or both without"
        ));
    }
    if let (Some(time), Some(number)) = (with.or(without), number) {
        return Err(format!(
            "column {time:?} holds timestamps and column {number:?} numbers, expected times of one kind in both"
        ));
    }
    Ok(())
}

/// One column of a record batch.
struct Column<'a> {
    name: &'a str,
    array: &'a ArrayRef,
    first_row: usize,
}

/// Texts of a column, whatever their encoding was.
struct Texts(ArrayRef);

impl Texts {
    fn get(&self, row: usize) -> Option<&str> {
        let texts = self.0.as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row))
    }
}

impl<'a> Column<'a> {
    fn of(batch: &'a RecordBatch, index: usize, first_row: usize) -> Column<'a> {
        let array = batch.column(index);
        Column { name: batch.schema_ref().field(index).name(), array, first_row }
    }

    /// Returns its values.
    ///
    /// # Errors
    /// Returns a sentence about the first that is invalid, or null where none may be.
    fn values(&self, kind: Kind, may_be_null: bool) -> Result<Values, String> {
        let (values, expected) = match kind {
            Kind::Time(step) => (Values::Nanos(self.nanos(step, A_TIME)?), A_TIME),
            Kind::Span(step) => (Values::Nanos(self.nanos(step, A_SPAN)?), A_SPAN),
            Kind::Count => (Values::Counts(self.counts(A_COUNT)?), A_COUNT),
            Kind::Amount => (Values::Amounts(self.amounts(may_be_null)?), AN_AMOUNT),
            Kind::Text => (Values::Texts(self.texts()?), A_NAME),
        };
        let is_null = |row: usize| match &values {
            Values::Nanos(values) => values[row].is_none(),
            Values::Counts(values) => values[row].is_none(),
            Values::Amounts(values) => values[row].is_none(),
            Values::Texts(values) => values.get(row).is_none(),
        };
        match (0..self.array.len()).find(|row| !may_be_null && is_null(*row)) {
            Some(row) => Err(self.invalid(row, "null", expected)),
            None => Ok(values),
        }
    }

    fn invalid(&self, row: usize, found: &str, expected: &str) -> String {
        format!("column {:?}, row {}: found {found}, expected {expected}", self.name, self.first_row + row)
    }

    fn wrong_type(&self, expected: &str) -> String {
        format!("column {:?} holds {}, expected {expected}", self.name, self.array.data_type())
    }

    fn cast(&self, to: &DataType, expected: &str) -> Result<ArrayRef, String> {
        cast(self.array, to).map_err(|error| format!("column {:?}: {error}; expected {expected}", self.name))
    }

    /// Returns times in nanoseconds; `step` is that of plain numbers. Null, NaT and NaN are `None`.
    fn nanos(&self, step: f64, expected: &str) -> Result<Vec<Option<u64>>, String> {
        let is_span = expected == A_SPAN;
        let value: Box<dyn Fn(usize) -> Option<i128>> = match self.array.data_type() {
            DataType::Timestamp(unit, zone) if !is_span => {
                let plain = self.cast(&DataType::Timestamp(*unit, zone.clone()), expected)?;
                let whole = self.reinterpreted(&plain, expected)?;
                let factor = nanos_of(*unit);
                Box::new(move |row| integer(&whole, row).map(|v| v * factor))
            }
            DataType::Duration(unit) if is_span => {
                let whole = self.reinterpreted(self.array, expected)?;
                let factor = nanos_of(*unit);
                Box::new(move |row| integer(&whole, row).map(|v| v * factor))
            }
            kind if kind.is_integer() => {
                let whole = self.cast(&DataType::Int64, expected)?;
                Box::new(move |row| integer(&whole, row).map(|v| v * step as i128))
            }
            DataType::Float32 | DataType::Float64 => {
                let floats = self.cast(&DataType::Float64, expected)?;
                Box::new(move |row| {
                    let value = float(&floats, row).filter(|v| !v.is_nan())? * step;
                    // Outside of what a time can be, so that it is refused below.
                    Some(if (0.0..9e18).contains(&value) { value.round() as i128 } else { -1 })
                })
            }
            DataType::Null => Box::new(|_| None),
            _ => return Err(self.wrong_type(expected)),
        };
        let each = (0..self.array.len()).map(|row| match value(row) {
            None => Ok(None),
            Some(ns) if (0..=i128::from(Time::MAX.nanos())).contains(&ns) => Ok(Some(ns as u64)),
            Some(_) => Err(self.invalid(row, &self.text(row), expected)),
        });
        each.collect()
    }

    /// Returns timestamps or durations as their integers.
    fn reinterpreted(&self, array: &ArrayRef, expected: &str) -> Result<ArrayRef, String> {
        cast(array, &DataType::Int64).map_err(|error| format!("column {:?}: {error}; expected {expected}", self.name))
    }

    fn texts(&self) -> Result<Texts, String> {
        let kind = match self.array.data_type() {
            DataType::Dictionary(_, values) => values,
            kind => kind,
        };
        match kind {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
                Ok(Texts(self.cast(&DataType::Utf8, A_NAME)?))
            }
            // Numbers of users, as in anonymised logs: in digits.
            kind if kind.is_integer() => Ok(Texts(self.cast(&DataType::Utf8, A_NAME)?)),
            _ => Err(self.wrong_type(A_NAME)),
        }
    }

    fn counts(&self, expected: &str) -> Result<Vec<Option<u32>>, String> {
        if !self.array.data_type().is_numeric() {
            return Err(self.wrong_type(expected));
        }
        let floats = self.cast(&DataType::Float64, expected)?;
        let each = (0..self.array.len()).map(|row| match float(&floats, row) {
            None => Ok(None),
            // As pandas has whole numbers with gaps.
            Some(n) if n.is_nan() => Ok(None),
            // The largest number stands for unknown in the columns of a workload.
            Some(n) if (1.0..f64::from(u32::MAX)).contains(&n) && n.fract() == 0.0 => Ok(Some(n as u32)),
            Some(_) => Err(self.invalid(row, &self.text(row), expected)),
        });
        each.collect()
    }

    /// Returns amounts in billionths; null and NaN are `None` if they may be, and else an error.
    fn amounts(&self, may_be_null: bool) -> Result<Vec<Option<Nano>>, String> {
        let value: Box<dyn Fn(usize) -> Option<Nano>> = match self.array.data_type() {
            DataType::UInt64 | DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => {
                let decimals = self.cast(&DataType::Decimal128(38, 9), AN_AMOUNT)?;
                // A cast rounds; what it does not keep is no amount.
                let kept = self.cast_back(&decimals)?;
                Box::new(move |row| {
                    let array = decimals.as_primitive::<Decimal128Type>();
                    let is_exact = array.is_valid(row) && kept[row];
                    is_exact.then(|| u128::try_from(array.value(row)).ok()).flatten()
                })
            }
            kind if kind.is_integer() => {
                let whole = self.cast(&DataType::Int64, AN_AMOUNT)?;
                Box::new(move |row| u128::try_from(integer(&whole, row)?).ok()?.checked_mul(1_000_000_000))
            }
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                let floats = self.cast(&DataType::Float64, AN_AMOUNT)?;
                Box::new(move |row| billionths(float(&floats, row)?))
            }
            DataType::Null if may_be_null => Box::new(|_| None),
            _ => return Err(self.wrong_type(AN_AMOUNT)),
        };
        let each = (0..self.array.len()).map(|row| match value(row) {
            Some(amount) => Ok(Some(amount)),
            None if may_be_null && self.is_unknown(row) => Ok(None),
            None => Err(self.invalid(row, &self.text(row), AN_AMOUNT)),
        });
        each.collect()
    }

    /// Whether a value is null or NaN.
    fn is_unknown(&self, row: usize) -> bool {
        let is_float = matches!(self.array.data_type(), DataType::Float16 | DataType::Float32 | DataType::Float64);
        let is_nan = || {
            cast(&self.array.slice(row, 1), &DataType::Float64).is_ok_and(|one| float(&one, 0).is_some_and(f64::is_nan))
        };
        self.array.is_null(row) || is_float && is_nan()
    }

    /// Returns for each row whether casting back gives the same value.
    fn cast_back(&self, array: &ArrayRef) -> Result<Vec<bool>, String> {
        let back = cast(array, self.array.data_type()).map_err(|error| format!("column {:?}: {error}", self.name))?;
        Ok((0..back.len()).map(|row| back.slice(row, 1).to_data() == self.array.slice(row, 1).to_data()).collect())
    }

    /// Returns a value as text, for errors.
    fn text(&self, row: usize) -> String {
        if self.array.is_null(row) {
            return "null".into();
        }
        let text = cast(&self.array.slice(row, 1), &DataType::Utf8);
        text.map_or_else(|_| "a value that cannot be shown".into(), |text| text.as_string::<i32>().value(0).to_string())
    }
}

fn nanos_of(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

fn integer(array: &ArrayRef, row: usize) -> Option<i128> {
    let array = array.as_primitive::<Int64Type>();
    array.is_valid(row).then(|| array.value(row).into())
}

fn float(array: &ArrayRef, row: usize) -> Option<f64> {
    let array = array.as_primitive::<Float64Type>();
    array.is_valid(row).then(|| array.value(row))
}

/// Returns the billionths whose nearest `f64` is `v`, if there are any.
fn billionths(v: f64) -> Option<Nano> {
    if !(0.0..9.2e18).contains(&v) {
        return None;
    }
    if v.fract() == 0.0 {
        return Some(v as u128 * 1_000_000_000);
    }
    let nano = (v * 1e9).round();
    // Above 2^53 the check below is not conclusive.
    (nano < 9e15 && nano / 1e9 == v).then_some(nano as u128)
}
