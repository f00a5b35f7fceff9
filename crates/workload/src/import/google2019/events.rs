//! Reads the rows of `instance_events` and `collection_events` to compact events.

use std::collections::BTreeMap;

use crate::import::csv::{Fields, RowReader, same_width};
use crate::import::error::{FieldError, up_to};
use crate::import::google2011::parse_event::{Event, Kind};
use crate::import::lines::utf8;
use crate::import::parse_number::{decimal, integer};
use crate::import::parse_time::is_unknown;
use crate::import::summary::Tally;

/// The columns that are read, each with the names that published extracts use for it.
const COLUMNS: [(Column, &[&str]); 11] = [
    (Column::Time, &["time", "time_us"]),
    (Column::Type, &["type", "event_type", "instance_event_type", "instance_events_type"]),
    (Column::Collection, &["collection_id"]),
    (Column::CollectionType, &["collection_type"]),
    (Column::Index, &["instance_index"]),
    (Column::Missing, &["missing_type"]),
    (Column::Priority, &["priority"]),
    (Column::Cpus, &["resource_request.cpus", "resource_request_cpus", "req_cpus", "cpus"]),
    (Column::Memory, &["resource_request.memory", "resource_request_memory", "req_mem", "memory"]),
    (Column::User, &["user"]),
    (Column::Cell, &["cell", "cluster"]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Time,
    Type,
    Collection,
    CollectionType,
    Index,
    Missing,
    Priority,
    Cpus,
    Memory,
    User,
    Cell,
}

/// The types of events by their numbers in the trace's protocol buffers.
const TYPES: [&str; 11] = [
    "SUBMIT",
    "QUEUE",
    "ENABLE",
    "SCHEDULE",
    "EVICT",
    "FAIL",
    "FINISH",
    "KILL",
    "LOST",
    "UPDATE_PENDING",
    "UPDATE_RUNNING",
];

/// The time of events after the end of the trace; some extracts round it up.
const AFTER_THE_END: u64 = i64::MAX as u64;
/// The largest `Time`, 2^62 ns, in microseconds.
const LATEST: u64 = (1 << 62) / 1000;

const ALLOC_SET: &str = "of an alloc set, not of a job";
const AFTER: &str = "after the end of the trace";

/// A collection: its cell, if the table has several, and its number.
pub(super) type Collection = (Box<str>, u64);

/// The user and the priority of a collection, as far as they are known.
type Attributes = (Option<String>, Option<u32>);

/// An event of an instance. The job of `event` is set when all shards are read.
pub(super) struct InstanceEvent {
    pub(super) collection: Collection,
    pub(super) event: Event,
}

/// Reads the rows of one shard.
#[derive(Default)]
pub(super) struct EventReader {
    places: [Option<usize>; COLUMNS.len()],
    width: usize,
    pub(super) events: Vec<InstanceEvent>,
    pub(super) collections: BTreeMap<Collection, Attributes>,
    pub(super) tally: Tally,
}

/// Returns whether a table with these columns is one of the two.
pub(in crate::import) fn is_table(names: &[String]) -> bool {
    EventReader::default().locate(names).is_ok()
        && ["instance_index", "collection_logical_name"].iter().any(|name| names.iter().any(|n| n == name))
}

struct Row<'r, 'l> {
    places: &'r [Option<usize>; COLUMNS.len()],
    fields: &'r Fields<'l>,
}

impl<'r> Row<'r, '_> {
    /// Returns a field that is known, with the byte where it starts.
    fn get(&self, column: Column) -> Option<(usize, &'r [u8])> {
        let place = self.places[column as usize]?;
        let (at, text) = &self.fields[place];
        let text = text.trim_ascii();
        (!is_unknown(text)).then_some((*at, text))
    }

    fn whole(&self, column: Column, what: &'static str) -> Result<Option<u64>, Box<FieldError>> {
        let Some((at, text)) = self.get(column) else { return Ok(None) };
        integer(text).map(Some).ok_or_else(|| FieldError::new(at, text, up_to(text, what, u64::MAX)))
    }

    fn needed(&self, column: Column, what: &'static str) -> Result<u64, Box<FieldError>> {
        self.whole(column, what)?.ok_or_else(|| FieldError::described(0, "nothing", what))
    }

    /// Returns a value of an enumeration by its number or its name; 0 if it is unknown.
    fn coded(&self, column: Column, names: &[&str], what: &'static str) -> Result<usize, Box<FieldError>> {
        let Some((at, text)) = self.get(column) else { return Ok(0) };
        let number = integer(text).and_then(|n| usize::try_from(n).ok()).filter(|n| *n < names.len());
        let number = number.or_else(|| names.iter().position(|name| name.as_bytes() == text));
        number.ok_or_else(|| FieldError::new(at, text, what))
    }

    /// Returns a request in billionths, and whether it was rounded; 0 if it is unknown.
    fn request(&self, column: Column, what: &'static str) -> Result<(u64, bool), Box<FieldError>> {
        let Some((at, text)) = self.get(column) else { return Ok((0, false)) };
        let number = decimal(text).and_then(|d| Some((u64::try_from(d.nano).ok()?, d.rounded)));
        number.ok_or_else(|| FieldError::new(at, text, what))
    }

    fn collection(&self) -> Result<Collection, Box<FieldError>> {
        let cell = self.get(Column::Cell).map_or(Ok(""), |(at, text)| utf8(text, at, "the name of a cell"))?;
        Ok((cell.into(), self.needed(Column::Collection, "the number of a collection")?))
    }
}

impl EventReader {
    /// Whether its table is `instance_events`, or was joined with it.
    pub(super) fn has_instances(&self) -> bool {
        self.places[Column::Index as usize].is_some()
    }

    /// Notes the user and the priority of a collection.
    fn note(&mut self, collection: &Collection, row: &Row<'_, '_>) -> Result<(), Box<FieldError>> {
        if self.collections.get(collection).is_some_and(|(user, priority)| user.is_some() && priority.is_some()) {
            return Ok(());
        }
        let user = row.get(Column::User).map(|(at, text)| utf8(text, at, "a user's name")).transpose()?;
        let priority = row.whole(Column::Priority, "a priority, a whole number")?;
        let priority = priority.and_then(|n| u32::try_from(n).ok());
        let known = self.collections.entry(collection.clone()).or_default();
        if known.0.is_none() {
            known.0 = user.map(str::to_string);
        }
        known.1 = known.1.or(priority);
        Ok(())
    }

    fn read(&mut self, row: &Row<'_, '_>) -> Result<(), Box<FieldError>> {
        let collection = row.collection()?;
        if self.places[Column::Index as usize].is_none() {
            // A row of collection_events.
            return self.note(&collection, row);
        }
        let alloc_set = row.coded(Column::CollectionType, &["JOB", "ALLOC_SET"], "a type of collection: 0 or 1")? == 1;
        if alloc_set {
            self.tally.drop(ALLOC_SET);
            return Ok(());
        }
        let time = row.needed(Column::Time, "a time in whole microseconds")?;
        if time >= AFTER_THE_END {
            self.tally.drop(AFTER);
            return Ok(());
        }
        if time > LATEST {
            return Err(FieldError::described(0, time, "a time below 4.6e15 microseconds"));
        }
        if row.get(Column::Type).is_none() {
            return Err(FieldError::described(0, "nothing", "a type of event"));
        }
        let kind = match row.coded(Column::Type, &TYPES, "a type of event: 0 to 10, or its name")? {
            0 => Kind::Submit,
            3 => Kind::Schedule,
            4 => Kind::Evict,
            5 => Kind::Fail,
            6 => Kind::Finish,
            7 => Kind::Kill,
            8 => Kind::Lost,
            // QUEUE, ENABLE and the updates change nothing that is kept.
            _ => return Ok(()),
        };
        let index = row.needed(Column::Index, "the index of an instance")?;
        let index = u32::try_from(index)
            .map_err(|_| FieldError::described(0, index, "the index of an instance, below 2^32"))?;
        let missing = row.get(Column::Missing).is_some_and(|(_, t)| t != b"0" && t != b"MISSING_TYPE_NONE");
        let (cpu, cpu_rounded) = row.request(Column::Cpus, "a request of CPU below 18 billion")?;
        let (mem, mem_rounded) = row.request(Column::Memory, "a request of memory below 18 billion")?;
        self.note(&collection, row)?;
        let rounded = cpu_rounded || mem_rounded;
        let event = Event { time, job: 0, index, kind, missing, user: 0, cpu, mem, rounded };
        self.events.push(InstanceEvent { collection, event });
        Ok(())
    }
}

impl RowReader for EventReader {
    fn names(&self) -> Vec<String> {
        COLUMNS.iter().flat_map(|(_, names)| names.iter()).map(|name| (*name).to_string()).collect()
    }

    fn locate(&mut self, header: &[String]) -> Result<(), String> {
        self.width = header.len();
        for (column, names) in COLUMNS {
            self.places[column as usize] = names.iter().find_map(|name| header.iter().position(|h| h == name));
        }
        let has = |column: Column| self.places[column as usize].is_some();
        // collection_events has no instances, and is read for the users.
        let needed: &[Column] = match has(Column::Index) {
            true => &[Column::Time, Column::Type, Column::Collection, Column::Cpus, Column::Memory],
            false => &[Column::Collection, Column::User],
        };
        match needed.iter().find(|column| !has(**column)) {
            None => Ok(()),
            Some(_) if !has(Column::Index) => Err("instance_index or user".to_string()),
            Some(column) => Err(COLUMNS[*column as usize].1.join(" or ")),
        }
    }

    fn row(&mut self, fields: Fields<'_>, length: usize) -> Result<(), Box<FieldError>> {
        same_width(fields.len(), self.width, length)?;
        let places = self.places;
        self.read(&Row { places: &places, fields: &fields })
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    fn held(&self) -> u64 {
        // An event takes about twice the memory of a task.
        2 * self.events.len() as u64
    }
}
