//! A job as an accounting log describes it, and the rules that decide whether it becomes a task.

use std::borrow::Cow;

use evenhand_model::{Details, Nano, Resource, Span, Task, Time, WorkloadBuilder};

use super::super::error::FieldError;
use super::super::parse_number::fits;
use super::super::summary::{KeptIds, Tally, UNKNOWN_USER};
use super::super::{ImportOptions, JobId, Part, Processors, counted, started_early};

/// What the reader of a format knows of one job. Unknown fields are `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobRecord<'a> {
    /// The id by which the log calls the job.
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) submit: Option<Time>,
    pub(crate) start: Option<Time>,
    pub(crate) end: Option<Time>,
    /// The run time; else it is the end minus the start.
    pub(crate) elapsed: Option<Span>,
    pub(crate) requested: Option<Span>,
    pub(crate) user: Option<Cow<'a, str>>,
    pub(crate) account: Option<Cow<'a, str>>,
    pub(crate) queue: Option<Cow<'a, str>>,
    /// The processors, in billionths.
    pub(crate) cpu: Option<Nano>,
    /// The memory, in billionths of a byte.
    pub(crate) mem: Option<Nano>,
    pub(crate) gpu: Option<Nano>,
    /// What it requested, where the record states that apart from what it held: processors, memory and GPUs, in these units.
    pub(crate) asked: Option<[Nano; 3]>,
    /// On how many nodes it ran, or requests to run. 0 is unknown.
    pub(crate) nodes: Option<u64>,
    /// When it could first have started.
    pub(crate) eligible: Option<Time>,
    /// What the log states of it in words.
    pub(crate) details: Details<Option<Cow<'a, str>>>,
    pub(crate) unfinished: Unfinished,
}

/// What happens to a job that has not started or not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unfinished {
    /// It is dropped: the log records what happened.
    #[default]
    Drop,
    /// It runs until its time limit: the list is of jobs that are still to run.
    UntilLimit,
}

/// Collects the jobs of one stream.
pub(crate) struct Jobs {
    pub(crate) builder: WorkloadBuilder,
    pub(crate) tally: Tally,
    pub(super) lenient: bool,
    pub(super) processors: Processors,
    kept_ids: KeptIds,
}

const NO_USER: &str = "no user";
const NO_MEMORY: &str = "no memory";
const TO_LIMIT: &str = "until the limit";
const EARLY: &str = "started before submission";
pub(super) const MALFORMED_OPTION: &str = "malformed optional field";

impl AsMut<Tally> for Jobs {
    fn as_mut(&mut self) -> &mut Tally {
        &mut self.tally
    }
}

impl Jobs {
    pub(crate) fn new(options: &ImportOptions) -> Jobs {
        let resources = [Resource::new("cpu", ""), Resource::new("mem", "B"), Resource::new("gpu", "")];
        let (lenient, processors) = (options.lenient, options.processors);
        let kept_ids = KeptIds::of(options);
        Jobs { builder: options.builder(resources), tally: Tally::default(), lenient, processors, kept_ids }
    }

    /// Adds a job, or counts why it is dropped.
    ///
    /// # Errors
    /// Returns an error if its times contradict each other or an amount is too large.
    pub(crate) fn push(&mut self, job: &JobRecord<'_>) -> Result<(), Box<FieldError>> {
        let Some(duration) = self.duration(job)? else { return Ok(()) };
        let Some(mut submit) = job.submit else {
            self.tally.drop("no submit time");
            return Ok(());
        };
        let first = job.start.map_or(submit, |start| submit.min(start));
        let id = job.id.as_deref().map(JobId::of).unwrap_or_default();
        if self.tally.is_in_another_file(&id, first, job.start) {
            return Ok(());
        }
        let held = [job.cpu, job.mem, job.gpu].map(Option::unwrap_or_default);
        let asked = job.asked.filter(|[cpu, _, gpu]| *cpu > 0 || *gpu > 0);
        let ([cpu, mem, gpu], asked) = match self.processors {
            Processors::Requested => (asked.unwrap_or(held), None),
            Processors::Allocated => (held, asked.filter(|asked| asked.iter().all(|amount| fits(*amount)))),
        };
        if cpu == 0 && gpu == 0 {
            self.tally.drop("no number of processors");
            return Ok(());
        }
        if let Some(large) = [cpu, mem, gpu].into_iter().find(|amount| !fits(*amount)) {
            return Err(FieldError::described(0, format!("an amount of {large} billionths"), "amounts below 10^18"));
        }
        if let Some(start) = job.start.filter(|start| *start < submit) {
            self.tally.adjust(EARLY);
            submit = start;
        }
        let name = |name: &Option<Cow<'_, str>>| name.as_deref().map(str::trim).filter(|n| !n.is_empty()).is_some();
        if !name(&job.user) {
            self.tally.adjust(NO_USER);
        }
        if job.mem.is_none() {
            self.tally.adjust(NO_MEMORY);
        }
        self.builder.push(&Task {
            submit,
            start: job.start,
            duration,
            requested: job.requested,
            user: job.user.as_deref().filter(|_| name(&job.user)).unwrap_or("unknown"),
            account: job.account.as_deref().filter(|_| name(&job.account)),
            queue: job.queue.as_deref().filter(|_| name(&job.queue)),
            amounts: &[cpu, mem, gpu],
            requested_amounts: asked.as_ref().map(<[Nano; 3]>::as_slice),
            count: 1,
            nodes: job.nodes.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0),
            eligible: job.eligible.filter(|time| *time >= submit),
            details: Details::from_fn(|detail| job.details[detail].as_deref().map(str::trim).filter(|t| !t.is_empty())),
        });
        self.tally.job(id, submit, job.start, self.kept_ids);
        Ok(())
    }

    /// Returns the run time of a job; counts the reason if it has none.
    fn duration(&mut self, job: &JobRecord<'_>) -> Result<Option<Span>, Box<FieldError>> {
        if let (Some(start), Some(end)) = (job.start, job.end.filter(|_| job.elapsed.is_none())) {
            if end < start {
                let found = format!("an end {} s before the start", start.since(end));
                return Err(FieldError::described(0, found, "an end that is not before the start"));
            }
            return Ok(Some(end.since(start)));
        }
        if job.elapsed.is_some() && (job.start.is_some() || job.unfinished == Unfinished::UntilLimit) {
            return Ok(job.elapsed);
        }
        if job.unfinished == Unfinished::UntilLimit {
            match job.requested {
                Some(_) => self.tally.adjust(TO_LIMIT),
                None => self.tally.drop("unfinished, without a time limit"),
            }
            return Ok(job.requested);
        }
        self.tally.drop(if job.start.is_none() { "never started" } else { "still running" });
        Ok(None)
    }

    pub(crate) fn finish(self) -> Part {
        Part { builder: self.builder, tally: self.tally }
    }
}

/// Returns the assumptions as sentences, and removes resources that no job has.
pub(crate) fn assumptions(builder: &mut WorkloadBuilder, tally: &Tally, of_format: &[(&str, &str)]) -> Vec<String> {
    ["mem", "gpu", "cpu"].iter().for_each(|name| builder.remove_unused(name));
    let common = [
        (NO_USER, UNKNOWN_USER),
        (NO_MEMORY, "no known memory, which is set to 0."),
        (TO_LIMIT, "not ended; the run time is taken to be the time limit."),
        (MALFORMED_OPTION, "a malformed optional field, which is taken as unknown."),
    ];
    let mut sentences = Vec::new();
    for (what, sentence) in of_format.iter().chain(&common) {
        let n = tally.adjusted.of(what);
        if n > 0 {
            sentences.push(format!("{} {sentence}", counted(n, "job has", "jobs have")));
        }
    }
    sentences.extend(started_early(tally.adjusted.of(EARLY)));
    sentences
}
