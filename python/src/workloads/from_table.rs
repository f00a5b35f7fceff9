//! A table of tasks from another library becomes a workload.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_cast::cast;
use arrow_schema::{DataType, Schema, TimeUnit};
use evenhand_model::{Nano, Resource, Span, Task, Time, Workload, WorkloadBuilder};

/// The fields of a task that are not resources. Times have also the suffixes `_ns` (whole nanoseconds) and `_s`.
const TIMES: [&str; 5] = ["submit", "start", "end", "duration", "requested"];
const TEXTS: [&str; 3] = ["user", "account", "queue"];
const COUNT: &str = "count";
const NODES: &str = "nodes";

const A_TIME: &str = "a time: a timestamp, or seconds from 0 on (nanoseconds, if the name ends in _ns)";
const A_SPAN: &str = "a time span: a duration, or seconds from 0 on (nanoseconds, if the name ends in _ns)";
const AN_AMOUNT: &str = "an amount: a number of at least 0 with at most nine decimals";
const A_COUNT: &str = "a count: a whole number from 1 to 4294967294";
const A_NUMBER_OF_NODES: &str = "a number of nodes: a whole number from 1 to 4294967294, or null";
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
    let mut builder = WorkloadBuilder::new(layout.resources.iter().map(|(_, resource)| resource.clone()));
    let mut first_row = 0;
    for batch in reader {
        let batch = batch.map_err(|error| format!("the table cannot be read: {error}"))?;
        layout.append(&batch, first_row, &mut builder)?;
        first_row += batch.num_rows();
    }
    builder.finish().map_err(|error| format!("the table: {error}"))
}

/// Which column has which field of a task.
struct Layout {
    submit: TimeColumn,
    start: Option<TimeColumn>,
    end: Option<TimeColumn>,
    duration: Option<TimeColumn>,
    requested: Option<TimeColumn>,
    user: usize,
    account: Option<usize>,
    queue: Option<usize>,
    count: Option<usize>,
    nodes: Option<usize>,
    resources: Vec<(usize, Resource)>,
}

/// A column of times, and the nanoseconds of one step of its numbers.
#[derive(Clone, Copy)]
struct TimeColumn {
    index: usize,
    step: f64,
}

impl Layout {
    fn of(schema: &Schema, units: &[(String, String)]) -> Result<Layout, String> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if let Some((_, twice)) = names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
            return Err(format!("the table has two columns {twice:?}, expected each once"));
        }
        let position = |name: &str| names.iter().position(|n| *n == name);
        let time = |field: &str| -> Result<Option<TimeColumn>, String> {
            let spellings = [(field.to_string(), 1e9), (format!("{field}_s"), 1e9), (format!("{field}_ns"), 1.0)];
            let found: Vec<(usize, f64)> =
                spellings.iter().filter_map(|(name, step)| Some((position(name)?, *step))).collect();
            match found.as_slice() {
                [] => Ok(None),
                [(index, step)] => Ok(Some(TimeColumn { index: *index, step: *step })),
                [(a, _), (b, _), ..] => {
                    Err(format!("the table has columns {:?} and {:?}, expected one of them", names[*a], names[*b]))
                }
            }
        };
        let [submit, start, end, duration, requested] = TIMES.map(time);
        let (submit, start, end, duration, requested) = (submit?, start?, end?, duration?, requested?);
        let missing = |column: &str, expected: &str| {
            format!("the table has no column {column:?}, expected {expected}; its columns: {}", names.join(", "))
        };
        let submit = submit.ok_or_else(|| missing("submit", "submission times (submit, submit_s or submit_ns)"))?;
        if duration.is_none() && (start.is_none() || end.is_none()) {
            return Err(missing("duration", "run times (duration, duration_s or duration_ns), or start and end"));
        }
        if let (Some(_), Some(end)) = (duration, end) {
            return Err(format!("the table has run times and a column {:?}, expected one of them", names[end.index]));
        }
        let user = position("user").ok_or_else(|| missing("user", "names of users"))?;
        check_zones(schema, [Some(submit), start, end])?;
        let taken: Vec<usize> =
            [Some(submit), start, end, duration, requested].into_iter().flatten().map(|t| t.index).collect();
        let is_resource = |i: &usize| {
            let name = names[*i];
            !taken.contains(i)
                && !TEXTS.contains(&name)
                && name != COUNT
                && name != NODES
                && !name.starts_with("__index_level_")
        };
        let unit = |name: &str| units.iter().find(|(n, _)| n == name).map_or("", |(_, unit)| unit.as_str());
        let resources: Vec<(usize, Resource)> =
            (0..names.len()).filter(is_resource).map(|i| (i, Resource::new(names[i], unit(names[i])))).collect();
        if resources.is_empty() {
            return Err(missing("cpu", "at least one column of numbers, named by its resource"));
        }
        if let Some((name, _)) = units.iter().find(|(name, _)| !resources.iter().any(|(_, r)| r.name == *name)) {
            return Err(format!("units: the table has no resource {name:?}"));
        }
        let (account, queue) = (position("account"), position("queue"));
        let (count, nodes) = (position(COUNT), position(NODES));
        Ok(Layout { submit, start, end, duration, requested, user, account, queue, count, nodes, resources })
    }

    fn append(&self, batch: &RecordBatch, first_row: usize, builder: &mut WorkloadBuilder) -> Result<(), String> {
        let column = |index: usize| Column::of(batch, index, first_row);
        let times =
            |time: Option<TimeColumn>, expected| time.map(|t| column(t.index).nanos(t.step, expected)).transpose();
        let submit = column(self.submit.index).nanos(self.submit.step, A_TIME)?;
        let (start, end) = (times(self.start, A_TIME)?, times(self.end, A_TIME)?);
        let (duration, requested) = (times(self.duration, A_SPAN)?, times(self.requested, A_SPAN)?);
        let user = column(self.user).texts()?;
        let optional = |index: Option<usize>| index.map(|index| column(index).texts()).transpose();
        let (account, queue) = (optional(self.account)?, optional(self.queue)?);
        let counts = |index: Option<usize>, expected| index.map(|index| column(index).counts(expected)).transpose();
        let (count, nodes) = (counts(self.count, A_COUNT)?, counts(self.nodes, A_NUMBER_OF_NODES)?);
        let amounts =
            self.resources.iter().map(|(index, _)| column(*index).amounts()).collect::<Result<Vec<_>, _>>()?;
        let mut vector: Vec<Nano> = vec![0; amounts.len()];
        for row in 0..batch.num_rows() {
            let at = |times: &Option<Vec<Option<u64>>>| times.as_ref().and_then(|times| times[row]);
            let needed = |value: Option<u64>, index: usize, expected: &str| {
                value.ok_or_else(|| column(index).invalid(row, "null", expected))
            };
            let duration = match (self.duration, self.start, self.end) {
                (Some(column), ..) => needed(at(&duration), column.index, A_SPAN)?,
                (None, Some(begin), Some(finish)) => {
                    let (begun, ended) =
                        (needed(at(&start), begin.index, A_TIME)?, needed(at(&end), finish.index, A_TIME)?);
                    ended.checked_sub(begun).ok_or_else(|| {
                        column(finish.index).invalid(row, "an end before the start", "an end at or after the start")
                    })?
                }
                (None, ..) => 0,
            };
            let count = match (&count, self.count) {
                (Some(counts), Some(index)) => {
                    counts[row].ok_or_else(|| column(index).invalid(row, "null", A_COUNT))?
                }
                _ => 1,
            };
            for (value, amounts) in vector.iter_mut().zip(&amounts) {
                *value = amounts[row];
            }
            builder.push(&Task {
                submit: Time::from_nanos(needed(submit[row], self.submit.index, A_TIME)?),
                start: at(&start).map(Time::from_nanos),
                duration: Span::from_nanos(duration),
                requested: at(&requested).map(Span::from_nanos),
                user: user.get(row).ok_or_else(|| column(self.user).invalid(row, "null", A_NAME))?,
                account: account.as_ref().and_then(|names| names.get(row)),
                queue: queue.as_ref().and_then(|names| names.get(row)),
                amounts: &vector,
                count,
                nodes: nodes.as_ref().and_then(|nodes| nodes[row]),
                ..Task::default()
            });
        }
        Ok(())
    }
}

/// Refuses timestamps of which some have a time zone and some have none: which instants they mean is not known.
fn check_zones(schema: &Schema, columns: [Option<TimeColumn>; 3]) -> Result<(), String> {
    let mut with: Option<&str> = None;
    let mut without: Option<&str> = None;
    let mut number: Option<&str> = None;
    for column in columns.into_iter().flatten() {
        let field = schema.field(column.index);
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
            // The largest number stands for unknown in the columns of a workload.
            Some(n) if (1.0..f64::from(u32::MAX)).contains(&n) && n.fract() == 0.0 => Ok(Some(n as u32)),
            Some(_) => Err(self.invalid(row, &self.text(row), expected)),
        });
        each.collect()
    }

    /// Returns amounts in billionths.
    fn amounts(&self) -> Result<Vec<Nano>, String> {
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
            _ => return Err(self.wrong_type(AN_AMOUNT)),
        };
        let each =
            (0..self.array.len()).map(|row| value(row).ok_or_else(|| self.invalid(row, &self.text(row), AN_AMOUNT)));
        each.collect()
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
