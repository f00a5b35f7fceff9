//! Reads the event files of the University at Buffalo's Slurm simulator:
//! `-dt 16 -e submit_batch_job | -J jobid_1004 -sim-walltime 21 --uid=user3 -t 00:01:00 -n 24 -A account2 -p normal`.
//!
//! A job is submitted `-dt` seconds after the simulation begins, runs for `-sim-walltime` seconds, or until its time
//! limit if that is negative, and requests what the options of `sbatch` say. It has no original start.

use std::borrow::Cow;
use std::collections::HashMap;

use evenhand_model::{Detail, Details, Nano, Span, Time};

use super::{JobRecord, Jobs, OTHER_EVENT, Unfinished, optional};
use crate::byte_source::{Meter, Shard};
use crate::import::error::{FieldError, up_to};
use crate::import::lines::{for_each_line, utf8};
use crate::import::parse_number::{NANO, decimal, integer};
use crate::import::sacct::GpuTypes;
use crate::import::summary::Tally;
use crate::import::{ImportError, ImportOptions, Part};
use crate::slurm_notation;

pub(in crate::import) const ASSUMED: &[(&str, &str)] = &[];

pub(in crate::import) fn read(shard: Shard, options: &ImportOptions, meter: &Meter<'_>) -> Result<Part, ImportError> {
    let mut jobs = Jobs::new(options);
    let mut tally = Tally::default();
    for_each_line(shard, options, meter, &mut tally, |line, _, tally| {
        tally.held = jobs.builder.len() as u64;
        if line.trim_ascii_start().starts_with(b"#") {
            return Ok(());
        }
        tally.rows_read += 1;
        row(line, &mut jobs)
    })?;
    jobs.tally.merge(tally);
    Ok(jobs.finish())
}

/// Returns whether a line is one of these files.
pub(in crate::import) fn is_record(line: &[u8]) -> bool {
    let head = &line[..line.len().min(200)];
    line.trim_ascii_start().starts_with(b"-dt ") && memchr::memmem::find(head, b" -e ").is_some()
}

fn row(line: &[u8], jobs: &mut Jobs) -> Result<(), Box<FieldError>> {
    let text = utf8(line, 0, "an event")?;
    let (event, job) = text.split_once('|').unwrap_or((text, ""));
    let event = options_of(event);
    let seconds = |value: &str| Time::checked_from_nanos(decimal(value.as_bytes())?.nano);
    let submit = event.get("dt").and_then(|value| seconds(value));
    let submit = submit.ok_or_else(|| FieldError::new(0, line, "-dt SECONDS -e EVENT | OPTIONS"))?;
    if event.get("e").is_none_or(|name| *name != "submit_batch_job") {
        jobs.tally.drop(OTHER_EVENT);
        return Ok(());
    }
    let options = options_of(job);
    let at = line.len() - job.len();
    let get = |names: [&str; 2]| names.into_iter().find_map(|name| options.get(name).copied());
    let bad = |value: &str, expected: &'static str| FieldError::new(at, value.as_bytes(), expected);
    let count = |names: [&str; 2]| -> Result<Option<u64>, Box<FieldError>> {
        // `-N 2-4` requests at least two nodes.
        let value = get(names).map(|v| v.split('-').next().unwrap_or_default());
        value
            .map(|v| {
                integer(v.as_bytes())
                    .ok_or_else(|| FieldError::new(at, v.as_bytes(), up_to(v.as_bytes(), "a whole number", u64::MAX)))
            })
            .transpose()
    };
    let limit = get(["t", "time"]).map(|v| limit(v).ok_or_else(|| bad(v, "a time limit such as 01:00:00")));
    let limit = optional(limit.transpose(), jobs)?.flatten();
    let run = get(["sim-walltime", "sim_walltime"]);
    let elapsed = match run {
        Some(negative) if negative.starts_with('-') => None,
        Some(value) => {
            let span = slurm_notation::seconds(value.as_bytes());
            Some(span.ok_or_else(|| bad(value, "-sim-walltime in seconds, or -1"))?)
        }
        None => None,
    };
    let per_node = count(["ntasks-per-node", "tasks-per-node"])?;
    let nodes = count(["N", "nodes"])?;
    let tasks = count(["n", "ntasks"])?.unwrap_or(nodes.unwrap_or(1).saturating_mul(per_node.unwrap_or(1)));
    let cpus = Nano::from(tasks) * Nano::from(count(["c", "cpus-per-task"])?.unwrap_or(1));
    let stated = nodes.or_else(|| per_node.filter(|n| *n > 0).map(|n| tasks.div_ceil(n)));
    let nodes = stated.unwrap_or(1);
    let size = |v: &str| slurm_notation::memory(v.as_bytes()).ok_or_else(|| bad(v, "memory such as 4000M"));
    let of_node = optional(get(["mem", "mem"]).map(size).transpose(), jobs)?;
    let of_cpu = optional(get(["mem-per-cpu", "mem-per-cpu"]).map(size).transpose(), jobs)?;
    let memory = match (of_node, of_cpu) {
        (Some(each), _) => each.checked_mul(Nano::from(nodes)),
        (None, Some(each)) => each.checked_mul(cpus),
        (None, None) => None,
    };
    let of_node = get(["gres", "gres"]).map(|v| gres(v).ok_or_else(|| bad(v, "generic resources such as gpu:2")));
    let of_job = get(["G", "gpus"]).map(|v| gpus(v).ok_or_else(|| bad(v, "GPUs such as 2")));
    let gpu = match of_job.transpose()? {
        Some(all) => Some(all),
        None => of_node.transpose()?.and_then(|each| each.checked_mul(Nano::from(nodes))),
    };
    let gpu_types = GpuTypes { command: Some(job), ..GpuTypes::default() }.words(&mut jobs.tally).join(",");
    let mut details = Details::default();
    details[Detail::Requires] = Some(gpu_types).filter(|words| !words.is_empty()).map(Cow::Owned);
    let name = |names: [&str; 2]| get(names).map(Cow::Borrowed);
    jobs.push(&JobRecord {
        submit: Some(submit),
        elapsed,
        requested: limit,
        user: name(["uid", "user"]),
        account: name(["A", "account"]),
        queue: name(["p", "partition"]),
        cpu: cpus.checked_mul(NANO),
        mem: memory,
        gpu: gpu.filter(|n| *n > 0),
        nodes: stated,
        details,
        unfinished: Unfinished::UntilLimit,
        ..JobRecord::default()
    })
}

/// Returns the options of a command line by their names without dashes: `--mem=4G`, `-n 12`, `-sim-walltime -1`.
fn options_of(text: &str) -> HashMap<&str, &str> {
    let mut options = HashMap::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let Some(name) = word.strip_prefix("--").or(word.strip_prefix('-')) else { continue };
        if let Some((name, value)) = name.split_once('=') {
            options.insert(name, value);
            continue;
        }
        // A negative number is a value; any other word with a dash is the next option.
        let is_value = |w: &&str| !w.starts_with('-') || w[1..].starts_with(|c: char| c.is_ascii_digit());
        match words.peek().filter(|w| is_value(w)) {
            Some(value) => {
                options.insert(name, value);
                words.next();
            }
            None => {
                options.insert(name, "");
            }
        }
    }
    options
}

/// Parses a limit as `sbatch` takes it: minutes, `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM` or `D-HH:MM:SS`.
fn limit(text: &str) -> Option<Option<Span>> {
    let Some((days, clock)) = text.split_once('-') else {
        return slurm_notation::limit(text.as_bytes(), false);
    };
    let mut parts = clock.split(':').map(|part| integer(part.as_bytes()));
    let mut next = || parts.next().unwrap_or(Some(0));
    let (hours, minutes, seconds) = (next()?, next()?, next()?);
    let days = integer(days.as_bytes())?;
    let whole = days.checked_mul(24)?.checked_add(hours)?.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?;
    Span::checked_from_nanos(Nano::from(whole.checked_add(seconds)?) * NANO).map(Some)
}

/// Parses the GPUs of `--gpus`: `2`, `a100:2`, `a100:1,l4:1`.
fn gpus(text: &str) -> Option<Nano> {
    let number = |one: &str| integer(one.rsplit(':').next()?.as_bytes());
    let counts = text.split(',').map(number);
    counts.sum::<Option<u64>>().map(|n| Nano::from(n) * NANO)
}

/// Parses the GPUs of `--gres`: `gpu:2`, `gpu:a100:2`, `gpu`; other generic resources have none.
fn gres(text: &str) -> Option<Nano> {
    let of_gpus = text.split(',').filter(|one| one.split(':').next() == Some("gpu"));
    let counts = of_gpus.map(|one| if one == "gpu" { Some(NANO) } else { gpus(one) });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_and_limits_of_sbatch() {
        let options = options_of("-J a -sim-walltime -1 --uid=u -t 2-01 -n 12 --exclusive --mem=5 pseudo.job");
        assert_eq!((options["sim-walltime"], options["uid"], options["n"], options["mem"]), ("-1", "u", "12", "5"));
        assert_eq!(options["exclusive"], "");
        let seconds = |text| limit(text).flatten().map(|s| s.to_string());
        assert_eq!(seconds("2-01").as_deref(), Some("176400"));
        assert_eq!(seconds("2-01:30").as_deref(), Some("178200"));
        assert_eq!(seconds("90").as_deref(), Some("5400"));
        assert_eq!(seconds("00:01:00").as_deref(), Some("60"));
        let whole = |n: Option<Nano>| n.map(|n| n / NANO);
        assert_eq!((whole(gres("gpu:a100:2")), whole(gres("gpu:2")), whole(gres("gpu"))), (Some(2), Some(2), Some(1)));
        assert_eq!((whole(gres("nvme:1,gpu:1")), whole(gres("gpu:x"))), (Some(1), None));
        assert_eq!((whole(gpus("2")), whole(gpus("a100:1,l4:1")), whole(gpus("x"))), (Some(2), Some(2), None));
    }
}
