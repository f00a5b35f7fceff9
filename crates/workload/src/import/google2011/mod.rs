//! Reads the `task_events` table of Google's ClusterData2011_2 (Reiss, Wilkes and Hellerstein, "Google cluster-usage
//! traces: format + schema", 2011-11): 13 columns, times in microseconds, 500 shards in the order of time.
//!
//! The same attempts are kept as by the SDRF authors: those that were submitted after time 0, scheduled, and ended by
//! FINISH or, while running, by FAIL. The request is that of the SUBMIT row; the start is the time of the SCHEDULE row.
//! See [`attempts`].
//!
//! Shards are parsed in parallel to [`Event`]s, one batch at a time, while the state machine processes the batch
//! before. Memory holds the unfinished tasks, the kept ones, and two batches.

pub(super) mod attempts;
pub(super) mod parse_event;

use evenhand_model::{Resource, Span, Task, Time, WorkloadBuilder};
use rayon::prelude::*;

use super::error::FieldError;
use super::lines::{for_each_line, malformed};
use super::summary::Tally;
use super::{ImportError, ImportOptions, Part, counted};
use crate::byte_source::{Meter, Shard};
use attempts::{Attempts, Kept};
use parse_event::{Event, Parser, first_time};

const ROUNDED: &str = "rounded";

/// The parsed rows of one shard.
struct Parsed {
    name: String,
    events: Vec<Event>,
    /// The names of the users in this shard.
    users: Vec<String>,
    /// The time and line of the first row; `last` is the time of the last row.
    first: Option<(u64, u64)>,
    last: u64,
    tally: Tally,
}

pub(super) fn read(mut shards: Vec<Shard>, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    if shards.len() > 1 {
        let mut timed = Vec::with_capacity(shards.len());
        for mut shard in shards {
            // A shard whose first row has no time is an error below, with its place.
            timed.push((first_time(&shard.head()?), shard));
        }
        timed.sort_by_key(|(time, _)| *time);
        shards = timed.into_iter().map(|(_, shard)| shard).collect();
    }
    let mut trace = Trace::default();
    let mut shards = shards.into_iter();
    // Enough shards that no thread waits long for the others, few enough to need little memory.
    let batch = 2 * rayon::current_num_threads();
    let mut parsed: Vec<Result<Parsed, ImportError>> = Vec::new();
    loop {
        let next: Vec<Shard> = shards.by_ref().take(batch).collect();
        let last = next.is_empty();
        let parse = || next.into_par_iter().map(|shard| parse(shard, options, meter)).collect();
        let process = || parsed.into_iter().try_for_each(|shard| trace.process(shard?, options, meter));
        let (processed, next) = rayon::join(process, parse);
        processed?;
        parsed = next;
        if last {
            return Ok(trace.finish());
        }
    }
}

fn parse(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Parsed, ImportError> {
    let mut parsed = Parsed {
        name: shard.name.clone(),
        events: Vec::new(),
        users: Vec::new(),
        first: None,
        last: 0,
        tally: Tally::default(),
    };
    let mut parser = Parser::default();
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, number, tally| {
        tally.rows_read += 1;
        let row = parser.row(line)?;
        if row.time < parsed.last {
            let found = format!("time {} after time {}", row.time, parsed.last);
            return Err(FieldError::described(0, found, "rows in the order of their times"));
        }
        parsed.last = row.time;
        parsed.first.get_or_insert((row.time, number));
        parsed.events.extend(row.event);
        Ok(())
    })?;
    parsed.tally = tally;
    parsed.users = parser.into_users();
    Ok(parsed)
}

/// The trace so far, shard after shard.
#[derive(Default)]
struct Trace {
    attempts: Attempts,
    kept: Vec<Kept>,
    users: evenhand_model::Names,
    last: u64,
    tally: Tally,
}

impl Trace {
    fn process(&mut self, shard: Parsed, options: &ImportOptions, meter: &Meter<'_>) -> Result<(), ImportError> {
        self.tally.merge(shard.tally);
        let users: Vec<u32> = shard.users.iter().map(|u| self.users.intern(u)).collect();
        let mut events = shard.events.as_slice();
        if let Some((first, line)) = shard.first
            && first < self.last
        {
            let found = format!("time {first} in this file after time {} in the one before", self.last);
            let error = FieldError::described(0, found, "files in the order of their times");
            let error = error.remedy("give each shard once, and sort the trace by time if they overlap");
            if !options.lenient {
                return Err(error.located(&shard.name, line).into());
            }
            let late = events.partition_point(|e| e.time < self.last);
            (0..late).for_each(|_| malformed(&mut self.tally, &error));
            events = &events[late..];
        }
        self.last = self.last.max(shard.last);
        let held = self.kept.len();
        for event in events {
            self.kept.extend(self.attempts.process(event, |local| users[local as usize]));
        }
        meter.hold(&shard.name, (self.kept.len() - held) as u64)
    }

    fn finish(mut self) -> Part {
        let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
        // Attempts are in the order of their ends; restore the order of their submissions.
        self.kept.sort_unstable_by_key(|k| k.row);
        let time = |us: u64| Time::from_nanos(us * 1000);
        for k in &self.kept {
            if k.rounded {
                self.tally.adjust(ROUNDED);
            }
            builder.push(&Task {
                submit: time(k.submit),
                start: Some(time(k.start)),
                duration: Span::from_nanos((k.end - k.start) * 1000),
                user: &self.users.list()[k.user as usize],
                amounts: &[u128::from(k.cpu), u128::from(k.mem)],
                ..Task::default()
            });
        }
        self.attempts.finish(&mut self.tally);
        Part { builder, tally: self.tally }
    }
}

pub(super) fn assumptions(tally: &Tally) -> Vec<String> {
    let kept =
        "A task is one attempt that was submitted after time 0, scheduled, and ended by FINISH or, while running, \
                by FAIL; its request is that of its SUBMIT row."
            .to_string();
    let rounded = tally.adjusted.of(ROUNDED);
    let note = format!(
        "{} a request with more than nine decimals, which is rounded to nine.",
        counted(rounded, "task has", "tasks have")
    );
    std::iter::once(kept).chain((rounded > 0).then_some(note)).collect()
}
