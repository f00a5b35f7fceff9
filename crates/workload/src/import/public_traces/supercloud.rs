//! Reads the job table of Slurm's accounting database as CSV, as MIT's Supercloud publishes it (`slurm-log.csv`):
//! `id_job, id_user, account, partition, time_submit, time_start, time_end, timelimit, tres_alloc, …`.
//!
//! TRES are by number (`1=4,2=8000,4=1,1002=2`): 1 is CPUs, 2 memory in MiB, and those from 1001 on are generic
//! resources. Which of them are GPUs is in another table of the database; the largest number of them is taken.

use evenhand_model::{Nano, Span};

use crate::byte_source::{Meter, Shard};
use crate::import::accounting::{JobRecord, Jobs, epoch};
use crate::import::csv::split;
use crate::import::error::{FieldError, quoted};
use crate::import::lines::{for_each_line, utf8};
use crate::import::parse_number::{NANO, decimal, integer};
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part, counted};
use crate::slurm_notation::Amounts;

const GENERIC: &str = "generic resources";
pub(in crate::import) const ASSUMED: &[(&str, &str)] =
    &[(GENERIC, "generic resources, which are known by number only and taken as GPUs.")];

/// The columns that are read; the first five are needed.
const COLUMNS: [&str; 9] =
    ["time_submit", "time_start", "time_end", "tres_alloc", "id_user", "timelimit", "account", "partition", "tres_req"];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    let mut tally = Tally::default();
    let file = shard.name.clone();
    let mut places: Option<([Option<usize>; 9], usize)> = None;
    let mut missing = None;
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        tally.held = jobs.builder.len() as u64;
        let fields = split(line, b',')?;
        match places {
            _ if missing.is_some() => Ok(()),
            None => {
                let place = |name: &str| fields.iter().position(|(_, f)| f.trim_ascii() == name.as_bytes());
                let found = COLUMNS.map(place);
                missing = (0..5).find(|i| found[*i].is_none()).map(|i| (COLUMNS[i], quoted(line)));
                places = Some((found, fields.len()));
                Ok(())
            }
            Some((_, width)) if fields.len() != width => {
                tally.rows_read += 1;
                let found = counted(fields.len() as u64, "column", "columns");
                let expected = format!("{}, as the header has", counted(width as u64, "column", "columns"));
                Err(FieldError::described(line.len(), found, expected))
            }
            Some((places, _)) => {
                tally.rows_read += 1;
                let get = |i: usize| places[i].map(|at| (fields[at].0, fields[at].1.trim_ascii())).unwrap_or_default();
                row(get, &mut jobs)
            }
        }
    })?;
    if let Some((column, header)) = missing {
        return Err(ImportError::Shape {
            file,
            found: format!("the header {header}"),
            expected: format!("a column {column:?} of Slurm's job table"),
            remedy: "export the whole table, or pass --csv-columns".to_string(),
        });
    }
    jobs.tally.merge(tally);
    Ok(jobs.finish())
}

fn row<'a>(get: impl Fn(usize) -> (usize, &'a [u8]), jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    let held = amounts(get(3))?;
    let held = if held.cpu.is_some() { held } else { amounts(get(8))? };
    let (at, limit) = get(5);
    // 2^32 - 1 and 2^32 - 2 mean no limit and the partition's.
    let limit = integer(limit).filter(|minutes| *minutes < 4_294_967_294);
    let name = |i: usize| -> Result<_, Box<FieldError>> { utf8(get(i).1, at, "a name").map(|t| Some(t.into())) };
    let start = epoch(get(1).1);
    if start.is_some() && held.gpu.is_some() {
        jobs.tally.adjust(GENERIC);
    }
    jobs.push(&JobRecord {
        submit: epoch(get(0).1),
        start,
        end: epoch(get(2).1),
        requested: limit.and_then(|minutes| Span::checked_from_nanos(Nano::from(minutes) * 60 * NANO)),
        user: name(4)?,
        account: name(6)?,
        queue: name(7)?,
        cpu: held.cpu,
        mem: held.mem,
        gpu: held.gpu,
        ..JobRecord::default()
    })
}

/// Returns the CPUs, the memory and the generic resources (as GPUs) of a list by number.
fn amounts((at, list): (usize, &[u8])) -> Result<Amounts, Box<FieldError>> {
    let mut found = Amounts::default();
    for one in list.split(|b| *b == b',').filter(|one| !one.is_empty()) {
        let pair = one.iter().position(|b| *b == b'=').map(|equals| (&one[..equals], &one[equals + 1..]));
        let pair = pair.and_then(|(id, amount)| Some((integer(id)?, decimal(amount)?.nano)));
        match pair.ok_or_else(|| FieldError::new(at, one, "TRES by number, such as 1=4"))? {
            (1, cpus) => found.cpu = Some(cpus),
            (2, mebibytes) => found.mem = mebibytes.checked_mul(1 << 20),
            (1001.., generic) => found.gpu = Some(found.gpu.unwrap_or(0).max(generic)),
            _ => {}
        }
    }
    Ok(found)
}
