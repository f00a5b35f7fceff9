//! Reads any table with named columns: comma-separated values with a header (or with tabs, semicolons or bars), JSON
//! objects, and Parquet.
//!
//! [`CsvColumns`] defines the columns; those of public traces are in `presets`. A field of text can be in double quotes,
//! within which two quotation marks are one; a row does not continue on the next line. Times are seconds, or dates such
//! as `2023-08-31T12:29:47`, also with an offset; without one they are taken as UTC. Words such as `NA` mean unknown.

mod amounts;
mod columns;
mod json_rows;
#[cfg(feature = "formats")]
mod parquet_rows;
mod presets;
mod rows;
mod task_table;

use amounts::number;
pub use columns::{AttributeKind, CsvColumns, CsvColumnsError};
use columns::{Column, Field};
use evenhand_model::{Chunk, Detail, Details, Requirements, Span, Task, Time, WorkloadBuilder};
use presets::Notation;
pub(super) use presets::Preset;
pub(super) use rows::{Definition, Fields, RowReader, header_of, read_rows, same_width, split};
pub use task_table::{TaskTable, TaskTableError};

use super::error::{FieldError, up_to};
use super::lines::utf8;
use super::parse_number::{NANO, decimal};
use super::parse_time::{date, is_unknown};
use super::summary::{Tally, UNKNOWN_USER};
use super::{Format, ImportError, ImportOptions, Part, Processors, counted};
use crate::byte_source::{Meter, Shard};
use crate::outcome;
use crate::slurm_notation;

const ROUNDED: &str = "rounded";
const NO_USER: &str = "no user";
const NO_AMOUNT: &str = "no amount";
const NOT_ALLOCATED: &str = "no allocated amount";
const BY_REQUEST: &str = "as requested";
const NO_REQUEST: &str = "no requested amount";
const MALFORMED_OPTION: &str = "malformed optional field";

/// Returns the names of the columns of a Parquet file; `None` if it is damaged.
#[cfg(feature = "formats")]
pub(super) fn columns_of_parquet(file: &str, data: &[u8]) -> Result<Vec<String>, ImportError> {
    parquet_rows::column_names(file, data)
}

/// Reads a table whose columns `--csv-columns` defines.
pub(super) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let Some(columns) = &options.csv_columns else {
        return Err(ImportError::Shape {
            file: shard.name,
            found: "a table whose columns are not defined".into(),
            expected: "a definition of the columns".into(),
            remedy: "pass --csv-columns submit=COLUMN,duration=COLUMN,user=COLUMN,cpu=COLUMN,…".into(),
        });
    };
    let whose = Definition { whose: "--csv-columns names", remedy: "correct --csv-columns" };
    read_table(shard, columns, Notation::Plain, &whose, options, meter)
}

/// Reads a table of a public trace.
pub(super) fn read_preset(
    shard: Shard,
    preset: &Preset,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<Part, ImportError> {
    let columns = preset.columns();
    let whose = format!("--from {} reads", preset.format);
    let whose = Definition { whose: &whose, remedy: PUBLISHED };
    read_table(shard, &columns, preset.notation, &whose, options, meter)
}

/// Returns whether a format is of tables whose columns, as far as they are known, have requested amounts.
pub(super) fn has_requested_amounts(format: Format, options: &ImportOptions) -> bool {
    match Preset::of(format) {
        Some(preset) => preset.columns().has_requested_amounts(),
        None => format == Format::Csv && options.csv_columns.as_ref().is_some_and(CsvColumns::has_requested_amounts),
    }
}

/// The remedy for a table of a public trace that lacks a column.
pub(super) const PUBLISHED: &str = "pass the table as it was published, or define its columns with --csv-columns";

fn read_table(
    shard: Shard,
    columns: &CsvColumns,
    notation: Notation,
    whose: &Definition<'_>,
    options: &ImportOptions,
    meter: &Meter<'_>,
) -> Result<Part, ImportError> {
    let mut reader = TableReader {
        columns,
        notation,
        table: None,
        builder: options.builder(columns.resources().cloned()),
        tally: Tally::default(),
        lenient: options.lenient,
        processors: options.processors,
    };
    read_rows(shard, &mut reader, whose, options, meter)?;
    Ok(Part { builder: reader.builder, tally: reader.tally })
}

/// Converts rows to tasks.
struct TableReader<'a> {
    columns: &'a CsvColumns,
    notation: Notation,
    table: Option<Table>,
    builder: WorkloadBuilder,
    tally: Tally,
    lenient: bool,
    processors: Processors,
}

/// Where a column is, and what its numbers are multiplied by.
struct Place {
    at: usize,
    by: Vec<usize>,
    times: u128,
}

/// The columns of a table, located by its header.
struct Table {
    width: usize,
    fields: Vec<(Field, Place)>,
    /// The place of each resource; `None` for one that the table lacks and may lack.
    resources: Vec<Option<Place>>,
    /// The place of what is requested of each resource, if the table has it.
    requested: Vec<Option<Place>>,
}

impl Table {
    /// Locates the columns.
    ///
    /// # Errors
    /// Returns the name of the first column that is missing.
    fn new(columns: &CsvColumns, header: &[String]) -> Result<Table, String> {
        let position = |name: &String| header.iter().position(|found| found == name);
        let place = |column: &Column| -> Result<Option<Place>, String> {
            let by = column.by.iter().map(position).collect::<Option<Vec<usize>>>();
            match (column.names.iter().find_map(position), by) {
                (Some(at), Some(by)) => Ok(Some(Place { at, by, times: column.times })),
                _ if column.optional => Ok(None),
                (None, _) => Err(column.name()),
                (_, None) => Err(column.by.iter().find(|n| position(n).is_none()).cloned().unwrap_or_default()),
            }
        };
        let mut table = Table { width: header.len(), fields: Vec::new(), resources: Vec::new(), requested: Vec::new() };
        for (field, column) in &columns.fields {
            if let Some(place) = place(column)? {
                table.fields.push((*field, place));
            }
        }
        for (_, column) in &columns.resources {
            table.resources.push(place(column)?);
            table.requested.push(None);
        }
        for (at, column) in &columns.requested {
            table.requested[*at] = place(column)?;
        }
        Ok(table)
    }
}

/// A field that is known: its byte, its text, and the factor of its number in billionths.
type Found<'f> = (usize, &'f [u8], u128);

struct Row<'t, 'l> {
    table: &'t Table,
    fields: Fields<'l>,
    notation: Notation,
}

impl Row<'_, '_> {
    fn get(&self, field: Field) -> Option<Found<'_>> {
        let (_, place) = self.table.fields.iter().find(|(f, _)| *f == field)?;
        self.at(place)
    }

    /// Returns a field; `None` if it is unknown, or a column by which it is multiplied is.
    fn at(&self, place: &Place) -> Option<Found<'_>> {
        let are_values = self.notation == Notation::Values;
        let text = |at: usize| if are_values { &*self.fields[at].1 } else { self.fields[at].1.trim_ascii() };
        let mut times = place.times;
        for by in &place.by {
            times = decimal(text(*by))?.nano.checked_mul(times)? / NANO;
        }
        let found = text(place.at);
        let is_known = if are_values { !found.is_empty() } else { !is_unknown(found) };
        is_known.then_some((self.fields[place.at].0, found, times))
    }

    fn text(&self, field: Field, what: &'static str) -> Result<Option<&str>, Box<FieldError>> {
        self.get(field).map(|(at, text, _)| utf8(text, at, what)).transpose()
    }

    fn time(&self, field: Field) -> Result<Option<Time>, Box<FieldError>> {
        let read = |(at, text, times): Found<'_>| {
            let seconds = number(text, times);
            let time = seconds.and_then(|d| u64::try_from(d.nano).ok()).filter(|n| *n <= Time::MAX.nanos());
            let what = match seconds {
                Some(_) => format!("a time of at most {} s (146 years)", Time::MAX.nanos() / 1_000_000_000),
                None => "a time: seconds, or a date such as 2023-08-31T12:29:47".to_string(),
            };
            time.map(Time::from_nanos).or_else(|| date(text)).ok_or_else(|| FieldError::new(at, text, what))
        };
        self.get(field).map(read).transpose()
    }

    fn span(&self, field: Field) -> Result<Option<Span>, Box<FieldError>> {
        let read = |(at, text, times): Found<'_>| {
            let seconds = number(text, times);
            let span = seconds.and_then(|d| Span::checked_from_nanos(d.nano));
            let what = match seconds {
                Some(_) => format!("at most {} s (146 years)", Time::MAX.nanos() / 1_000_000_000),
                None => "seconds, a number that is not negative".to_string(),
            };
            span.or_else(|| slurm_notation::duration(text)).ok_or_else(|| FieldError::new(at, text, what))
        };
        self.get(field).map(read).transpose()
    }

    /// Returns whether a number is negative: a time before the trace begins, or one that schedulers write if there is none.
    fn is_negative(&self, field: Field) -> bool {
        self.get(field).is_some_and(|(_, text, _)| text.strip_prefix(b"-").is_some_and(|t| decimal(t).is_some()))
    }
}

/// Returns on how many nodes a task runs: as stated, or so many that each holds as much of the first resource as stated.
fn nodes(row: &Row<'_, '_>, first_amount: u128) -> Result<Option<u32>, Box<FieldError>> {
    if let Some((at, text, times)) = row.get(Field::Nodes) {
        let nodes = number(text, times).filter(|d| d.nano % NANO == 0).and_then(|d| u32::try_from(d.nano / NANO).ok());
        let what = "a number of nodes: a whole number greater than 0";
        return nodes
            .filter(|n| *n > 0)
            .map(Some)
            .ok_or_else(|| FieldError::new(at, text, up_to(text, what, u32::MAX)));
    }
    let Some((at, text, times)) = row.get(Field::PerNode) else { return Ok(None) };
    let each = number(text, times).map(|d| d.nano).filter(|each| *each > 0);
    let each = each.ok_or_else(|| FieldError::new(at, text, "an amount on each node, a number greater than 0"))?;
    Ok(u32::try_from(first_amount.div_ceil(each)).ok().filter(|n| *n > 0))
}

/// Returns the word for one of several types of GPUs, such as `V100|A100`; `None` if they cannot be words.
fn gpu_type(types: &str) -> Option<String> {
    let words: Option<Vec<String>> = types.split('|').map(|one| Requirements::gpu_type(one.trim())).collect();
    words.map(|words| words.join("|"))
}

impl RowReader for TableReader<'_> {
    fn names(&self) -> Vec<String> {
        self.columns.all_names().map(str::to_string).collect()
    }

    fn locate(&mut self, header: &[String]) -> Result<(), String> {
        self.table = Some(Table::new(self.columns, header)?);
        Ok(())
    }

    fn row(&mut self, fields: Fields<'_>, length: usize) -> Result<(), Box<FieldError>> {
        // `locate` comes before every row.
        let Some(table) = self.table.take() else { return Ok(()) };
        let result = self.task(&table, fields, length);
        self.table = Some(table);
        result
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn held(&self) -> u64 {
        self.builder.len() as u64
    }
}

impl TableReader<'_> {
    /// Returns an optional field, or `None` if it is malformed and such fields are accepted.
    fn optional<T>(&mut self, field: Result<Option<T>, Box<FieldError>>) -> Result<Option<T>, Box<FieldError>> {
        match field {
            Err(_) if self.lenient => {
                self.tally.adjust(MALFORMED_OPTION);
                Ok(None)
            }
            other => other,
        }
    }

    fn task(&mut self, table: &Table, fields: Fields<'_>, length: usize) -> Result<(), Box<FieldError>> {
        let row = Row { table, fields, notation: self.notation };
        same_width(row.fields.len(), table.width, length)?;
        if row.is_negative(Field::Submit) {
            self.tally.drop("submitted before the trace begins");
            return Ok(());
        }
        let Some(submit) = row.time(Field::Submit)? else {
            self.tally.drop("no submit time");
            return Ok(());
        };
        let logged = match row.is_negative(Field::Start) {
            true => None,
            false => Some(row.time(Field::Start)?),
        };
        // Slurm's database has a start of 0 for a job that was cancelled while it waited.
        let Some(logged) = logged.filter(|start| *start != Some(Time::ZERO) || submit == Time::ZERO) else {
            self.tally.drop("never started");
            return Ok(());
        };
        let wait = self.optional(row.span(Field::Wait))?;
        let start = match (logged, wait) {
            (Some(start), _) => Some(start),
            (None, Some(wait)) => submit.checked_add(wait),
            (None, None) => None,
        };
        if let (Some(early), Some((at, ..))) = (start.filter(|s| *s < submit), row.get(Field::Start)) {
            let found = format!("a start {} s before submission", submit.since(early));
            return Err(FieldError::described(at, found, "a start that is not before submission"));
        }
        let duration = match (row.span(Field::Duration)?, start, row.time(Field::End)?) {
            (Some(duration), ..) => duration,
            (None, Some(start), Some(end)) if end < start => {
                let at = row.get(Field::End).map_or(0, |(at, ..)| at);
                let found = format!("an end {} s before the start", start.since(end));
                return Err(FieldError::described(at, found, "an end that is not before the start"));
            }
            (None, Some(start), Some(end)) => end.since(start),
            (None, None, _) => {
                self.tally.drop("never started");
                return Ok(());
            }
            (None, Some(_), None) => {
                self.tally.drop("no end or duration");
                return Ok(());
            }
        };
        let (amounts, asked) = self.amounts(&row)?;
        let count = match row.get(Field::Count) {
            None => 1,
            Some((at, text, times)) => number(text, times)
                .filter(|d| d.nano % NANO == 0)
                .and_then(|d| u32::try_from(d.nano / NANO).ok())
                .filter(|count| *count > 0)
                .ok_or_else(|| {
                    let what = "a number of tasks: a whole number greater than 0";
                    FieldError::new(at, text, up_to(text, what, u32::MAX))
                })?,
        };
        // Slurm writes 0 for a job that has not had nodes.
        let is_none = self.notation == Notation::Slurm
            && row.get(Field::Nodes).is_some_and(|(_, text, times)| number(text, times).is_some_and(|d| d.nano == 0));
        let nodes = if is_none { None } else { nodes(&row, amounts.first().copied().unwrap_or(0))? };
        let user = self.optional(row.text(Field::User, "a user's name"))?;
        if user.is_none() {
            self.tally.adjust(NO_USER);
        }
        let unlimited = self.notation == Notation::Slurm
            && row.get(Field::Requested).is_some_and(|(_, text, _)| slurm_notation::limit(text, false) == Some(None));
        let requested = match unlimited || row.is_negative(Field::Requested) {
            true => None,
            false => self.optional(row.span(Field::Requested))?,
        };
        let account = self.optional(row.text(Field::Account, "an account's name"))?;
        let queue = self.optional(row.text(Field::Queue, "a queue's name"))?;
        let eligible = self.optional(row.time(Field::Eligible))?.filter(|time| *time >= submit);
        let mut details = Details::default();
        for (detail, text) in details.iter_mut() {
            *text = self.optional(row.text(Field::Detail(detail), "a text"))?;
        }
        let gpu_type = self.optional(row.text(Field::GpuType, "a type of GPUs"))?.and_then(gpu_type);
        let requires =
            gpu_type.map(|word| details[Detail::Requires].into_iter().chain([&*word]).collect::<Vec<_>>().join(","));
        details[Detail::Requires] = requires.as_deref().or(details[Detail::Requires]);
        let state = details[Detail::Outcome];
        details[Detail::Outcome] = match self.notation {
            Notation::Plain | Notation::Values => state,
            Notation::Slurm => state.and_then(outcome::of_slurm),
            Notation::Batsim => state.and_then(outcome::of_batsim),
        };
        if let Some((at, text, _)) = details[Detail::Chunks].and_then(|_| row.get(Field::Detail(Detail::Chunks))) {
            let chunks = details[Detail::Chunks].map(Chunk::parse_all);
            let malformed = || FieldError::new(at, text, "chunks such as 1:cpu=4+2:cpu=8");
            if self.optional(chunks.transpose().map_err(|_| malformed()))?.is_none() {
                details[Detail::Chunks] = None;
            }
        }
        self.builder.push(&Task {
            submit,
            start,
            duration,
            requested,
            user: user.unwrap_or("unknown"),
            account,
            queue,
            amounts: &amounts,
            requested_amounts: asked.as_deref(),
            count,
            nodes,
            eligible,
            details,
        });
        Ok(())
    }
}

pub(super) fn assumptions(tally: &Tally) -> Vec<String> {
    let sentence = |what: &str, one: &str, many: &str, rest: &str| {
        let rows = tally.adjusted.of(what);
        (rows > 0).then(|| format!("{} {rest}", counted(rows, one, many)))
    };
    let sentences = [
        sentence(NO_USER, "row has", "rows have", UNKNOWN_USER),
        sentence(
            BY_REQUEST,
            "row has",
            "rows have",
            "the amounts that were requested, so far as the table states them.",
        ),
        sentence(NO_REQUEST, "row states", "rows state", "no requested amounts; the allocated ones are taken."),
        sentence(NOT_ALLOCATED, "amount is", "amounts are", "not stated as allocated and taken as requested."),
        sentence(NO_AMOUNT, "amount is", "amounts are", "missing and set to 0."),
        sentence(MALFORMED_OPTION, "row has", "rows have", "a malformed optional field, which is taken as unknown."),
        sentence(ROUNDED, "row has", "rows have", "amounts with more than nine decimals, which are rounded to nine."),
    ];
    sentences.into_iter().flatten().collect()
}
