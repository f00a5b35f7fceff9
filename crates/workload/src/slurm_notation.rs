//! Parses durations, limits, sizes, TRES and generic resources in the notation of Slurm's commands.
//!
//! Functions return `None` for a text of another form; the caller knows its place. Amounts are in billionths, memory is
//! in billionths of a byte. Dates are parsed by [`evenhand_model::calendar`].

mod constraints;
mod generic_resources;

pub use constraints::parse_constraints;
use evenhand_model::{Nano, Span};
pub use generic_resources::{Gres, parse_gres};

use crate::import::parse_number::{NANO, decimal, integer};

/// Parses seconds as a decimal number.
pub fn seconds(text: &[u8]) -> Option<Span> {
    Span::checked_from_nanos(decimal(text)?.nano)
}

/// Parses a duration: `[DD-]HH:MM:SS[.frac]` or `MM:SS[.frac]`.
pub fn duration(text: &[u8]) -> Option<Span> {
    let (days, clock) = match text.iter().position(|&b| b == b'-') {
        Some(at) => (integer(&text[..at])?, &text[at + 1..]),
        None => (0, text),
    };
    let has_days = clock.len() < text.len();
    let parts: Vec<&[u8]> = clock.split(|&b| b == b':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [h, m, s] => (integer(h)?, integer(m)?, s),
        [m, s] if !has_days => (0, integer(m)?, s),
        _ => return None,
    };
    let seconds = decimal(seconds)?.nano;
    let whole = days.checked_mul(24)?.checked_add(hours)?.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?;
    Span::checked_from_nanos(u128::from(whole).checked_mul(NANO)?.checked_add(seconds)?)
}

/// Parses a time limit: `TimelimitRaw` in minutes, `Timelimit` as a duration. Returns `Some(None)` for no limit.
pub fn limit(text: &[u8], in_minutes: bool) -> Option<Option<Span>> {
    const NO_LIMIT: [&[u8]; 5] = [b"UNLIMITED", b"Partition_Limit", b"INVALID", b"N/A", b"NONE"];
    if NO_LIMIT.iter().any(|w| w.eq_ignore_ascii_case(text)) {
        return Some(None);
    }
    if !in_minutes && text.contains(&b':') {
        return duration(text).map(Some);
    }
    Span::checked_from_nanos(decimal(text)?.nano.checked_mul(60)?).map(Some)
}

/// The amounts that a job holds, in billionths of a CPU, a byte and a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// The CPUs.
    pub cpu: Option<Nano>,
    /// The memory.
    pub mem: Option<Nano>,
    /// The GPUs of all types.
    pub gpu: Option<Nano>,
    /// The nodes.
    pub node: Option<Nano>,
}

/// A part of a TRES text that is not a name with an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TresError<'a> {
    /// The byte of the text where the part begins.
    pub at: usize,
    /// The part.
    pub found: &'a [u8],
}

/// Calls `take` with each name and value of `cpu=8,mem=125000M,node=1,gres/gpu:a100=2`.
///
/// # Errors
/// Returns the first part that is not a name with a value, or for which `take` returns `None`.
pub fn for_each_tres<'a>(
    text: &'a [u8],
    mut take: impl FnMut(&'a [u8], &'a [u8]) -> Option<()>,
) -> Result<(), TresError<'a>> {
    let mut at = 0;
    for part in text.split(|&b| b == b',') {
        let error = TresError { at, found: part };
        at += part.len() + 1;
        let equals = part.iter().position(|&b| b == b'=').ok_or(error)?;
        take(&part[..equals], &part[equals + 1..]).ok_or(error)?;
    }
    Ok(())
}

/// Parses the CPUs, memory and GPUs of `cpu=8,mem=125000M,node=1,gres/gpu:a100=2`. Other names are ignored.
///
/// # Errors
/// Returns the first part that is not a name with an amount.
pub fn tres(text: &[u8]) -> Result<Amounts, TresError<'_>> {
    let mut amounts = Amounts::default();
    let mut typed_gpus: Option<Nano> = None;
    for_each_tres(text, |name, value| {
        match name {
            b"cpu" => amounts.cpu = Some(count(value)?),
            b"mem" => amounts.mem = Some(memory(value)?),
            b"node" => amounts.node = Some(count(value)?),
            b"gres/gpu" => amounts.gpu = Some(count(value)?),
            // Jobs have both the sum and the types, or, at some sites, the types alone.
            typed if typed.starts_with(b"gres/gpu:") => {
                typed_gpus = Some(typed_gpus.unwrap_or(0).checked_add(count(value)?)?);
            }
            _ => {}
        }
        Some(())
    })?;
    amounts.gpu = amounts.gpu.or(typed_gpus);
    Ok(amounts)
}

/// What a list of TRES names beside processors, memory and GPUs of any type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedGres {
    /// The types of GPUs: `a100` of `gres/gpu:a100=2`.
    pub gpu_types: Vec<String>,
    /// Whether it has the number of GPUs of any type, `gres/gpu`.
    pub has_all_gpus: bool,
    /// Whether it has generic resources other than GPUs.
    pub has_others: bool,
}

impl NamedGres {
    /// Reads a text such as `cpu=8,gres/gpu=2,gres/gpu:a100=2,gres/fpga=1`. What is malformed, or 0, names nothing.
    pub fn of_text(text: &[u8]) -> NamedGres {
        let mut named = NamedGres::default();
        for part in text.split(|&b| b == b',') {
            let Some(equals) = part.iter().position(|&b| b == b'=') else { continue };
            if let (Some(name), Some(1..)) = (part[..equals].strip_prefix(b"gres/"), count(&part[equals + 1..])) {
                named.add(&String::from_utf8_lossy(name));
            }
        }
        named
    }

    /// Adds a generic resource by its name without `gres/`: `gpu:a100`.
    pub fn add(&mut self, name: &str) {
        match name.split_once(':').unwrap_or((name, "")) {
            ("gpu", "") => self.has_all_gpus = true,
            ("gpu", kind) => self.gpu_types.push(kind.to_string()),
            // What Slurm measures of GPUs is no resource.
            ("gpumem" | "gpuutil", _) => {}
            _ => self.has_others = true,
        }
    }
}

/// Parses a whole number, with K for 1024 and M for 1024 K, as `squeue` shortens 2048 to 2K.
pub fn number(text: &str) -> Option<u64> {
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit()).then(|| t.parse::<u64>().ok()).flatten();
    let (number, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits(number)?.checked_mul(1 << shift)
}

/// Parses a number to billionths.
pub fn count(text: &[u8]) -> Option<Nano> {
    decimal(text).map(|d| d.nano)
}

/// Parses a size to billionths of a byte: `125000M`, `4.50G`. Without a letter, the unit is M, as in Slurm.
pub fn memory(text: &[u8]) -> Option<Nano> {
    let (number, shift) = match text.split_last()? {
        (b'K', number) => (number, 10),
        (b'M', number) => (number, 20),
        (b'G', number) => (number, 30),
        (b'T', number) => (number, 40),
        (b'P', number) => (number, 50),
        _ => (text, 20),
    };
    decimal(number)?.nano.checked_mul(1 << shift)
}

/// Parses `ReqMem` to billionths of a byte: the memory of the job, or with `c` of each CPU, or with `n` of each node.
/// `cpu` and `nodes` are in billionths. Returns `Some(None)` for 0, which requests all memory of a node.
pub fn memory_request(text: &[u8], cpu: u128, nodes: Option<Nano>) -> Option<Option<Nano>> {
    let (size, copies) = match text.split_last()? {
        (b'c', size) => (size, cpu),
        (b'n', size) => (size, nodes.unwrap_or(NANO)),
        _ => (text, NANO),
    };
    let total = memory(size)?.checked_mul(copies)? / NANO;
    Some(Some(total).filter(|t| *t > 0))
}

/// Returns the id of the array of which an id names a task: `100` of `100_2`. Other ids, such as that of the tasks that wait
/// (`100_[3-9]`), name no task.
///
/// ```
/// use evenhand_workload::slurm_notation::array_of_task;
/// assert_eq!(array_of_task("100_2"), Some("100"));
/// assert_eq!(["100", "200+1", "100_[3-9%5]", "_1"].map(array_of_task), [None; 4]);
/// ```
pub fn array_of_task(id: &str) -> Option<&str> {
    let (array, task) = id.split_once('_')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(array) && is_number(task)).then_some(array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_gpus_and_other_generic_resources_are_found() {
        let found = |text: &str| {
            let NamedGres { gpu_types, has_all_gpus, has_others } = NamedGres::of_text(text.as_bytes());
            (gpu_types.join(" "), has_all_gpus, has_others)
        };
        for (text, types, has_all_gpus, has_others) in [
            ("cpu=8,mem=4G,gres/gpu=2", "", true, false),
            ("cpu=8,gres/gpu=2,gres/gpumem=4G,gres/gpuutil=7", "", true, false),
            ("cpu=8,gres/gpu=3,gres/gpu:H100=1,gres/gpu:1g.5gb=2", "H100 1g.5gb", true, false),
            ("gres/gpu:a100=1,gres/gpu:l4=0,gres/fpga:x=1", "a100", false, true),
            ("cpu=1,gres/fpga=0,gres/gpu=0,gres/gpu:a100=x,gres/gpu:l4", "", false, false),
            ("", "", false, false),
        ] {
            assert_eq!(found(text), (types.into(), has_all_gpus, has_others), "{text}");
        }
    }

    #[test]
    fn durations_and_limits() {
        let seconds = |text: &str| duration(text.as_bytes()).map(|d| d.to_string());
        assert_eq!(seconds("1-04:37:26").as_deref(), Some("103046"));
        assert_eq!(seconds("00:05:16").as_deref(), Some("316"));
        assert_eq!(seconds("01:07.402").as_deref(), Some("67.402"));
        for bad in
            ["", "5", "1-05:16", "-01:00", "a:b", "1:2:3:4", "99999999999999999999-00:00:00", "99999999-00:00:00"]
        {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        let limited = |text: &str, raw| limit(text.as_bytes(), raw).map(|l| l.map(|s| s.to_string()));
        assert_eq!(limited("20160", true), Some(Some("1209600".into())));
        assert_eq!(limited("8-00:00:00", false), Some(Some("691200".into())));
        assert_eq!(limited("UNLIMITED", false), Some(None));
        assert_eq!(limited("Partition_Limit", true), Some(None));
        assert_eq!(limited("soon", true), None);
    }

    #[test]
    fn tres_hold_cpu_memory_and_gpus() {
        let nano = |cpu: Option<Nano>, mem: Option<Nano>, gpu: Option<Nano>| Amounts {
            cpu: cpu.map(|n| n * NANO),
            mem: mem.map(|n| n * NANO),
            gpu: gpu.map(|n| n * NANO),
            node: None,
        };
        let held = |text: &'static str| tres(text.as_bytes());
        let with_node = Amounts { node: Some(NANO), ..nano(Some(8), Some(125_000 << 20), None) };
        assert_eq!(held("billing=8,cpu=8,mem=125000M,node=1"), Ok(with_node));
        assert_eq!(held("cpu=32,gres/gpu:a100=1,gres/gpu=1,mem=128G"), Ok(nano(Some(32), Some(128 << 30), Some(1))));
        assert_eq!(held("cpu=1,gres/gpu:a100=1,gres/gpu:l4=2"), Ok(nano(Some(1), None, Some(3))));
        assert_eq!(held("mem=4.50G"), Ok(nano(None, Some(9 << 29), None)));
        assert_eq!(held("mem=7"), Ok(nano(None, Some(7 << 20), None)));
        assert_eq!(held("cpu=8,mem"), Err(TresError { at: 6, found: b"mem" }));
        assert_eq!(held("cpu=x"), Err(TresError { at: 0, found: b"cpu=x" }));
        let asked = |text: &str, nodes| memory_request(text.as_bytes(), 4 * NANO, nodes);
        assert_eq!(asked("100Mc", None), Some(Some(NANO * (400 << 20))));
        assert_eq!(asked("2Gn", Some(3 * NANO)), Some(Some(NANO * (6 << 30))));
        assert_eq!(asked("199G", Some(3 * NANO)), Some(Some(NANO * (199 << 30))));
        assert_eq!(asked("0n", None), Some(None));
        assert_eq!(asked("lots", None), None);
    }
}
