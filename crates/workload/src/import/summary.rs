//! What an import did: read, kept, dropped, assumed.

use std::borrow::Cow;
use std::fmt;

use super::{Format, counted};

/// What an import did. Prints as plain sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportSummary {
    /// The format read; never [`Format::Auto`].
    pub format: Format,
    /// How many files (or streams) were read.
    pub files: usize,
    /// Rows read: data rows, not comments, headers or blank lines.
    pub rows_read: u64,
    /// Tasks in the workload.
    pub tasks: u64,
    /// What was not kept: the reason and how many.
    pub dropped: Vec<(String, u64)>,
    /// What had to be assumed, bent or chosen, a sentence each.
    pub assumptions: Vec<String>,
}

impl fmt::Display for ImportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, tasks) = (counted(self.rows_read, "row", "rows"), counted(self.tasks, "task", "tasks"));
        let files = counted(self.files as u64, "file", "files");
        write!(f, "Read {rows} of {} from {files}; kept {tasks}.", self.format)?;
        if !self.dropped.is_empty() {
            let dropped: Vec<String> = self.dropped.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
            write!(f, " Dropped: {}.", dropped.join("; "))?;
        }
        for sentence in &self.assumptions {
            write!(f, " {sentence}")?;
        }
        Ok(())
    }
}

/// Counts kept while reading one stream; streams are added up in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) rows_read: u64,
    pub(super) dropped: Counts,
    /// Rows that were bent to fit, by what was bent.
    pub(super) bent: Counts,
}

impl Tally {
    pub(super) fn drop(&mut self, reason: &'static str) {
        self.dropped.add(Cow::Borrowed(reason), 1);
    }

    pub(super) fn bend(&mut self, what: &'static str) {
        self.bent.add(Cow::Borrowed(what), 1);
    }

    pub(super) fn merge(&mut self, other: Tally) {
        self.rows_read += other.rows_read;
        other.dropped.0.into_iter().for_each(|(reason, n)| self.dropped.add(reason, n));
        other.bent.0.into_iter().for_each(|(what, n)| self.bent.add(what, n));
    }
}

/// Counts by reason, in the order in which reasons were first seen. Reasons are few.
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
