//! Reads the accounting logs of PBS Pro, OpenPBS and TORQUE: a line is `MM/DD/YYYY HH:MM:SS;T;id;key=value key=value …`.
//!
//! A job is one record of type E, which its end writes; a job that was run again has one for each run. Times come from
//! the keys in seconds since 1970, not from the date of the line, which has no zone.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use evenhand_model::{Detail, Details, Nano};

use super::pbs_select::{ChunkSize, Fault, Place, Select};
use super::pbs_vnodes;
use super::{JobRecord, Jobs, OTHER_EVENT, clock_or_seconds, epoch, optional, size};
use crate::byte_source::{Meter, Shard};
use crate::import::error::FieldError;
use crate::import::lines::{for_each_line, utf8};
use crate::import::node_request::{NodeRequest, share};
use crate::import::parse_number::{NANO, decimal};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part, Processors};
use crate::outcome;

const VIRTUAL: &str = "virtual memory";
const NODES: &str = "nodes of another form";
const SELECT: &str = "chunks that are not all of a job";
const VNODES: &str = "allocated on vnodes";
const SLOTS: &str = "allocated slots";
const AS_REQUESTED: &str = "no allocated amounts";
const REQUESTED: &str = "requested amounts";
const NOT_REQUESTED: &str = "no requested amounts";
pub(in crate::import) const ASSUMED: &[(&str, &str)] = &[
    (VIRTUAL, "a request of virtual memory only (vmem, pvmem), which is taken as their memory."),
    (NODES, "a Resource_List.nodes that is no list such as 2:ppn=8+1:ppn=4; its sizes and properties are left out."),
    (SELECT, "a Resource_List.select whose processors are not the job's ncpus; its chunks are left out."),
    (VNODES, "the amounts that were allocated (exec_vnode)."),
    (SLOTS, "the processors that were allocated (total_execution_slots, exec_host), and other amounts as requested."),
    (AS_REQUESTED, "no allocated amounts, so that the requested ones are taken."),
    (REQUESTED, "the amounts that were requested (Resource_List)."),
    (NOT_REQUESTED, "no requested processors, so that the allocated amounts are taken."),
];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        tally.held = jobs.builder.len() as u64;
        // Servers write no comments; collections of logs do.
        if matches!(line.first(), Some(b';' | b'#')) {
            return Ok(());
        }
        tally.rows_read += 1;
        row(line, &mut jobs)
    })?;
    jobs.tally.merge(tally);
    Ok(jobs.finish())
}

/// Returns whether a line is one of these logs.
pub(in crate::import) fn is_record(line: &[u8]) -> bool {
    let mut parts = line.splitn(4, |b| *b == b';');
    let date = parts.next().is_some_and(|d| d.len() == 19 && d[2] == b'/' && d[5] == b'/' && d[13] == b':');
    date && parts.next().is_some_and(|kind| kind.len() == 1 && kind[0].is_ascii_alphabetic()) && parts.next().is_some()
}

fn row(line: &[u8], jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    if !is_record(line) {
        return Err(FieldError::new(0, line, "MM/DD/YYYY HH:MM:SS;T;id;key=value …"));
    }
    let mut parts = line.splitn(4, |b| *b == b';');
    let (_, kind) = (parts.next(), parts.next().unwrap_or_default());
    let id = String::from_utf8_lossy(parts.next().unwrap_or_default());
    if kind != b"E" {
        jobs.tally.drop(OTHER_EVENT);
        return Ok(());
    }
    let message = parts.next().unwrap_or_default();
    let offset = line.len() - message.len();
    let fields = Fields { of: fields(message), offset };
    let user = fields.name("user")?;
    let submit = fields.parse("ctime", epoch, TIME)?.or(fields.parse("qtime", epoch, TIME)?);
    let start = fields.parse("start", epoch, TIME)?;
    let end = fields.parse("end", epoch, TIME)?;
    let requested = optional(fields.parse("Resource_List.walltime", clock_or_seconds, DURATION), jobs)?;
    let project = fields.name("project")?.filter(|p| p != "_pbs_project_default");
    let account = fields.name("account")?.or(project).or(fields.name("group")?);
    let select = select(&fields, jobs)?;
    let (held, asked) = amounts(&fields, select.as_ref().and_then(|(select, _)| select.total()), jobs)?;
    let [cpu, memory, gpu] = held;
    let [laid_out, memory_laid_out, _] = if jobs.processors == Processors::Requested { asked } else { held };
    let details = details(&fields, laid_out, memory_laid_out, select, jobs)?;
    jobs.push(&JobRecord {
        id: Some(id),
        submit,
        start,
        end,
        requested,
        user,
        account,
        queue: fields.name("queue")?,
        cpu,
        mem: memory,
        gpu,
        asked: asked[0].map(|_| asked.map(Option::unwrap_or_default)),
        nodes: nodes(&fields)?,
        eligible: fields.parse("etime", epoch, TIME)?,
        details,
        ..JobRecord::default()
    })
}

/// Processors, memory and GPUs.
type Amounts = [Option<Nano>; 3];

/// Returns what a job held, and what it requested; `select` is the sum of its chunks. What was allocated is not known of
/// every job and resource: then it is what was requested.
fn amounts(
    fields: &Fields<'_>,
    select: Option<ChunkSize>,
    jobs: &mut Jobs,
) -> Result<(Amounts, Amounts), Box<FieldError>> {
    let known = |amount: Nano| Some(amount).filter(|amount| *amount > 0);
    let vnodes = optional(fields.parse_part("exec_vnode", pbs_vnodes::allocated), jobs)?;
    let vnodes = vnodes.unwrap_or_default();
    let asked = requested_processors(fields, select)?;
    let slots = match known(vnodes.cpu) {
        Some(_) => None,
        None => allocated_slots(fields, asked.is_some())?,
    };
    let held = known(vnodes.cpu).or(slots).or(asked);
    jobs.tally.adjust(match (jobs.processors, asked, slots) {
        (Processors::Requested, Some(_), _) => REQUESTED,
        (Processors::Requested, None, _) => NOT_REQUESTED,
        _ if vnodes.cpu > 0 => VNODES,
        (_, _, Some(_)) => SLOTS,
        (_, _, None) => AS_REQUESTED,
    });
    // What of the request goes by processors goes by those of each.
    let memory = memory(fields, select, jobs)?;
    let of = |cpu: Option<Nano>| match memory {
        Memory::OfJob(amount) => amount,
        Memory::OfProcessor(amount) => cpu.and_then(|cpu| amount.checked_mul(cpu)).map(|amount| amount / NANO),
    };
    let asked_gpu = requested_gpus(fields)?.or(select.and_then(|sum| known(sum.gpu)));
    let gpus = fields.get("exec_gpus").map(|(_, list)| list.split(|b| *b == b'+').count() as Nano * NANO);
    let held_gpu = known(vnodes.gpu).or(gpus).or(asked_gpu);
    let asked_memory = of(asked);
    Ok(([held, known(vnodes.mem).or(of(held)), held_gpu], [asked, asked_memory, asked_gpu]))
}

/// The memory that a job requests.
#[derive(Clone, Copy)]
enum Memory {
    OfJob(Option<Nano>),
    OfProcessor(Nano),
}

fn memory(fields: &Fields<'_>, select: Option<ChunkSize>, jobs: &mut Jobs) -> Result<Memory, Box<FieldError>> {
    let mut read = |key: &str| optional(fields.parse(key, size, SIZE), jobs);
    let of_select = select.map(|sum| sum.mem).filter(|mem| *mem > 0);
    if let Some(amount) = read("Resource_List.mem")?.or(of_select) {
        return Ok(Memory::OfJob(Some(amount)));
    }
    if let Some(amount) = read("Resource_List.pmem")? {
        return Ok(Memory::OfProcessor(amount));
    }
    let found = match (read("Resource_List.vmem")?, read("Resource_List.pvmem")?) {
        (Some(amount), _) => Memory::OfJob(Some(amount)),
        (None, Some(amount)) => Memory::OfProcessor(amount),
        (None, None) => return Ok(Memory::OfJob(None)),
    };
    jobs.tally.adjust(VIRTUAL);
    Ok(found)
}

/// Returns the chunks that a job requests, and how they are placed.
fn select(fields: &Fields<'_>, jobs: &mut Jobs) -> Result<Option<(Select, Place)>, Box<FieldError>> {
    let select = optional(fields.parse_part("Resource_List.select", Select::parse), jobs)?;
    let place = optional(fields.parse_part("Resource_List.place", Place::parse), jobs)?;
    Ok(select.map(|select| (select, place.unwrap_or_default())))
}

const TIME: &str = "seconds since 1970";
const DURATION: &str = "a duration such as 02:00:00, or seconds";
const SIZE: &str = "a size such as 600mb";
const NUMBER: &str = "a number";

/// The fields of a record by key, each with the byte of the message where its value starts.
struct Fields<'a> {
    of: HashMap<&'a [u8], (usize, &'a [u8])>,
    /// The byte of the line where the message starts.
    offset: usize,
}

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<(usize, &'a [u8])> {
        self.of.get(key.as_bytes()).map(|(at, value)| (self.offset + at, *value)).filter(|(_, v)| !v.is_empty())
    }

    fn name(&self, key: &str) -> Result<Option<Cow<'a, str>>, Box<FieldError>> {
        self.get(key).map(|(at, value)| utf8(value, at, "a name").map(Cow::Borrowed)).transpose()
    }

    fn parse<T>(
        &self,
        key: &str,
        parse: impl Fn(&[u8]) -> Option<T>,
        expected: &str,
    ) -> Result<Option<T>, Box<FieldError>> {
        let Some((at, value)) = self.get(key) else { return Ok(None) };
        // A job that never ran has a start of 0.
        if value == b"0" && expected == TIME {
            return Ok(None);
        }
        parse(value).map(Some).ok_or_else(|| FieldError::new(at, value, format!("{key}: {expected}")))
    }

    /// Parses a field whose faulty part the parser names.
    fn parse_part<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, Fault<'_>>,
    ) -> Result<Option<T>, Box<FieldError>> {
        let Some((at, value)) = self.get(key) else { return Ok(None) };
        let text = utf8(value, at, "a request")?;
        let faulty = |(offset, found, expected): Fault<'_>| {
            FieldError::new(at + offset, found.as_bytes(), format!("{key}: {expected}"))
        };
        parse(text).map(Some).map_err(faulty)
    }

    fn number(&self, key: &str) -> Result<Option<Nano>, Box<FieldError>> {
        Ok(self.parse(key, |text| decimal(text).map(|d| d.nano), NUMBER)?.filter(|n| *n > 0))
    }
}

/// Splits `key=value key="a value" …`. Quotation marks of either kind enclose blanks.
fn fields(message: &[u8]) -> HashMap<&[u8], (usize, &[u8])> {
    let mut fields = HashMap::new();
    let mut at = 0;
    while at < message.len() {
        let mut end = at;
        let mut quote = None;
        let mut equals = None;
        while let Some(&byte) = message.get(end) {
            match (quote, byte) {
                (None, b' ' | b'\t') => break,
                (None, b'=') if equals.is_none() => equals = Some(end),
                // An apostrophe within a word is part of it.
                (None, b'"' | b'\'') if equals == end.checked_sub(1) => quote = Some(byte),
                (Some(open), byte) if byte == open => quote = None,
                _ => {}
            }
            end += 1;
        }
        if let Some(equals) = equals {
            let value = &message[equals + 1..end];
            let inner = match value {
                [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => inner,
                plain => plain,
            };
            let start = equals + 1 + usize::from(inner.len() < value.len());
            fields.insert(&message[at..equals], (start, inner));
        }
        at = end + 1;
    }
    fields
}

/// Returns the processors that a job requests.
///
/// TORQUE's `ncpus` cannot be requested beside nodes ("Requesting resources" of its guide), so that it is a default there.
fn requested_processors(fields: &Fields<'_>, select: Option<ChunkSize>) -> Result<Option<Nano>, Box<FieldError>> {
    let nodes = fields.get("Resource_List.nodes").and_then(|(_, nodes)| requested_nodes(nodes, b"ppn="));
    let (ncpus, procs) = (fields.number("Resource_List.ncpus")?, fields.number("Resource_List.procs")?);
    let asked = match fields.get("total_execution_slots") {
        Some(_) => procs.or(nodes).or(ncpus),
        None => ncpus.or(select.map(|sum| sum.cpu)).or(nodes).or(procs),
    };
    match asked {
        Some(asked) => Ok(Some(asked)),
        None => fields.number("Resource_List.nodect"),
    }
}

/// Returns the processors that a job was allocated beside those of vnodes: the slots of TORQUE; for one that requested nodes
/// alone those that it used by PBS or the slots of its hosts. OpenPBS counts slots of hosts otherwise.
fn allocated_slots(fields: &Fields<'_>, is_requested: bool) -> Result<Option<Nano>, Box<FieldError>> {
    if let Some(found) = fields.number("total_execution_slots")? {
        return Ok(Some(found));
    }
    let of_openpbs = ["Resource_List.ncpus", "Resource_List.select"];
    if is_requested && of_openpbs.iter().any(|key| fields.get(key).is_some()) {
        return Ok(None);
    }
    match fields.number("resources_used.ncpus")? {
        Some(found) => Ok(Some(found)),
        None => Ok(fields.get("exec_host").and_then(|(_, hosts)| slots(hosts))),
    }
}

/// Counts the slots of `exec_host`: `n1/0+n1/1`, `n1/0*13`, `n1/0-15`, `n1/0,2-3`.
fn slots(hosts: &[u8]) -> Option<Nano> {
    let mut sum: u64 = 0;
    for host in hosts.split(|b| *b == b'+') {
        let slash = host.iter().position(|b| *b == b'/')?;
        let slots = &host[slash + 1..];
        let number = |text: &[u8]| str::from_utf8(text).ok()?.parse::<u64>().ok();
        if let Some(star) = slots.iter().position(|b| *b == b'*') {
            sum = sum.checked_add(number(&slots[star + 1..])?)?;
            continue;
        }
        for range in slots.split(|b| *b == b',') {
            let mut ends = range.splitn(2, |b| *b == b'-');
            let first = number(ends.next()?)?;
            let last = ends.next().map_or(Some(first), number)?;
            sum = sum.checked_add(last.checked_sub(first)?.checked_add(1)?)?;
        }
    }
    Some(Nano::from(sum) * NANO).filter(|n| *n > 0)
}

/// Returns the number of nodes: the hosts that a job ran on, or else those it requested.
fn nodes(fields: &Fields<'_>) -> Result<Option<u64>, Box<FieldError>> {
    if let Some((_, list)) = fields.get("exec_host") {
        return Ok(Some(hosts(list)));
    }
    let requested = fields.number("Resource_List.nodect")?;
    Ok(requested.and_then(|n| u64::try_from(n / NANO).ok()))
}

/// Returns what a record states in words: nodes of different sizes, their properties, the hosts on which the job ran.
fn details<'a>(
    fields: &Fields<'a>,
    cpu: Option<Nano>,
    memory: Option<Nano>,
    select: Option<(Select, Place)>,
    jobs: &mut Jobs,
) -> Result<Details<Option<Cow<'a, str>>>, Box<FieldError>> {
    let text = fields.name("Resource_List.nodes")?;
    let request = text.as_ref().and_then(|text| NodeRequest::parse(text));
    if text.is_some() && request.is_none() {
        jobs.tally.adjust(NODES);
    }
    let mut details = Details::default();
    if let Some((select, place)) = select {
        // Chunks that the server changed are those of another request.
        let is_all = select.total().is_some_and(|sum| Some(sum.cpu) == cpu);
        if !is_all {
            jobs.tally.adjust(SELECT);
        }
        details[Detail::Chunks] = select.chunks(place).filter(|_| is_all).map(Cow::Owned);
        details[Detail::Requires] = Some(select.requires(place)).filter(|words| !words.is_empty()).map(Cow::Owned);
    } else if let Some(request) = request {
        // Memory is of the whole job, and goes along with the processors.
        let of_node = |cpu: Nano| move |each: Nano| share(memory.unwrap_or(0), each, cpu);
        details[Detail::Chunks] = cpu.and_then(|cpu| request.chunks(cpu, of_node(cpu))).map(Cow::Owned);
        details[Detail::Requires] = Some(request.requires).filter(|words| !words.is_empty()).map(Cow::Owned);
    }
    if let Some(list) = fields.name("exec_host")? {
        let names = list.split('+').map(|part| part.split('/').next().unwrap_or_default());
        let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        details[Detail::Machines] = Some(names.join(",")).filter(|names| !names.is_empty()).map(Cow::Owned);
    }
    if let Some(status) = fields.name("Exit_status")? {
        details[Detail::Outcome] =
            Some(Cow::Borrowed(if status == "0" { outcome::COMPLETED } else { outcome::FAILED }));
    }
    Ok(details)
}

/// Counts the hosts of `n1/0*8+n2/0*8`, `n1/0+n1/1` and `n1/0-3`: a host may be in several parts.
fn hosts(list: &[u8]) -> u64 {
    let names = list.split(|b| *b == b'+').map(|part| part.split(|b| *b == b'/').next().unwrap_or_default());
    names.filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().len() as u64
}

/// Counts what nodes request of `2:ppn=8+node7:ppn=2`: the sum of nodes times the number after `each`, which is 1 for
/// processors if it is absent.
fn requested_nodes(nodes: &[u8], each: &[u8]) -> Option<Nano> {
    let mut sum: u64 = 0;
    let nodes = nodes.split(|b| *b == b'#').next().unwrap_or_default();
    for part in nodes.split(|b| *b == b'+') {
        let mut words = part.split(|b| *b == b':');
        let number = |text: &[u8]| str::from_utf8(text).ok()?.parse::<u64>().ok();
        // A word is the name of one node.
        let count = words.next().and_then(number).unwrap_or(1);
        let per_node = words.find_map(|word| word.strip_prefix(each)).map(number);
        let per_node = per_node.unwrap_or(if each == b"ppn=" { Some(1) } else { Some(0) })?;
        sum = sum.checked_add(count.checked_mul(per_node)?)?;
    }
    Some(Nano::from(sum) * NANO).filter(|n| *n > 0)
}

fn requested_gpus(fields: &Fields<'_>) -> Result<Option<Nano>, Box<FieldError>> {
    for key in ["Resource_List.ngpus", "Resource_List.naccelerators"] {
        if let Some(found) = fields.number(key)? {
            return Ok(Some(found));
        }
    }
    Ok(fields.get("Resource_List.nodes").and_then(|(_, nodes)| requested_nodes(nodes, b"gpus=")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_quoted() {
        let message = b"user=ann account=\"a b\" x='{}' jobname=it's queue=q";
        let fields = Fields { of: fields(message), offset: 10 };
        assert_eq!(fields.get("account"), Some((28, &b"a b"[..])));
        assert_eq!(fields.get("x").map(|f| f.1), Some(&b"{}"[..]));
        assert_eq!(fields.get("jobname").map(|f| f.1), Some(&b"it's"[..]));
        assert_eq!(fields.get("queue").map(|f| f.1), Some(&b"q"[..]));
    }

    #[test]
    fn hosts_and_node_requests_are_counted() {
        let whole = |n: Option<Nano>| n.map(|n| n / NANO);
        for (list, expected) in [
            ("c8/0-15", (Some(16), 1)),
            ("torque2/0+torque2/1", (Some(2), 1)),
            ("c1/0*13+c2/0*13", (Some(26), 2)),
            ("c1/0*4+c2/0*4+c1/1*4", (Some(12), 2)),
            ("n1/0,2-3", (Some(3), 1)),
            ("n1", (None, 1)),
            ("", (None, 0)),
        ] {
            let found = (whole(slots(list.as_bytes())), hosts(list.as_bytes()));
            assert_eq!(found, expected, "{list}");
        }
        for (nodes, processors, gpus) in [
            ("1:ppn=16", Some(16), None),
            ("2:ppn=8:gpus=2+n7:ppn=2", Some(18), Some(4)),
            ("3", Some(3), None),
            ("n1:bigmem#shared", Some(1), None),
        ] {
            assert_eq!(whole(requested_nodes(nodes.as_bytes(), b"ppn=")), processors, "{nodes}");
            assert_eq!(whole(requested_nodes(nodes.as_bytes(), b"gpus=")), gpus, "{nodes}");
        }
    }
}
