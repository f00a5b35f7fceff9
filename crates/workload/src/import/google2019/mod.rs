//! Reads the events of Google's ClusterData2019 (Wilkes, "Google cluster-usage traces v3", 2020): `instance_events`, and
//! `collection_events` for the users, as CSV, JSON or Parquet, in any order of rows and files.
//!
//! A collection is a job, whose instances are its tasks, or an alloc set, which reserves resources for jobs. Tasks are read,
//! alloc sets are not. The same attempts are kept as of the trace of 2011, by the same state machine: [`Attempts`].
//!
//! Rows are not in the order of time, so all events are held in memory and sorted first.

mod events;

use std::collections::HashMap;

use evenhand_model::{Names, Resource, Span, Task, Time, WorkloadBuilder};
use rayon::prelude::*;

use super::csv::{Definition, PUBLISHED, read_rows};
use super::google2011::attempts::{Attempts, Kept};
use super::google2011::parse_event::{Event, Kind};
use super::summary::Tally;
use super::{ImportError, ImportOptions, Part, counted};
use crate::byte_source::{Meter, Shard};

pub(super) use events::is_table;
use events::{Collection, EventReader, InstanceEvent};

const ROUNDED: &str = "rounded";
const NO_USER: &str = "no user";
const REPEATED: &str = "a repeated event";
const ENDS: &str = "ends";
const ORPHANS: &str = "ends without submission";

/// What is known of a collection from all rows.
#[derive(Clone, Copy, Default)]
struct Job {
    user: Option<u32>,
    priority: Option<u32>,
}

pub(super) fn read(shards: Vec<Shard>, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let names: Vec<String> = shards.iter().map(|shard| shard.name.clone()).collect();
    let read = |shard| {
        let mut reader = EventReader::default();
        let definition = Definition { whose: "--from google-2019 reads", remedy: PUBLISHED };
        read_rows(shard, &mut reader, &definition, options, meter)?;
        Ok(reader)
    };
    let parsed: Vec<Result<EventReader, ImportError>> = shards.into_par_iter().map(read).collect();
    let parsed = parsed.into_iter().collect::<Result<Vec<EventReader>, ImportError>>()?;
    if !parsed.iter().any(EventReader::has_instances) {
        return Err(ImportError::Shape {
            file: names.join(", "),
            found: "collection_events, which has only the users".to_string(),
            expected: "instance_events, which has the tasks".to_string(),
            remedy: "name the table instance_events too, before or after it".to_string(),
        });
    }
    let mut trace = Trace::default();
    parsed.into_iter().for_each(|shard| trace.add(shard));
    Ok(trace.finish())
}

/// The events of all shards, with collections and users numbered in the order in which they appear.
#[derive(Default)]
struct Trace {
    numbers: HashMap<Collection, u64>,
    jobs: Vec<Job>,
    users: Names,
    events: Vec<Event>,
    tally: Tally,
}

impl Trace {
    fn number(&mut self, collection: Collection) -> u64 {
        let number = *self.numbers.entry(collection).or_insert(self.jobs.len() as u64);
        if number == self.jobs.len() as u64 {
            self.jobs.push(Job::default());
        }
        number
    }

    fn add(&mut self, shard: EventReader) {
        self.tally.merge(shard.tally);
        for (collection, (user, priority)) in shard.collections {
            let number = self.number(collection) as usize;
            let user = user.map(|name| self.users.intern(&name));
            let job = &mut self.jobs[number];
            *job = Job { user: job.user.or(user), priority: job.priority.or(priority) };
        }
        for InstanceEvent { collection, mut event } in shard.events {
            event.job = self.number(collection);
            self.events.push(event);
        }
    }

    fn finish(mut self) -> Part {
        // At the same time, an end belongs to the attempt before a submission.
        let order = |kind: Kind| match kind {
            Kind::Submit => 1,
            Kind::Schedule => 2,
            Kind::Evict | Kind::Fail | Kind::Finish | Kind::Kill | Kind::Lost => 0,
        };
        self.events.sort_by_key(|e| (e.time, order(e.kind), e.job, e.index));
        // A join with the table of usage repeats an event for each row of usage.
        let before = self.events.len();
        self.events.dedup_by_key(|e| (e.time, e.kind, e.job, e.index));
        self.tally.adjusted.add(REPEATED.into(), (before - self.events.len()) as u64);
        let mut attempts = Attempts::default();
        // The state machine passes the user of an event through; the number of the job leads to the user and the priority.
        let kept: Vec<Kept> = self
            .events
            .iter()
            .filter_map(|event| attempts.process(&Event { user: event.job as u32, ..*event }, |job| job))
            .collect();
        let ends = self.events.iter().filter(|e| order(e.kind) == 0).count() as u64;
        self.tally.adjusted.add(ENDS.into(), ends);
        self.tally.adjusted.add(ORPHANS.into(), attempts.ends_without_submission());
        self.tasks(kept, attempts)
    }

    fn tasks(mut self, mut kept: Vec<Kept>, attempts: Attempts) -> Part {
        let mut builder = WorkloadBuilder::new([Resource::new("cpu", ""), Resource::new("mem", "")]);
        kept.sort_unstable_by_key(|k| k.row);
        let time = |us: u64| Time::from_nanos(us * 1000);
        for k in &kept {
            let job = self.jobs[k.user as usize];
            if k.rounded {
                self.tally.adjust(ROUNDED);
            }
            if job.user.is_none() {
                self.tally.adjust(NO_USER);
            }
            builder.push(&Task {
                submit: time(k.submit),
                start: Some(time(k.start)),
                duration: Span::from_nanos((k.end - k.start) * 1000),
                user: job.user.map_or("unknown", |user| &self.users.list()[user as usize]),
                queue: job.priority.map(tier),
                amounts: &[u128::from(k.cpu), u128::from(k.mem)],
                ..Task::default()
            });
        }
        attempts.finish(&mut self.tally);
        Part { builder, tally: self.tally }
    }
}

/// Returns the tier of a priority, by the trace's document.
fn tier(priority: u32) -> &'static str {
    match priority {
        0..=99 => "free",
        100..=115 => "best-effort-batch",
        116..=119 => "mid",
        120..=359 => "production",
        360.. => "monitoring",
    }
}

pub(super) fn assumptions(tally: &Tally) -> Vec<String> {
    let rows = |what: &str| tally.adjusted.of(what);
    let kept = "A task is one attempt of an instance of a job that was submitted after time 0, scheduled, and ended by FINISH \
                or, while running, by FAIL; its request is that of its SUBMIT row, its queue the tier of its priority.";
    let mut sentences = vec![kept.to_string()];
    let (ends, orphans) = (rows(ENDS), rows(ORPHANS));
    if orphans > ends / 2 {
        sentences.push(format!(
            "Of {ends} ends, {orphans} have no submission before them: the input is a sample or a part of the trace, and the \
             tasks kept are few of those that ran."
        ));
    }
    let several = [
        (REPEATED, "row repeats", "rows repeat", "an event, which counts once."),
        (
            NO_USER,
            "task has",
            "tasks have",
            "no user, because collection_events was not read, and is of the user \"unknown\".",
        ),
        (ROUNDED, "task has", "tasks have", "a request with more than nine decimals, which is rounded to nine."),
    ];
    for (what, one, many, rest) in several {
        if rows(what) > 0 {
            sentences.push(format!("{} {rest}", counted(rows(what), one, many)));
        }
    }
    sentences
}
