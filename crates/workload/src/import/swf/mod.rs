//! Reads the Standard Workload Format, version 2.2, of the Parallel Workloads Archive (Chapin et al., JSSPP 1999): 18
//! whole numbers per job, -1 for unknown values, header comments `; Key: value`.
//!
//! Real logs deviate from it: MetaCentrum's have 21 columns and memory in bytes per node; ALCF's have a 19th column.
//! (The standard itself allows decimals in fields 6 and 7.) A deviation is an error that offers `--relaxed`, with which
//! deviations are counted and reported.

use evenhand_model::{Detail, Details, Resource, Span, Task, Time, WorkloadBuilder};

mod header;
mod row;

use self::header::Header;
use self::row::{
    ALLOCATED, FIELDS, GROUP, JOB, MEMORY, PARTITION, QUEUE, RELAXED, REQUESTED, Row, STATUS, USED, USER, useful_remedy,
};
use super::error::FieldError;
use super::lines::for_each_line;
use super::node_request::{NodeRequest, machines, share};
use super::parse_number::{NANO, fits};
use super::summary::{KeptIds, Tally};
use super::{ImportError, ImportOptions, JobId, MemoryPer, MemoryUnit, Part, Processors, counted};
use crate::byte_source::{Meter, Shard};
use crate::outcome;

/// The status of a cancelled job.
const CANCELLED: i64 = 5;
pub(super) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let memory = Resource::new("mem", options.swf_memory_unit.name());
    let mut log = Log {
        builder: options.builder([Resource::new("cpu", "processors"), memory]),
        options,
        kept_ids: KeptIds::of(options),
        header: Header::default(),
        last_job: None,
        names: Default::default(),
        counts: Counts::default(),
    };
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        match line.trim_ascii_start().strip_prefix(b";") {
            Some(comment) => log.header.add(comment),
            None => {
                tally.rows_read += 1;
                log.row(line, tally)?;
                tally.held = log.builder.len() as u64;
            }
        }
        Ok(())
    })?;
    for (key, value) in log.header.entries() {
        log.builder.add_header(key, value);
    }
    log.counts.add_to(&mut tally);
    Ok(Part { builder: log.builder, tally })
}

struct Log<'a> {
    builder: WorkloadBuilder,
    options: &'a ImportOptions,
    kept_ids: KeptIds,
    header: Header,
    last_job: Option<i64>,
    /// The latest user, group and queue as text: jobs of one user are often consecutive.
    names: [(i64, String); 3],
    counts: Counts,
}

/// The numbers of rows by assumption or deviation.
#[derive(Clone, Copy, Default)]
struct Counts {
    requested_memory: u64,
    used_memory: u64,
    no_memory: u64,
    implausible_memory: u64,
    partition: u64,
    queue_names: u64,
    decimals: u64,
    rounded: u64,
    extra: u64,
    order: u64,
    negative: u64,
    named: u64,
    malformed: u64,
}

const REQUESTED_MEMORY: &str = "requested memory";
const USED_MEMORY: &str = "used memory";
const NO_MEMORY: &str = "no memory";
const IMPLAUSIBLE_MEMORY: &str = "implausible memory";
const PARTITION_AS_QUEUE: &str = "partition";
const QUEUE_NAMES: &str = "names of queues";
const DECIMALS: &str = "decimals";
const ROUNDED: &str = "rounded";
const EXTRA: &str = "extra columns";
const ORDER: &str = "order";
const NEGATIVE: &str = "negative";
const NAMES: &str = "names";
const MALFORMED: &str = "malformed optional field";

impl Counts {
    fn add_to(self, tally: &mut Tally) {
        for (what, n) in [
            (REQUESTED_MEMORY, self.requested_memory),
            (USED_MEMORY, self.used_memory),
            (NO_MEMORY, self.no_memory),
            (IMPLAUSIBLE_MEMORY, self.implausible_memory),
            (PARTITION_AS_QUEUE, self.partition),
            (QUEUE_NAMES, self.queue_names),
            (DECIMALS, self.decimals),
            (ROUNDED, self.rounded),
            (EXTRA, self.extra),
            (ORDER, self.order),
            (NEGATIVE, self.negative),
            (NAMES, self.named),
            (MALFORMED, self.malformed),
        ] {
            tally.adjusted.add(what.into(), n);
        }
    }
}

impl Log<'_> {
    fn row(&mut self, line: &[u8], tally: &mut Tally) -> Result<(), Box<FieldError>> {
        let row =
            Row::parse(line, self.options.relaxed, self.options.lenient).map_err(|error| useful_remedy(error, line))?;
        let fields = &row.fields;
        let job = fields[JOB].whole;
        let mut counts = self.counts;
        if let Some(last) = self.last_job.filter(|last| job <= *last) {
            if !self.options.relaxed {
                let found = format!("job {job} after job {last}");
                return Err(
                    FieldError::described(fields[JOB].at as usize, found, "job numbers that increase").remedy(RELAXED)
                );
            }
            counts.order += 1;
        }
        counts.decimals += u64::from(row.decimals);
        counts.rounded += u64::from(row.rounded);
        counts.negative += u64::from(row.negative);
        counts.extra += u64::from(!row.extra.is_empty());
        counts.named += u64::from(row.names.iter().any(Option::is_some));
        counts.malformed += u64::from(row.malformed);

        let [submit, wait, run, requested] = row.time_fields()?;
        let (first, second) = match self.options.processors {
            Processors::Allocated => (ALLOCATED, REQUESTED),
            Processors::Requested => (REQUESTED, ALLOCATED),
        };
        let processor_field = if fields[first].positive().is_some() { first } else { second };
        let processors = fields[processor_field].positive();
        let (Some(submit), Some(run), Some(processors)) = (submit, run, processors) else {
            // Cancelled while it waited: it lacks processors and a run time because it never had any.
            let never_ran = fields[STATUS].whole == CANCELLED && run.is_none_or(|run| run == 0);
            tally.drop(match (submit, run) {
                (None, _) => "unknown submit time",
                _ if never_ran => "cancelled before they started",
                (_, None) => "unknown run time",
                _ => "unknown number of processors",
            });
            (self.last_job, self.counts) = (Some(job), counts);
            return Ok(());
        };
        row.check_processors(line, processor_field)?;
        let memory_field = if fields[MEMORY].positive().is_some() { MEMORY } else { USED };
        let per = fields[memory_field].positive().unwrap_or(0);
        *match memory_field {
            _ if per == 0 => &mut counts.no_memory,
            MEMORY => &mut counts.requested_memory,
            _ => &mut counts.used_memory,
        } += 1;
        let nodes = match self.options.swf_memory_per {
            MemoryPer::Node => row.nodes()?.unwrap_or(1),
            MemoryPer::Processor | MemoryPer::Job => 1,
        };
        // Most logs have no memory: avoid a 128-bit division per row.
        let total = |processors: u128| {
            let copies = match self.options.swf_memory_per {
                MemoryPer::Processor => processors,
                MemoryPer::Node => u128::from(nodes) * NANO,
                MemoryPer::Job => NANO,
            };
            let total = if per == 0 { Some(0) } else { per.checked_mul(copies).map(|m| m / NANO) };
            total.filter(|m| fits(*m))
        };
        let memory = total(processors).ok_or_else(|| {
            // The larger of the two factors is the one that is wrong.
            let by_memory = self.options.swf_memory_per != MemoryPer::Processor || per >= processors;
            let (field, of) = if by_memory { (memory_field, "") } else { (processor_field, " of their memory") };
            let expected = format!("{}, less than 10^18 {}{of} in total", FIELDS[field], self.options.swf_memory_unit);
            FieldError::new(fields[field].at as usize, row.text(line, field), expected)
        })?;
        counts.implausible_memory += u64::from(memory > most_memory(self.options).saturating_mul(processors));
        let wanted = fields[REQUESTED].positive().filter(|wanted| *wanted != processors);
        let wanted = wanted.and_then(|wanted| Some([wanted, total(wanted)?]));
        // A column 21 of another meaning is none.
        let request = row.request().ok().flatten();
        let each = |each: u128| match self.options.swf_memory_per {
            _ if memory == 0 => 0,
            MemoryPer::Processor => share(per, each, NANO),
            MemoryPer::Node => per,
            MemoryPer::Job => share(per, each, processors),
        };
        let chunks = request.as_ref().and_then(|request| request.chunks(processors, each));
        let requires = request.as_ref().map(|request| request.requires.as_str()).filter(|words| !words.is_empty());
        let on = row.column(0).and_then(machines);
        let details = Details::from_fn(|detail| match detail {
            Detail::Chunks => chunks.as_deref(),
            Detail::Requires => requires,
            Detail::Qos => None,
            Detail::Machines => on.as_deref(),
            Detail::Outcome => outcome_of(fields[STATUS].whole),
            Detail::Reservation | Detail::Licences | Detail::Array | Detail::Nice => None,
        });
        let submit = Time::from_nanos(submit);
        // The partition replaces the queue in logs without queues. MetaCentrum's have their names in column 20.
        let queue_name = row.queue_name();
        let has_queue = fields[QUEUE].whole != -1 || row.names[2].is_some();
        let queue = if has_queue { &fields[QUEUE] } else { &fields[PARTITION] };
        let has_partition = queue.whole != -1 || row.names[3].is_some();
        counts.queue_names += u64::from(!has_queue && queue_name.is_some());
        counts.partition += u64::from(!has_queue && queue_name.is_none() && has_partition);
        for ((value, text), id) in self.names.iter_mut().zip([fields[USER].whole, fields[GROUP].whole, queue.whole]) {
            if *value != id || text.is_empty() {
                (*value, *text) = (id, id.to_string());
            }
        }
        let name = |i: usize| {
            // The partition's name follows the queue's.
            let named = row.names[if i == 2 && !has_queue { 3 } else { i }];
            named.or_else(|| Some(self.names[i].1.as_str()).filter(|_| self.names[i].0 != -1))
        };
        let start = wait.and_then(|w| submit.checked_add(Span::from_nanos(w)));
        self.builder.push(&Task {
            submit,
            start,
            duration: Span::from_nanos(run),
            requested: requested.map(Span::from_nanos),
            user: name(0).unwrap_or("unknown"),
            account: name(1),
            queue: queue_name.filter(|_| !has_queue).or_else(|| name(2)),
            amounts: &[processors, memory],
            requested_amounts: wanted.as_ref().map(<[u128; 2]>::as_slice),
            count: 1,
            nodes: request.as_ref().and_then(NodeRequest::nodes),
            details,
            ..Task::default()
        });
        let id = JobId { number: u64::try_from(job).unwrap_or(0), text: None };
        tally.job(id, submit, start, self.kept_ids);
        (self.last_job, self.counts) = (Some(job), counts);
        Ok(())
    }
}

/// Returns the memory per processor beyond which a log's fields more likely have another unit: 1 TiB.
fn most_memory(options: &ImportOptions) -> u128 {
    match options.swf_memory_unit {
        MemoryUnit::B => 1 << 40,
        MemoryUnit::KB => 1 << 30,
        MemoryUnit::MB => 1 << 20,
    }
}

/// How a job of a status ended; `None` where the status says nothing.
fn outcome_of(status: i64) -> Option<&'static str> {
    match status {
        0 => Some(outcome::FAILED),
        1 => Some(outcome::COMPLETED),
        CANCELLED => Some(outcome::CANCELLED),
        _ => None,
    }
}

/// Returns the assumptions as sentences, and removes the memory column if no job has any.
pub(super) fn assumptions(builder: &mut WorkloadBuilder, tally: &Tally, options: &ImportOptions) -> Vec<String> {
    let rows = |what| tally.adjusted.of(what);
    let jobs = |n| counted(n, "job", "jobs");
    let processors = match options.processors {
        Processors::Allocated => "Processors are the allocated ones (field 5), or else the requested ones (field 8).",
        Processors::Requested => "Processors are the requested ones (field 8), or else the allocated ones (field 5).",
    };
    let mut sentences = vec![processors.to_string()];
    if rows(REQUESTED_MEMORY) + rows(USED_MEMORY) == 0 {
        sentences.push("No job has a memory value, so cpu is the only resource.".to_string());
    } else {
        sentences.push(format!(
            "Memory is in {} per {}: requested (field 10) for {}, used (field 7) for {}, unknown and set to 0 for {}.",
            options.swf_memory_unit,
            options.swf_memory_per,
            jobs(rows(REQUESTED_MEMORY)),
            jobs(rows(USED_MEMORY)),
            jobs(rows(NO_MEMORY)),
        ));
    }
    let implausible = rows(IMPLAUSIBLE_MEMORY);
    if 2 * implausible > rows(REQUESTED_MEMORY) + rows(USED_MEMORY) {
        sentences.push(format!(
            "{} more than 1 TiB of memory per processor: check what the fields mean, and state it with --swf-memory-unit \
             (B, KB or MB) and --swf-memory-per (processor, node or job).",
            counted(implausible, "job has", "jobs have"),
        ));
    }
    builder.remove_unused("mem");
    for (n, what) in [
        (rows(PARTITION_AS_QUEUE), "no queue; the partition (field 16) is used instead."),
        (rows(QUEUE_NAMES), "no queue in field 15; the name in column 20 is used instead."),
        (
            rows(DECIMALS),
            "decimals where the standard requires whole numbers, which are kept in times, processors and memory, and dropped elsewhere.",
        ),
        (rows(ROUNDED), "more than nine decimals, rounded to nine."),
        (
            rows(EXTRA),
            "more than 18 columns; of the additional ones, machines (19), queues (20) and nodes (21) are read.",
        ),
        (rows(NEGATIVE), "negative numbers other than -1, which are taken as unknown."),
        (rows(NAMES), "names where the standard has numbers of users, groups, queues or partitions."),
        (rows(MALFORMED), "a malformed optional field, which is taken as unknown."),
        (rows(ORDER), "a number that is not greater than that of the job before."),
    ] {
        if n > 0 {
            sentences.push(format!("{} {what}", counted(n, "job has", "jobs have")));
        }
    }
    sentences
}
