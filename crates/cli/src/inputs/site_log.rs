//! A log of a site, for verbs that ask about its jobs.

use evenhand_forecast::{Log, peak_use};
use evenhand_model::{Workload, counted};
use evenhand_study::{peak_above_stated, stated_processors};
use evenhand_workload::import::JobId;

use super::release::note_release;
use super::times::LogClock;
use super::workloads::read_workload_with_ids;
use crate::arguments::{Common, LogArgs, Release};
use crate::failure::Failure;
use crate::output::console::Console;

/// How many ids of several jobs are listed.
const LISTED: usize = 5;

/// A log of a site, as it was read and as forecasts take it.
pub(crate) struct SiteLog {
    pub(crate) name: String,
    pub(crate) workload: Workload,
    pub(crate) log: Log,
    pub(crate) clock: LogClock,
    /// The ids by which the log calls the jobs of the workload's rows; empty if it has none.
    ids: Vec<JobId>,
}

impl SiteLog {
    pub(crate) fn read(args: &LogArgs, common: &Common, console: &Console) -> Result<SiteLog, Failure> {
        let (workload, ids) = read_workload_with_ids(&args.log, &args.trace(), common, console)?;
        let name = args.log.display().to_string();
        let log = Log::of(&workload).map_err(|e| Failure::Input(format!("{name}: {e}")))?;
        let clock = LogClock::of(&workload);
        Ok(SiteLog { name, workload, log, clock, ids })
    }

    /// Returns the log as its jobs begin to wait, with the note of [`released`](super::release::released).
    pub(crate) fn released(self, release: Release, is_given: bool, console: &Console) -> Result<SiteLog, Failure> {
        let moved = self.workload.eligible_later();
        note_release(release, is_given, moved, self.workload.len(), console);
        if release == Release::Submit || moved == 0 {
            return Ok(self);
        }
        let log = Log::released(&self.workload).map_err(|e| Failure::Input(format!("{}: {e}", self.name)))?;
        let clock = self.clock.ending(self.workload.release_times().into_iter().max().unwrap_or_default());
        Ok(SiteLog { log, clock, ..self })
    }

    /// Returns what the site has of each resource, in the smallest unit of the log, and how that is known. `given` is how much of
    /// the first resource the command line states.
    pub(crate) fn capacities(&self, given: Option<u32>) -> (Vec<u128>, &'static str) {
        let mut found = peak_use(&self.workload, &self.log);
        let (units, from) = match (given, stated_processors(&self.workload)) {
            (Some(units), _) => (Some(units), "--capacity"),
            (None, Some((key, units))) => (u32::try_from(units).ok(), stated_by(key)),
            (None, None) => (None, "the most in use at once"),
        };
        if let Some(units) = units {
            found[0] = self.log.size_of(units) as u128;
        }
        (found, from)
    }

    /// Prints a warning if the log's jobs exceed the capacity of its header, which counts where none is `given`.
    pub(crate) fn note_excess(&self, given: Option<u32>, console: &Console) {
        if let Some(excess) = peak_above_stated(&self.workload).filter(|_| given.is_none()) {
            console.note(&excess.warning());
        }
    }

    /// Returns the id by which the log calls a job; its place by submission, from 1, if it has none.
    pub(crate) fn id(&self, job: usize) -> JobId {
        let row = self.log.row(job);
        let known = self.ids.get(row).filter(|id| id.is_known());
        known.cloned().unwrap_or(JobId { number: row as u64 + 1, text: None })
    }

    /// Finds the job that an id names. An id may name several jobs, such as the tasks of an array: then it is the first of those
    /// that waited longest, with a note.
    pub(crate) fn job(&self, asked: &str, console: &Console) -> Result<usize, Failure> {
        let asked = asked.trim();
        let jobs = 0..self.log.jobs().len();
        let matches = jobs.clone().filter_map(|job| Some((self.id(job).named_by(asked)?, job)));
        let matches: Vec<_> = matches.collect();
        let best = matches.iter().map(|(how, _)| *how).max();
        let named: Vec<usize> = matches.iter().filter(|(how, _)| Some(*how) == best).map(|(_, job)| *job).collect();
        // Of equal waits `max_by_key` returns the last.
        let Some(found) = named.iter().copied().rev().max_by_key(|job| self.log.jobs()[*job].wait()) else {
            return Err(self.no_job(asked));
        };
        if named.len() > 1 {
            let mut ids: Vec<String> = named.iter().map(|job| self.id(*job).to_string()).collect();
            ids.dedup();
            let longest = self.id(found);
            console.note(&match ids.as_slice() {
                [_] => format!(
                    "The log has {} of job {asked}; the one that waited longest is taken.",
                    counted(named.len(), "record", "records")
                ),
                _ => {
                    let more = ids.len().saturating_sub(LISTED);
                    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                    let listed = ids.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
                    format!(
                        "{asked} names {} that started: {listed}{more}; {longest}, which waited longest, is taken.",
                        counted(named.len(), "job", "jobs")
                    )
                }
            });
        } else if self.ids.is_empty() {
            console.note(&format!("The log has no ids of jobs; {asked} is a place in it by submission."));
        }
        Ok(found)
    }

    fn no_job(&self, asked: &str) -> Failure {
        let jobs = self.log.jobs().len();
        let (first, last) = (self.id(0), self.id(jobs - 1));
        let name = &self.name;
        Failure::Input(match self.ids.is_empty() {
            true => format!(
                "{name}: found no job {asked}: the log has no ids of jobs (a stored workload keeps none), expected a place in \
                 it by submission, whose first is {first} and whose last is {last}; to ask by id, give the log itself"
            ),
            false => format!(
                "{name}: found no job {asked} that started, expected one of the log, whose first is {first} and whose last is \
                 {last}"
            ),
        })
    }
}

/// Returns the place at which a log states its processors.
fn stated_by(key: &str) -> &'static str {
    match key {
        "MaxProcs" => "MaxProcs of the log",
        _ => "MaxNodes of the log",
    }
}
