//! Reads the logs of OLCF's Frontier: 21 columns, of which 18 are those of the Standard Workload Format; then the GPUs
//! used, a soft wall time, and a descriptor of the machine and the nodes: `frontier:excl:2500x112`.
//!
//! The processors in the fields of the standard are of nodes in some rows and of cores in others; the descriptor decides.

use evenhand_model::{Nano, Span, Time};

use crate::byte_source::{Meter, Shard};
use crate::import::accounting::{JobRecord, Jobs};
use crate::import::error::FieldError;
use crate::import::lines::{for_each_line, utf8};
use crate::import::parse_number::{NANO, decimal, integer};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part, counted};

pub(in crate::import) const ASSUMED: &[(&str, &str)] = &[];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        tally.held = jobs.builder.len() as u64;
        if line.trim_ascii_start().starts_with(b";") {
            return Ok(());
        }
        tally.rows_read += 1;
        row(line, &mut jobs)
    })?;
    jobs.tally.merge(tally);
    Ok(jobs.finish())
}

fn row(line: &[u8], jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    let fields: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|f| !f.is_empty()).collect();
    if fields.len() != 21 {
        let found = counted(fields.len() as u64, "column", "columns");
        return Err(FieldError::described(line.len(), found, "21 columns, as in the logs of Frontier"));
    }
    let at = |i: usize| fields[i].as_ptr() as usize - line.as_ptr() as usize;
    // Negative numbers mean unknown.
    let known = |i: usize| -> Result<Option<Nano>, Box<FieldError>> {
        if fields[i].starts_with(b"-") {
            return Ok(None);
        }
        let number = decimal(fields[i]).map(|d| Some(d.nano));
        number.ok_or_else(|| FieldError::new(at(i), fields[i], "a number, or -1 for unknown"))
    };
    let time = |nano: Option<Nano>| nano.and_then(Time::checked_from_nanos);
    let (submit, wait) = (known(1)?, known(2)?);
    let descriptor = utf8(fields[20], at(20), "a descriptor")?;
    let size = descriptor.rsplit(':').next().and_then(|size| size.split_once('x'));
    let size = size.and_then(|(nodes, cores)| Some((integer(nodes.as_bytes())?, integer(cores.as_bytes())?)));
    let cores = size.map(|(nodes, cores)| Nano::from(nodes) * Nano::from(cores) * NANO);
    let cores =
        cores.ok_or_else(|| FieldError::new(at(20), fields[20], "a descriptor such as frontier:excl:2500x112"))?;
    let name = |i: usize| -> Result<_, Box<FieldError>> {
        let text = utf8(fields[i], at(i), "a name")?;
        Ok((!text.starts_with('-')).then_some(text.into()))
    };
    jobs.push(&JobRecord {
        submit: time(submit),
        start: time(submit.zip(wait).map(|(submit, wait)| submit + wait)),
        elapsed: known(3)?.and_then(Span::checked_from_nanos),
        requested: known(8)?.filter(|n| *n > 0).and_then(Span::checked_from_nanos),
        user: name(11)?,
        account: name(12)?,
        queue: name(14)?,
        cpu: Some(cores),
        gpu: known(18)?.filter(|n| *n > 0),
        ..JobRecord::default()
    })
}
