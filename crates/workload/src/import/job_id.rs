//! The ids by which sources call their jobs.

use std::fmt;

/// The id by which a source calls a job: a number, and its text where it is more than a number.
///
/// Texts are those of the source: `100_2` (a task of an array in Slurm), `200+1` (a component of a heterogeneous job),
/// `112470.server` and `100[2].server` (PBS), `100.2` (a task in Grid Engine, a process in HTCondor).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobId {
    /// The number: of sacct the raw one where that is known, else what the text begins with; 0 if there is none.
    pub number: u64,
    /// The text, if it is not the number.
    pub text: Option<Box<str>>,
}

/// How an id that was asked for names a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IdMatch {
    /// It is the number of a job whose id has another text, such as JobIDRaw of sacct.
    Number,
    /// It is what the id begins with, before `_`, `+`, `[` or `.`: an array, or a job without its server.
    Prefix,
    /// It is the id.
    Exact,
}

impl JobId {
    /// Returns the id of a text; a text of digits is a number.
    ///
    /// ```
    /// use evenhand_workload::import::JobId;
    /// assert_eq!(JobId::of("100_2").number, 100);
    /// assert_eq!((JobId::of("7").text, JobId::of("100_2").to_string().as_str()), (None, "100_2"));
    /// ```
    pub fn of(text: &str) -> JobId {
        let text = text.trim();
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = text[..digits].parse().unwrap_or(0);
        JobId { number, text: Some(text.into()) }.with_number(number)
    }

    /// Returns the same id with the number by which the source calls the job besides.
    #[must_use]
    pub fn with_number(self, number: u64) -> JobId {
        let is_more = |text: &str| !text.is_empty() && *text != number.to_string();
        JobId { number, text: self.text.filter(|text| is_more(text)) }
    }

    /// Returns whether the source has an id at all.
    pub fn is_known(&self) -> bool {
        *self != JobId::default()
    }

    /// Returns how `asked` names this job, if it does.
    ///
    /// ```
    /// use evenhand_workload::import::{IdMatch, JobId};
    /// let task = JobId::of("100_2").with_number(102);
    /// assert_eq!(task.named_by("100_2"), Some(IdMatch::Exact));
    /// assert_eq!(task.named_by("100"), Some(IdMatch::Prefix));
    /// assert_eq!(task.named_by("102"), Some(IdMatch::Number));
    /// assert_eq!(task.named_by("10"), None);
    /// ```
    pub fn named_by(&self, asked: &str) -> Option<IdMatch> {
        let is_number = || asked.parse() == Ok(self.number);
        let Some(text) = self.text.as_deref() else {
            return (self.is_known() && is_number()).then_some(IdMatch::Exact);
        };
        if text.eq_ignore_ascii_case(asked) {
            return Some(IdMatch::Exact);
        }
        match text.get(asked.len()..).filter(|_| !asked.is_empty() && text.starts_with(asked)) {
            Some(rest) if rest.starts_with(['_', '+', '[', '.']) => Some(IdMatch::Prefix),
            _ => is_number().then_some(IdMatch::Number),
        }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) => f.write_str(text),
            None => write!(f, "{}", self.number),
        }
    }
}
