//! What this machine has, as the kernel says.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use evenhand_enforcers::cgroups::Control;
use thiserror::Error;

use crate::configuration::{NodeSection, Speed};
use crate::loads::Load;

/// What cannot be found out.
#[derive(Debug, Error)]
pub enum SupplyError {
    /// A file of the kernel.
    #[error("{path}: {why}")]
    File {
        /// Its path.
        path: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What there is by [`Control::ALL`], in processors, bytes and bytes a second: as configured, and where nothing is, what
/// the kernel says of processors and memory. Nobody knows what a disk or a link can do who has not been told: 0.
///
/// # Errors
/// If a file of the kernel cannot be read.
pub fn supply(section: &NodeSection, root: &Path) -> Result<Load, SupplyError> {
    let mut supply = section.supply.map(|s| s.unwrap_or(0.0));
    if section.supply[Control::Cpu as usize].is_none() {
        supply[Control::Cpu as usize] = processors(&read(&root.join("sys/devices/system/cpu/online"))?).into();
    }
    if section.supply[Control::Memory as usize].is_none() {
        let path = root.join("proc/meminfo");
        let text = read(&path)?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
        let kib: Option<f64> = line.and_then(|kib| kib.trim().parse().ok());
        supply[Control::Memory as usize] = 1024.0 * kib.ok_or_else(|| wrong(&path, "no MemTotal in it"))?;
    }
    Ok(supply)
}

/// What a processor second is worth in those of the reference node. The result of a benchmark is kept in `state`, so that it
/// is the same after a restart.
///
/// # Errors
/// If a file of the kernel cannot be read, or the result not be kept.
pub fn speed(speed: Speed, root: &Path, state: &Path) -> Result<f64, SupplyError> {
    match speed {
        Speed::Given(factor) => Ok(factor),
        Speed::BogoMips { reference } => {
            let path = root.join("proc/cpuinfo");
            bogomips(&read(&path)?).map(|mips| mips / reference).ok_or_else(|| wrong(&path, "no bogomips in it"))
        }
        Speed::Benchmark { reference } => {
            let path = state.join("benchmark");
            let kept = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<f64>().ok());
            let result = match kept.filter(|result| *result > 0.0 && result.is_finite()) {
                Some(result) => result,
                None => {
                    let result = benchmark(Duration::from_millis(500));
                    fs::create_dir_all(state)
                        .and_then(|()| fs::write(&path, format!("{result}\n")))
                        .map_err(|e| wrong(&path, e.to_string()))?;
                    result
                }
            };
            Ok(result / reference)
        }
    }
}

/// How fast a processor is: millions of rounds a second of a fixed mixture of integer work, the best of five tries
/// within about this time. Only ratios between machines mean something, and only for such work.
pub fn benchmark(time: Duration) -> f64 {
    const ROUNDS: u64 = 2_000_000;
    let (begun, mut best) = (Instant::now(), 0.0_f64);
    let mut tries = 0;
    while tries < 5 || begun.elapsed() < time {
        let try_begun = Instant::now();
        let mut x = std::hint::black_box(0x9e37_79b9_7f4a_7c15_u64);
        for round in 0..ROUNDS {
            // Multiplication, shifts and a dependent chain, as hashing has them.
            x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(17) ^ round;
        }
        std::hint::black_box(x);
        best = best.max(ROUNDS as f64 / try_begun.elapsed().as_secs_f64() / 1e6);
        tries += 1;
    }
    best
}

/// From a list such as `0-3,8,10-11`: 7.
fn processors(list: &str) -> u32 {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let count = |range: &str| match range.split_once('-') {
        Some((first, last)) => Some(number(last)?.checked_sub(number(first)?)?.saturating_add(1)),
        None => number(range).map(|_| 1),
    };
    list.split(',').filter_map(count).fold(0_u32, u32::saturating_add).max(1)
}

/// Of one processor: the mean of those there are.
fn bogomips(cpuinfo: &str) -> Option<f64> {
    let of = |line: &str| -> Option<f64> {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case("bogomips").then(|| value.trim().parse().ok()).flatten()
    };
    let all: Vec<f64> = cpuinfo.lines().filter_map(of).filter(|mips| *mips > 0.0).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn read(path: &Path) -> Result<String, SupplyError> {
    fs::read_to_string(path).map_err(|e: io::Error| wrong(path, e.to_string()))
}

fn wrong(path: &Path, why: impl Into<String>) -> SupplyError {
    SupplyError::File { path: path.display().to_string(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in all {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn what_is_not_configured_is_asked_of_the_kernel() {
        let root = files(&[
            ("sys/devices/system/cpu/online", "0-3,8,10-11\n"),
            ("proc/meminfo", "MemFree: 1 kB\nMemTotal:       16384 kB\n"),
        ]);
        let mut section = NodeSection::default();
        assert_eq!(supply(&section, root.path()).unwrap(), [7.0, 16384.0 * 1024.0, 0.0, 0.0]);
        section.supply = [Some(2.0), Some(5.0), Some(1e8), None];
        assert_eq!(supply(&section, Path::new("/nowhere")).unwrap(), [2.0, 5.0, 1e8, 0.0]);
        section.supply[1] = None;
        let said = supply(&section, Path::new("/nowhere")).unwrap_err().to_string();
        assert!(said.starts_with("/nowhere/proc/meminfo: "), "{said}");
    }

    #[test]
    fn speeds() {
        let root = files(&[("proc/cpuinfo", "processor: 0\nbogomips\t: 5000.00\n\nprocessor: 1\nBogoMIPS: 7000.0\n")]);
        let state = tempfile::tempdir().unwrap();
        let of = |speed| super::speed(speed, root.path(), state.path()).unwrap();
        assert_eq!(of(Speed::Given(1.5)), 1.5);
        assert_eq!(of(Speed::BogoMips { reference: 3000.0 }), 2.0);
        let first = of(Speed::Benchmark { reference: 100.0 });
        assert!(first > 0.0);
        assert_eq!(of(Speed::Benchmark { reference: 100.0 }), first);
        assert_eq!(of(Speed::Benchmark { reference: 50.0 }), 2.0 * first);
    }
}
