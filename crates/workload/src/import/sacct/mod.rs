//! Reads Slurm accounting as text: the output of `sacct -X -P --noconvert` with its header, from Slurm 22.05 to 25.11.
//!
//! Columns are located by name; their order and additional columns do not matter. A job holds its `AllocTRES` from
//! start to end, or what it requested, as the options say. The resources are `cpu`, `mem` in bytes, and `gpu`.

mod array;
mod columns;
mod command_options;
mod gpu_types;
mod nice;
mod requires;
mod tasks;
mod times;
mod whole_nodes;

use evenhand_model::{Detail, Details, Resource, Task, WorkloadBuilder, expand_hostlist, parse_licences};

use super::error::{FieldError, quoted};
use super::lines::{for_each_line, utf8};
use super::parse_number::{NANO, fits, leading_digits};
use super::summary::{KeptIds, Tally, UNKNOWN_USER};
use super::{ImportError, ImportOptions, JobId, Part, Processors, counted, started_early};
use crate::byte_source::{Meter, Shard};
use crate::outcome;
use crate::slurm_notation::{self, Amounts, NamedGres, limit, memory_request, tres};
pub(super) use columns::looks_headerless;
use columns::{Column, Columns, HeaderError, LAYOUTS};
pub(in crate::import) use gpu_types::{GpuTypes, HELD_TYPE, HELD_TYPE_SENTENCE, TYPE_ALONE, TYPE_ALONE_SENTENCE};
pub(in crate::import) use requires::with_layout;
pub(in crate::import) use tasks::Asked;
use times::{BY_DIFFERENCE, ENDED, JobTimes, UTC, times};

/// A generic resource other than GPUs that a job names and a replay does not follow.
pub(super) const OTHER_GRES: &str = "other generic resources";
pub(super) const OTHER_GRES_SENTENCE: &str =
    "a generic resource other than GPUs in TRES (gres/fpga), which a replay does not follow.";
/// A component of a heterogeneous job.
pub(super) const COMPONENT: &str = "component of a heterogeneous job";
pub(super) const COMPONENT_SENTENCE: &str = "the id of a component of a heterogeneous job (such as 100+0); a replay starts each \
    component by itself, and not all of a job at once.";
const NO_MEMORY: &str = "no memory";
const NOT_TRES: &str = "not from TRES";
const NO_USER: &str = "no user";
const NODE_LIST: &str = "malformed node list";
const LICENCES: &str = "licences that are left out";
const CONSTRAINTS: &str = "constraints that are left out";
const EARLY: &str = "started before submission";
const MALFORMED_OPTION: &str = "malformed optional field";
const UNKNOWN_STATE: &str = "unknown state";

pub(super) fn read(
    shard: Shard,
    options: &ImportOptions,
    meter: &Meter<'_>,
    mut tally: Tally,
) -> Result<Part, ImportError> {
    let resources = [Resource::new("cpu", ""), Resource::new("mem", "B"), Resource::new("gpu", "")];
    let mut builder = options.builder(resources);
    let mut columns: Option<Columns> = None;
    let mut header_error = None;
    let file = shard.name.clone();
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        // Without a valid header no row can be read; the error is returned once, at the end.
        if header_error.is_some() {
            return Ok(());
        }
        let Some(columns) = &columns else {
            let found = match (&options.columns, looks_headerless(line)) {
                (Some(names), _) => Columns::named(names, line),
                (None, false) => Columns::find(line),
                (None, true) => match Columns::recognised(line) {
                    Some((found, whose)) => {
                        tally.adjust(whose);
                        Ok(found)
                    }
                    None => Err(columns::no_header(line)),
                },
            };
            match found {
                Ok(found) => {
                    let row_too = !found.is_header(line);
                    let found = columns.insert(found);
                    if row_too {
                        tally.rows_read += 1;
                        return row(&found.split(line)?, options, &mut builder, tally);
                    }
                }
                Err(error) => header_error = Some(error),
            }
            return Ok(());
        };
        // Concatenated outputs repeat the header.
        if columns.is_header(line) {
            return Ok(());
        }
        tally.rows_read += 1;
        row(&columns.split(line)?, options, &mut builder, tally)?;
        tally.held = builder.len() as u64;
        Ok(())
    })?;
    match header_error {
        Some(HeaderError { found, expected, remedy }) => {
            Err(ImportError::Shape { file, found, expected, remedy: remedy.unwrap_or(COMMAND).to_string() })
        }
        None => Ok(Part { builder, tally }),
    }
}

const COMMAND: &str = "produce it with: sacct -X -P --noconvert -a -S START -E END -o \
    JobID,User,Account,Partition,QOS,State,Submit,Start,End,ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES";

/// The fields of one row, by column.
struct Row<'a> {
    columns: &'a Columns,
    /// The byte where each field starts, and its text.
    fields: Vec<(usize, &'a [u8])>,
}

impl<'a> Row<'a> {
    /// Returns the field of a column, without blanks; `None` if the column is absent or the field is empty.
    fn get(&self, column: Column) -> Option<(usize, &'a [u8])> {
        let (at, text) = self.fields[self.columns.index(column)?];
        let text = text.trim_ascii();
        (!text.is_empty()).then_some((at, text))
    }

    fn text(&self, column: Column, what: &'static str) -> Result<Option<&'a str>, Box<FieldError>> {
        self.get(column).map(|(at, text)| utf8(text, at, what)).transpose()
    }

    fn count(&self, column: Column) -> Result<Option<u128>, Box<FieldError>> {
        let count = |(at, text): (usize, &[u8])| {
            slurm_notation::count(text).ok_or_else(|| FieldError::new(at, text, format!("{column:?}, a number")))
        };
        self.get(column).map(count).transpose()
    }
}

fn is_none(text: &[u8]) -> bool {
    [&b"Unknown"[..], b"None", b"N/A", b"NONE"].contains(&text)
}

/// Returns an optional field, or `None` if it is malformed and `lenient`.
fn optional<T>(
    field: Result<Option<T>, Box<FieldError>>,
    lenient: bool,
    tally: &mut Tally,
) -> Result<Option<T>, Box<FieldError>> {
    match field {
        Err(_) if lenient => {
            tally.adjust(MALFORMED_OPTION);
            Ok(None)
        }
        other => other,
    }
}

fn row(
    row: &Row<'_>,
    options: &ImportOptions,
    builder: &mut WorkloadBuilder,
    tally: &mut Tally,
) -> Result<(), Box<FieldError>> {
    let lenient = options.lenient;
    let (_, id) = row.get(Column::JobID).or(row.get(Column::JobIDRaw)).unwrap_or_default();
    // 123.batch, 123.extern, 123.0, 123_4.0, 123+1.0
    if id.contains(&b'.') {
        tally.drop("job steps, which sacct -X omits");
        return Ok(());
    }
    let job = id_of(row);
    let Some(JobTimes { submit, start, length, is_local }) = times(row, &job, tally)? else { return Ok(()) };
    let Some(held) = amounts(row, options.processors, lenient, tally)? else { return Ok(()) };
    if is_local {
        tally.adjust(UTC);
    }
    let named = |column: Column| row.get(column).map(|(_, list)| NamedGres::of_text(list));
    let (req_gres, held_gres) = (named(Column::ReqTRES), named(Column::AllocTRES));
    if req_gres.as_ref().or(held_gres.as_ref()).is_some_and(|named| named.has_others) {
        tally.adjust(OTHER_GRES);
    }
    if id.contains(&b'+') {
        tally.adjust(COMPONENT);
    }
    // What cannot be read is not known apart.
    let other = |_| amounts(row, Processors::Requested, true, &mut Tally::default()).ok().flatten();
    let asked =
        Some(()).filter(|()| options.processors == Processors::Allocated && states_requests(row)).and_then(other);
    // Clocks are set, and accounting is repaired by hand.
    let submit = if start < submit {
        tally.adjust(EARLY);
        start
    } else {
        submit
    };
    let user = row.text(Column::User, "a user's name")?;
    if user.is_none() {
        tally.adjust(NO_USER);
    }
    let requested = row.get(Column::TimelimitRaw).map(|f| (f, true)).or(row.get(Column::Timelimit).map(|f| (f, false)));
    let requested = match requested {
        Some(((at, text), minutes)) => {
            let limit = limit(text, minutes);
            let expected = "a time limit such as 1-00:00:00, or minutes";
            optional(limit.ok_or_else(|| FieldError::new(at, text, expected)), lenient, tally)?
        }
        None => None,
    };
    let state = row.text(Column::State, "a state")?;
    let ended = match state {
        Some(state) if outcome::state_of_slurm(state).is_none() => {
            tally.adjust_as(UNKNOWN_STATE, || quoted(state.as_bytes()));
            Some(outcome::UNKNOWN)
        }
        state => state.and_then(outcome::of_slurm),
    };
    let qos = row.text(Column::QOS, "a QOS")?.filter(|text| !is_none(text.as_bytes()));
    let reservation = row.text(Column::Reservation, "a reservation")?.filter(|text| !is_none(text.as_bytes()));
    let on = row.text(Column::NodeList, "a list of nodes")?.filter(|text| !text.contains("None assigned"));
    let on = on.filter(|list| {
        let is_list = expand_hostlist(list).is_some_and(|names| !names.is_empty());
        if !is_list {
            tally.adjust(NODE_LIST);
        }
        is_list
    });
    let constraints = row.text(Column::Constraints, "features")?.map(slurm_notation::parse_constraints);
    if constraints == Some(None) {
        tally.adjust(CONSTRAINTS);
    }
    let submit_line = row.get(Column::SubmitLine).map(|(_, line)| String::from_utf8_lossy(line));
    let submit_line = submit_line.as_deref();
    let processors = asked.as_ref().unwrap_or(&held)[0] / NANO;
    let nodes = nodes(row);
    let of_command = Asked {
        command: submit_line,
        processors: u64::try_from(processors).unwrap_or(u64::MAX),
        least_nodes: least_nodes(row),
        nodes: nodes.map(u64::from),
    };
    let req_text = row.text(Column::ReqGRES, "generic resources")?;
    let gpu_types = GpuTypes {
        requested: req_gres.as_ref(),
        held: held_gres.as_ref(),
        gres: req_text.as_slice(),
        command: submit_line,
    };
    let requires = with_layout(constraints.flatten(), gpu_types.words(tally), of_command, held[2] > 0);
    let licences = licences(row)?;
    if licences == Some(None) {
        tally.adjust(LICENCES);
    }
    let licences = licences.flatten();
    let array = array::of_task(id, submit_line);
    let nice = submit_line.and_then(nice::of_command);
    builder.push(&Task {
        submit,
        start: Some(start),
        eligible: row.time(Column::Eligible)?.filter(|time| *time >= submit),
        details: Details::from_fn(|detail| match detail {
            Detail::Chunks => None,
            Detail::Requires => requires.as_deref(),
            Detail::Qos => qos,
            Detail::Machines => on,
            Detail::Outcome => ended,
            Detail::Reservation => reservation,
            Detail::Licences => licences.as_deref(),
            Detail::Array => array.as_deref(),
            Detail::Nice => nice.as_deref(),
        }),
        duration: length,
        requested,
        user: user.unwrap_or("unknown"),
        account: row.text(Column::Account, "an account's name")?,
        queue: row.text(Column::Partition, "a partition's name")?,
        amounts: &held,
        requested_amounts: asked.as_ref().map(<[u128; 3]>::as_slice),
        count: 1,
        nodes,
    });
    tally.job(job, submit, Some(start), KeptIds::of(options));
    Ok(())
}

/// Returns the id of the job of a row: JobID, with the number JobIDRaw.
fn id_of(row: &Row<'_>) -> JobId {
    let (_, id) = row.get(Column::JobID).or(row.get(Column::JobIDRaw)).unwrap_or_default();
    let job = JobId::of(&String::from_utf8_lossy(id));
    match row.get(Column::JobIDRaw) {
        Some((_, number)) => job.with_number(leading_digits(number).0),
        None => job,
    }
}

/// Returns the licences of a row, of the column Licenses or else of `license/NAME` in its TRES; `Some(None)` if they are of
/// a form that is left out.
fn licences(row: &Row<'_>) -> Result<Option<Option<String>>, Box<FieldError>> {
    let text = row.text(Column::Licenses, "licences")?.filter(|text| !is_none(text.as_bytes()) && *text != "(null)");
    if let Some(text) = text {
        let known = parse_licences(text).is_some();
        return Ok(Some(known.then(|| text.replace(';', ","))));
    }
    let mut found = Vec::new();
    for column in [Column::AllocTRES, Column::ReqTRES] {
        let text = row.text(column, "TRES")?.unwrap_or_default();
        if found.is_empty() {
            let parts = text.split(',').filter_map(|part| part.trim().strip_prefix("license/"));
            found.extend(parts.map(|part| part.replacen('=', ":", 1)));
        }
    }
    let text = found.join(",");
    Ok((!found.is_empty()).then(|| parse_licences(&text).is_some().then_some(text)))
}

/// Returns the number of nodes of a job, of those it had if that is known. A number that cannot be read is none.
fn nodes(row: &Row<'_>) -> Option<u32> {
    let whole = |nano: u128| u32::try_from(nano / NANO).ok().filter(|n| *n > 0);
    let counts = [Column::AllocNodes, Column::NNodes, Column::ReqNodes].into_iter();
    let mut counts = counts.filter_map(|column| slurm_notation::count(row.get(column)?.1));
    let lists = [Column::AllocTRES, Column::ReqTRES].into_iter();
    let mut listed = lists.filter_map(|column| tres(row.get(column)?.1).ok()?.node);
    counts.find_map(whole).or_else(|| listed.find_map(whole))
}

/// Returns the least number of nodes that a job requested.
fn least_nodes(row: &Row<'_>) -> Option<u64> {
    let of_column = || slurm_notation::count(row.get(Column::ReqNodes)?.1);
    let of_list = tres(row.get(Column::ReqTRES).map_or(&b""[..], |(_, list)| list)).ok().and_then(|list| list.node);
    of_list.or_else(of_column).and_then(|nano| u64::try_from(nano / NANO).ok())
}

/// Returns whether a row states what the job requested, apart from what it held.
fn states_requests(row: &Row<'_>) -> bool {
    let requested =
        row.get(Column::ReqTRES).filter(|(_, list)| Some(*list) != row.get(Column::AllocTRES).map(|(_, l)| l));
    requested.is_some() || row.get(Column::ReqCPUS).is_some()
}

/// Returns the amounts that a job held, or requested, in billionths: CPUs, memory in bytes, GPUs.
fn amounts(
    row: &Row<'_>,
    processors: Processors,
    lenient: bool,
    tally: &mut Tally,
) -> Result<Option<[u128; 3]>, Box<FieldError>> {
    let (lists, counts) = match processors {
        Processors::Allocated => {
            ([Column::AllocTRES, Column::ReqTRES], [Column::AllocCPUS, Column::NCPUS, Column::ReqCPUS])
        }
        Processors::Requested => {
            ([Column::ReqTRES, Column::AllocTRES], [Column::ReqCPUS, Column::AllocCPUS, Column::NCPUS])
        }
    };
    let list = row.get(lists[0]).or(row.get(lists[1]));
    let held = match list {
        Some((at, text)) => {
            tres(text).map_err(|e| FieldError::new(at + e.at, e.found, "TRES such as cpu=8,mem=125000M,gres/gpu=1"))?
        }
        None => Amounts::default(),
    };
    let mut cpu = held.cpu;
    for column in counts {
        if cpu.is_none() {
            cpu = row.count(column)?.filter(|n| *n > 0);
        }
    }
    let Some(cpu) = cpu.filter(|n| *n > 0) else {
        tally.drop("no number of CPUs");
        return Ok(None);
    };
    let mut mem = held.mem;
    if let (None, Some((at, text))) = (mem, row.get(Column::ReqMem)) {
        let mut nodes = None;
        for column in [Column::AllocNodes, Column::NNodes, Column::ReqNodes] {
            nodes = nodes.or(row.count(column)?.filter(|n| *n > 0));
        }
        let request = memory_request(text, cpu, nodes);
        let expected = "memory such as 4000M, 4Gc (per CPU) or 4Gn (per node)";
        mem = optional(request.ok_or_else(|| FieldError::new(at, text, expected)), lenient, tally)?;
    }
    if held.cpu.is_none() {
        tally.adjust(NOT_TRES);
    }
    if mem.is_none() {
        tally.adjust(NO_MEMORY);
    }
    let amounts = [cpu, mem.unwrap_or(0), held.gpu.unwrap_or(0)];
    if let Some(large) = amounts.iter().find(|a| !fits(**a)) {
        let at = list.map_or(0, |(at, _)| at);
        return Err(FieldError::described(at, format!("an amount of {large} billionths"), "amounts below 10^18"));
    }
    Ok(Some(amounts))
}

/// Returns the assumptions as sentences, and removes memory and GPUs if no job has any.
pub(super) fn assumptions(builder: &mut WorkloadBuilder, tally: &Tally, options: &ImportOptions) -> Vec<String> {
    ["mem", "gpu"].iter().for_each(|name| builder.remove_unused(name));
    let mut sentences = Vec::new();
    if options.processors == Processors::Requested {
        sentences.push("Amounts are the requested ones (ReqTRES), or else the allocated ones (AllocTRES).".to_string());
    }
    for (whose, _) in LAYOUTS {
        if tally.adjusted.of(whose) > 0 {
            sentences.push(format!("There is no header; the columns have the shape of {whose}."));
        }
    }
    for (what, sentence) in [
        (UTC, "times without a time zone, which are taken as UTC."),
        (BY_DIFFERENCE, "no elapsed time; it is computed as the end minus the start."),
        (ENDED, "neither an end nor a state, which is taken as ended."),
        (NOT_TRES, "no CPUs in TRES; CPUs are read from AllocCPUS, NCPUS or ReqCPUS, and memory from ReqMem."),
        (NO_MEMORY, "no known memory, which is set to 0."),
        (NO_USER, UNKNOWN_USER),
        (NODE_LIST, "a NodeList that is no list of nodes such as n[01-03,7]; it is left out."),
        (CONSTRAINTS, "Constraints with counts of nodes (a*2) or matching OR ([a|b]), which are left out."),
        (LICENCES, "Licenses of another form than name:count,name:count, which are left out."),
        (HELD_TYPE, HELD_TYPE_SENTENCE),
        (TYPE_ALONE, TYPE_ALONE_SENTENCE),
        (OTHER_GRES, OTHER_GRES_SENTENCE),
        (COMPONENT, COMPONENT_SENTENCE),
        (MALFORMED_OPTION, "a malformed optional field, which is taken as unknown."),
    ] {
        let n = tally.adjusted.of(what);
        if n > 0 {
            sentences.push(format!("{} {sentence}", counted(n, "job has", "jobs have")));
        }
    }
    if let Some(example) = tally.example(UNKNOWN_STATE) {
        let jobs = counted(tally.adjusted.of(UNKNOWN_STATE), "job has", "jobs have");
        sentences.push(format!("{jobs} a State that is none of Slurm's ({example}); how they ended is unknown."));
    }
    sentences.extend(started_early(tally.adjusted.of(EARLY)));
    sentences
}
