//! The summary of an import.

use std::borrow::Cow;
use std::fmt;

use evenhand_model::Time;

use super::repeated_jobs::{IN_ANOTHER_FILE, JobKeys, OtherFiles};
use super::{Format, ImportOptions, JobId, counted};

/// The summary of an import. It prints as sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSummary {
    /// The format; never [`Format::Auto`].
    pub format: Format,
    /// The number of files or streams.
    pub files: usize,
    /// The number of data rows: not comments, headers or blank lines.
    pub rows_read: u64,
    /// The number of tasks in the workload.
    pub tasks: u64,
    /// The reasons for dropped rows, each with the number of rows.
    pub dropped: Vec<(String, u64)>,
    /// The assumptions, one sentence each.
    pub assumptions: Vec<String>,
}

impl fmt::Display for ImportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, tasks) = (counted(self.rows_read, "row", "rows"), counted(self.tasks, "task", "tasks"));
        let files = counted(self.files as u64, "file", "files");
        write!(f, "Read {rows} of {} from {files}; kept {tasks}.", self.format)?;
        if !self.dropped.is_empty() {
            let dropped: Vec<String> = self.dropped.iter().map(|(reason, n)| format!("{reason} ({n})")).collect();
            write!(f, " Dropped: {}.", dropped.join("; "))?;
        }
        for sentence in &self.assumptions {
            write!(f, " {sentence}")?;
        }
        Ok(())
    }
}

/// What is assumed of jobs without a user, for one job and for several.
pub(super) const UNKNOWN_USER: &str = "no user; the user is taken to be \"unknown\".";

/// What is kept of the ids of jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeptIds {
    /// Whether ids are kept; what goes to disk has none.
    ids: bool,
    /// The most keys of jobs that are kept of one stream.
    most_keys: usize,
}

impl KeptIds {
    /// The part of the memory for keys.
    const PART_OF_MEMORY: u64 = 8;
    /// The keys that are always kept: 2 MiB.
    const ALWAYS: u64 = 1 << 18;

    pub(super) fn of(options: &ImportOptions) -> KeptIds {
        let most = options.memory.map_or(u64::MAX, |limit| limit.bytes / KeptIds::PART_OF_MEMORY / JobKeys::BYTES);
        let most_keys = usize::try_from(most.max(KeptIds::ALWAYS)).unwrap_or(usize::MAX);
        KeptIds { ids: options.overflow.is_none(), most_keys }
    }
}

/// The counts of one stream; those of several streams are merged in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) rows_read: u64,
    /// The tasks that are kept in memory so far.
    pub(super) held: u64,
    pub(super) dropped: Counts,
    /// Rows for which something was adjusted or assumed, by what it was.
    pub(super) adjusted: Counts,
    /// An example of what was adjusted, by what it was: the first.
    examples: Vec<(&'static str, String)>,
    /// By kept row: its submission and the id by which its source calls the job. Empty if the format has none.
    pub(super) job_ids: Vec<(Time, JobId)>,
    /// The keys of the kept jobs.
    pub(super) keys: JobKeys,
}

impl Tally {
    /// Creates the counts of a file of several, of which a job is to be kept once.
    pub(super) fn beside(others: &OtherFiles) -> Tally {
        Tally { keys: JobKeys::beside(others), ..Tally::default() }
    }

    /// Returns whether a job was kept from another file, and counts it as dropped then.
    pub(super) fn is_in_another_file(&mut self, id: &JobId, submit: Time, start: Option<Time>) -> bool {
        let found = self.keys.is_in_another_file(id, submit, start);
        if found {
            self.drop(IN_ANOTHER_FILE);
        }
        found
    }

    pub(super) fn drop(&mut self, reason: &'static str) {
        self.dropped.add(Cow::Borrowed(reason), 1);
    }

    pub(super) fn adjust(&mut self, what: &'static str) {
        self.adjusted.add(Cow::Borrowed(what), 1);
    }

    /// Counts what was adjusted, and keeps the first example of it.
    pub(super) fn adjust_as(&mut self, what: &'static str, example: impl FnOnce() -> String) {
        self.adjust(what);
        if self.example(what).is_none() {
            self.examples.push((what, example()));
        }
    }

    /// Returns the first example of what was adjusted.
    pub(super) fn example(&self, what: &str) -> Option<&str> {
        self.examples.iter().find(|(of, _)| *of == what).map(|(_, example)| example.as_str())
    }

    /// Notes the id of a kept job.
    pub(super) fn job(&mut self, id: JobId, submit: Time, start: Option<Time>, kept: KeptIds) {
        self.keys.add(&id, submit, start, kept.most_keys);
        if kept.ids {
            self.job_ids.push((submit, id));
        }
    }

    pub(super) fn merge(&mut self, other: Tally) {
        self.rows_read += other.rows_read;
        self.held += other.held;
        other.dropped.0.into_iter().for_each(|(reason, n)| self.dropped.add(reason, n));
        other.adjusted.0.into_iter().for_each(|(what, n)| self.adjusted.add(what, n));
        for (what, example) in other.examples {
            if self.example(what).is_none() {
                self.examples.push((what, example));
            }
        }
        self.job_ids.extend(other.job_ids);
        self.keys.merge(other.keys);
    }
}

/// Counts by reason, in the order in which reasons were first seen. There are few reasons, so lookups are linear.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(pub(super) Vec<(Cow<'static, str>, u64)>);

impl Counts {
    pub(super) fn add(&mut self, reason: Cow<'static, str>, n: u64) {
        match self.0.iter_mut().find(|(r, _)| *r == reason) {
            Some((_, count)) => *count += n,
            None => self.0.push((reason, n)),
        }
    }

    pub(super) fn of(&self, reason: &str) -> u64 {
        self.0.iter().find(|(r, _)| r == reason).map_or(0, |(_, n)| *n)
    }
}
